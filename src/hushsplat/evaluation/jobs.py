"""Run jobs in any number of processes; each outcome is stored on disk, so that a killed run continues."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat import __version__
from hushsplat.engines.cpu.machine import default_threads
from hushsplat.evaluation.draw_jobs import DrawJob
from hushsplat.evaluation.score_jobs import ScoreJob
from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import EvaluationError

Job = DrawJob | ScoreJob
Values = dict[str, list[float | None]]


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,  # for outcomes and frames
    workers: int = 0,  # processes; 0: one for each core, 1: none besides this one
    on_done: Callable[[int], None] = lambda cost: None,  # after each job, for a progress bar
) -> list[Values]:
    """The values of every job, in the order of the jobs; stored outcomes are not computed again."""
    found: dict[int, Values] = {}
    for index, job in enumerate(jobs):
        known = _stored(job, folder)
        if known is not None:
            found[index] = known
            on_done(job.cost)
    scenes = list(dict.fromkeys(job.shot.scene for job in jobs))  # one after the other: opening one takes time
    left = sorted((i for i in range(len(jobs)) if i not in found), key=lambda i: scenes.index(jobs[i].shot.scene))
    workers = min(workers or default_threads(), max(len(left), 1))
    if workers == 1:
        for index in left:
            found[index] = run_job(jobs[index], folder, 0)
            on_done(jobs[index].cost)
    else:
        _run_in_processes(jobs, left, folder, workers, found, on_done)
    return [found[index] for index in range(len(jobs))]


def run_job(job: Job, folder: Path, threads: int) -> Values:
    """Run a job and store its outcome."""
    values = job.run(folder, threads)
    path = _outcome_path(job, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(values, allow_nan=False), encoding="utf-8")
    return values


def digest(value: Any) -> str:
    """A name for a job: the same for the same work by the same version, another for any other."""
    text = json.dumps(_plain(value), sort_keys=True)
    return hashlib.sha256(f"{__version__} {text}".encode()).hexdigest()[:32]


def _run_in_processes(
    jobs: Sequence[Job],
    left: Sequence[int],
    folder: Path,
    workers: int,
    found: dict[int, Values],
    on_done: Callable[[int], None],
) -> None:
    threads = max(1, default_threads() // workers)
    context = multiprocessing.get_context("spawn")  # a copy of this process would inherit locked locks of its threads
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_live_with_parent)
    try:
        futures = {executor.submit(run_job, jobs[index], folder, threads): index for index in left}
        for future in as_completed(futures):
            index = futures[future]
            found[index] = future.result()
            on_done(jobs[index].cost)
    except BrokenProcessPool as error:
        raise EvaluationError(
            "a worker was killed, likely for lack of memory; run the same command again, with fewer --workers."
        ) from error
    except BaseException:
        for child in multiprocessing.active_children():  # or they would finish their jobs first
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _live_with_parent() -> None:
    """Ctrl-C reaches every process of the terminal, and the first one ends the others; no worker outlives that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # outcomes are written as a whole or not at all


def _outcome_path(job: Job, folder: Path) -> Path:
    return folder / "parts" / f"{digest(job)}.json"


def _stored(job: Job, folder: Path) -> Values | None:
    """The outcome of a job that ran before, if its frames are still there too."""
    try:
        values = json.loads(_outcome_path(job, folder).read_bytes())
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) and all(path.is_file() for path in job.pictures(folder)) else None


def _plain(value: Any) -> Any:
    """Anything that jobs are made of, as JSON; files count by name, size and time."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return [type(value).__name__, named]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return _plain_list(value)
    if isinstance(value, os.PathLike):
        path = Path(value)
        facts = path.stat() if path.is_file() else None
        return [str(path), *([facts.st_size, facts.st_mtime_ns] if facts else [])]
    return value


def _plain_list(values: Sequence[Any]) -> list[Any]:
    """Item by item; what is there many times, as a camera that stands still, is looked at once."""
    known: dict[int, Any] = {}
    for item in values:
        if id(item) not in known:
            known[id(item)] = _plain(item)
    return [known[id(item)] for item in values]
