"""What the runner (`runner.py`) knows about a stage of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from jaxtyping import Float32
from numpy import ndarray as Array
from torch import Tensor


@runtime_checkable
class Stage(Protocol):
    """Training that goes step by step and can be checkpointed and resumed at any step.

    All randomness must come from the settings' seed and the number of the step, or be part of `state`: a stage that was
    resumed must give the same bits as one that was not interrupted.
    """

    def step(self, index: int) -> dict[str, float]:
        """Do step `index` (from 0); what to log, `loss` among it."""

    def preview(self) -> Float32[Array, "h w 3"]:
        """A picture of the current result."""

    def measure(self) -> dict[str, float]:
        """Held-out quality, such as psnr and ssim."""

    def state(self) -> dict[str, Tensor]:
        """Everything that steps have changed."""

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from there."""

    def finish(self, folder: Path) -> None:
        """Write what later stages and users need to the run's folder; called once, after the last step."""


@dataclass(frozen=True)
class Plan:
    """A stage that will be begun when those before it are finished; it finds their results in the run's folder."""

    name: str  # such as "stage1": names files and log entries
    steps: int
    begin: Callable[[Path], Stage]
    # Threads of PyTorch's own, 0 leaves them as they are. Ours, measured: a step on the engine leaves so little to
    # PyTorch that its threads mostly spin, at five times the processor time on a busy machine.
    torch_threads: int = 1
