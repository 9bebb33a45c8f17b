"""Jobs: work that is named by its content, stored when it is done, and run by local processes or a Ray cluster."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hushsplat import __version__
from hushsplat.engines.cpu.machine import default_threads
from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import HushsplatError, JobError

Outcome = dict[str, Any]  # JSON
RETRIES = 3  # of a job whose node died: more often it is the job that kills nodes


@runtime_checkable
class Job(Protocol):
    """A dataclass that says all that its outcome depends on; it can run on any worker in any order, and again."""

    @property
    def group(self) -> Hashable:
        """Jobs of one group run one after the other: the scene stays open."""

    @property
    def cost(self) -> int:
        """For a progress bar."""

    @property
    def takes_all_cores(self) -> bool:
        """No other job runs beside it on its machine."""

    def files(self, folder: Path) -> list[Path]:
        """What it writes there besides its outcome."""

    def run(self, folder: Path, threads: int) -> Outcome:
        """Do it; threads: 0 are all cores."""


@runtime_checkable
class Executor(Protocol):
    """What runs jobs; outcomes do not depend on it."""

    def run(self, jobs: Sequence[Job], folder: Path) -> Iterator[tuple[int, Outcome]]:
        """Number and outcome of each job, as they are done; each is stored in the folder before."""


def executor(workers: int = 0, cluster: str | None = None) -> Executor:
    """So many local processes, or a Ray cluster by its address."""
    return Processes(workers) if cluster is None else RayCluster(cluster)


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,  # for outcomes and files
    executor: Executor,
    on_done: Callable[[int], None] = lambda cost: None,  # after each job, for a progress bar
) -> list[Outcome]:
    """The outcome of every job, in the order of the jobs; stored ones are not computed again."""
    found: dict[int, Outcome] = {}
    for index, job in enumerate(jobs):
        known = stored(job, folder)
        if known is not None:
            found[index] = known
            on_done(job.cost)
    groups = list(dict.fromkeys(job.group for job in jobs))
    left = sorted((i for i in range(len(jobs)) if i not in found), key=lambda i: groups.index(jobs[i].group))
    for alone in (True, False):
        chosen = [index for index in left if jobs[index].takes_all_cores == alone]
        for number, outcome in executor.run([jobs[index] for index in chosen], folder) if chosen else ():
            found[chosen[number]] = outcome
            on_done(jobs[chosen[number]].cost)
    return [found[index] for index in range(len(jobs))]


def run_job(job: Job, folder: Path, threads: int) -> Outcome:
    """Run a job and store its outcome."""
    outcome = job.run(folder, threads)
    store(job, folder, outcome)
    return outcome


def store(job: Job, folder: Path, outcome: Mapping[str, Any]) -> None:
    """The outcome of a job, to be found by `stored`."""
    path = _outcome_path(job, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(outcome, allow_nan=False), encoding="utf-8")


def stored(job: Job, folder: Path) -> Outcome | None:
    """The outcome of a job that ran before, if its files are still there too."""
    try:
        outcome = json.loads(_outcome_path(job, folder).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return outcome if isinstance(outcome, dict) and all(path.is_file() for path in job.files(folder)) else None


def digest(value: Any) -> str:
    """A name for a job: the same for the same work by the same version, another for any other."""
    text = json.dumps(_plain(value), sort_keys=True)
    return hashlib.sha256(f"{__version__} {text}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Processes:
    """Processes of this machine."""

    workers: int = 0  # 0: one for each core, 1: none besides this one

    def run(self, jobs: Sequence[Job], folder: Path) -> Iterator[tuple[int, Outcome]]:
        """See `Executor`."""
        workers = 1 if jobs[0].takes_all_cores else min(self.workers or default_threads(), len(jobs))
        if workers > 1:
            yield from self._in_processes(jobs, folder, workers)
            return
        for index, job in enumerate(jobs):
            yield index, run_job(job, folder, 0)

    def _in_processes(self, jobs: Sequence[Job], folder: Path, workers: int) -> Iterator[tuple[int, Outcome]]:
        threads = max(1, default_threads() // workers)
        context = multiprocessing.get_context("spawn")  # a copy of this process would inherit its threads' locked locks
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_live_with_parent)
        try:
            futures = {pool.submit(run_job, job, folder, threads): index for index, job in enumerate(jobs)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise JobError(
                "a worker was killed, likely for lack of memory; run the same command again, with fewer --workers."
            ) from error
        except BaseException:
            for child in multiprocessing.active_children():  # or they would finish their jobs first
                child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class RayCluster:
    """The nodes of a Ray cluster, which see the same files under the same paths (docs/cluster.md)."""

    address: str = "auto"  # host:port of its head; auto: the one that this machine belongs to

    def run(self, jobs: Sequence[Job], folder: Path) -> Iterator[tuple[int, Outcome]]:
        """See `Executor`. Ray starts the jobs of a node that died again on another one."""
        ray = self._connected()
        cpus = self._cpus_of_a_node(ray) if jobs[0].takes_all_cores else 1
        task = ray.remote(_run_on_node).options(num_cpus=cpus, max_retries=RETRIES)
        with _sentinel(folder) as sentinel:
            here = (Path.cwd(), sentinel, __version__)
            running = {task.remote(job, folder.absolute(), cpus, *here): index for index, job in enumerate(jobs)}
            try:
                while running:
                    (done, *_), _ = ray.wait(list(running), num_returns=1)
                    yield running.pop(done), ray.get(done)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, HushsplatError):
                    raise error.cause from None
                raise
            except ray.exceptions.RayError as error:
                raise JobError(
                    f"a job was lost {RETRIES + 1} times ({_first_line(error)}); likely nodes lack memory, "
                    "then run the same command again when they have more."
                ) from None
            finally:
                for left in running:
                    ray.cancel(left, force=True)

    def _connected(self) -> Any:
        if importlib.util.find_spec("ray") is None:
            raise JobError("--cluster needs Ray: pip install 'hushsplat[cluster]'.")
        import ray

        if not ray.is_initialized():
            try:
                ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise JobError(
                    f"--cluster {self.address}: no Ray cluster is there ({_first_line(error)}); start one with "
                    "`ray start --head` (docs/cluster.md)."
                ) from None
        return ray

    def _cpus_of_a_node(self, ray: Any) -> int:
        """All cores of the smallest node."""
        counts = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        return min((count for count in counts if count > 0), default=1)


def _run_on_node(job: Job, folder: Path, threads: int, cwd: Path, sentinel: Path, version: str) -> Outcome:
    """A job on a node of a cluster, where the run's files must be seen."""
    node = os.uname().nodename
    if version != __version__:
        raise JobError(f"{node}: has hushsplat {__version__}, not {version}; install the same on every node.")
    if not (sentinel.is_file() and cwd.is_dir()):
        raise JobError(f"{node}: does not see {folder} and {cwd}; share them with every node, under the same path.")
    os.chdir(cwd)  # paths of scenes may be relative
    return run_job(job, folder, threads)


@contextmanager
def _sentinel(folder: Path) -> Iterator[Path]:
    """A file that a node sees if it shares the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / f".shared-{uuid.uuid4().hex}"
    path.touch()
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


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
