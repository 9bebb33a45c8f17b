"""Runs the stages one after the other; a run can be killed at any moment and resumed.

A run's folder has config.json, what finished stages wrote, checkpoint.safetensors of the stage that is not finished,
log.jsonl, events for TensorBoard and previews. A stage reads what earlier stages wrote, never what they left in memory:
a resumed run sees the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as safetensors_bytes
from torch import Tensor

from hushsplat.io.atomic import atomic_write
from hushsplat.io.images import save_image
from hushsplat.io.weights import sorted_header
from hushsplat.training.log import OnProgress, RunLog, TimeLeft, TrainProgress
from hushsplat.training.settings import TrainSettings, settings_from_json, settings_json
from hushsplat.training.stage import Plan, Stage
from hushsplat.types.errors import TrainingError

CONFIG, CHECKPOINT, FINISHED, PREVIEWS = "config.json", "checkpoint.safetensors", "finished.json", "previews"
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")  # how PyTorch says it


def begin_run(folder: Path, settings: TrainSettings, source: dict[str, str]) -> None:
    """Make the folder of a new run; one that is there already is not touched."""
    if (folder / CONFIG).exists():
        raise TrainingError(f"{folder}: there is a run already; go on with --resume, or choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"source": source, "config": settings_json(settings)}, indent=2) + "\n"
    with atomic_write(folder / CONFIG) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_run(folder: Path) -> tuple[TrainSettings, dict[str, str]]:
    """The settings of a run and what it was begun with."""
    path = folder / CONFIG
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TrainingError(f"{folder}: there is no run to resume ({CONFIG} is missing); leave out --resume.") from None
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path}: cannot be read: {error}.") from error
    if not isinstance(found, dict) or not isinstance(found.get("source"), dict):
        raise TrainingError(f"{path}: is not the config of a run; expected 'source' and 'config'.")
    return settings_from_json(TrainSettings, found.get("config"), str(path)), found["source"]


def run_stages(folder: Path, plans: Sequence[Plan], settings: TrainSettings, on_progress: OnProgress) -> None:
    """Begin or resume, to the end of the last plan."""
    (folder / PREVIEWS).mkdir(exist_ok=True)
    finished = _finished(folder)
    at_stage, at_step, state = _read_checkpoint(folder / CHECKPOINT)
    log, torch_threads = RunLog(folder, finished, at_stage, at_step), torch.get_num_threads()
    try:
        for plan in plans:
            if plan.name in finished or plan.steps == 0:
                continue
            if plan.torch_threads:
                torch.set_num_threads(plan.torch_threads)
            stage = plan.begin(folder)
            done = 0
            if at_stage == plan.name and state is not None:
                stage.load(state)
                done, state = at_step, None
            log.begin_stage(plan.name, done)
            _run_stage(stage, plan, done, folder, settings, log, on_progress)
            finished.append(plan.name)
            with atomic_write(folder / FINISHED) as temporary:
                temporary.write_text(json.dumps(finished), encoding="utf-8")
            (folder / CHECKPOINT).unlink(missing_ok=True)
    finally:
        log.close()
        torch.set_num_threads(torch_threads)


def _run_stage(
    stage: Stage, plan: Plan, done: int, folder: Path, settings: TrainSettings, log: RunLog, on_progress: OnProgress
) -> None:
    left = TimeLeft(plan.steps, done)
    for index in range(done, plan.steps):
        metrics = _step(stage, plan, index, folder)
        count = index + 1
        last = count == plan.steps
        if last or count % settings.measure_every == 0:
            metrics = {**metrics, **stage.measure()}
        if last or count % settings.log_every == 0 or count % settings.measure_every == 0:
            log.write(plan.name, count, metrics)
        if last or count % settings.preview_every == 0:
            save_image(stage.preview(), folder / PREVIEWS / f"{plan.name}-{count:06d}.png")
        if not last and count % settings.checkpoint_every == 0:
            _write_checkpoint(folder / CHECKPOINT, plan.name, count, stage.state())
        on_progress(TrainProgress(plan.name, count, plan.steps, left.seconds(count), metrics))
    stage.finish(folder)


def _step(stage: Stage, plan: Plan, index: int, folder: Path) -> dict[str, float]:
    """A step that says in one line why it could not be done."""
    where = f"{folder}: {plan.name} stopped at step {index + 1} of {plan.steps}"
    kept = f"the last checkpoint is kept; go on with --resume {folder}"
    try:
        metrics = stage.step(index)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        raise TrainingError(f"{where}: not enough memory; {kept} on a larger machine, or begin with less.") from error
    if not math.isfinite(metrics["loss"]):
        raise TrainingError(f"{where}: the loss became {metrics['loss']}; {kept}, or begin again with smaller rates.")
    return metrics


def _finished(folder: Path) -> list[str]:
    path = folder / FINISHED
    if not path.exists():
        return []
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TrainingError(f"{path}: is not JSON: {error}.") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TrainingError(f"{path}: must be a list of names of stages.")
    return names


def _write_checkpoint(path: Path, stage: str, step: int, state: dict[str, Tensor]) -> None:
    content = safetensors_bytes(
        {name: tensor.detach().contiguous() for name, tensor in state.items()},
        metadata={"format": "hushsplat-checkpoint", "stage": stage, "step": str(step)},
    )
    with atomic_write(path) as temporary:
        temporary.write_bytes(sorted_header(content))


def _read_checkpoint(path: Path) -> tuple[str | None, int, dict[str, Tensor] | None]:
    """Stage, steps done, state; nothing where there is no checkpoint."""
    if not path.exists():
        return None, 0, None
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != "hushsplat-checkpoint":
                raise TrainingError(f"{path}: is not a checkpoint of hushsplat; remove it to begin its stage again.")
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 -- it is no mapping
            return metadata["stage"], int(metadata["step"]), state
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(f"{path}: cannot be read: {error}; remove it to begin its stage again.") from error
