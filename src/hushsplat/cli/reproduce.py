"""`hushsplat reproduce`: from photographs to the paper's tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hushsplat.cli.console import progress_bar, results, say
from hushsplat.cli.evaluate import Names, terminal_table
from hushsplat.cli.flags import Flag, MaybePath, MaybeText, OutputPath
from hushsplat.jobs import executor
from hushsplat.reproduce.run import SOURCE, Reproduction, scenes_in
from hushsplat.reproduce.tables import comparisons
from hushsplat.reproduce.training_jobs import SIZES
from hushsplat.types.errors import EvaluationError

DESCRIPTION = f"""Train and evaluate a dataset as the paper does, and print its tables beside its own numbers.

DATASET is a folder with a capture (photographs with poses) in each of its folders, such as Mip-NeRF 360.

  1  stages 1 to 3 of every scene                            RUN/scenes/NAME
  2  stage 4 of the source scene, from random weights        RUN/denoisers/NAME
  3  transfers: stage 4 of the others, from its weights      RUN/denoisers/NAME
  4  timing, static, convergence, navigation, zero-shot (both ways), ablation    RUN/EXPERIMENT.json
  5  RUN/tables.md and RUN/report.html

Sizes:

{chr(10).join(f"  {name:<7} {size.summary}" for name, size in SIZES.items())}

A run that was stopped goes on where it stopped: give the same command again. --dry-run lists the jobs.

Examples of use:
  hushsplat reproduce mipnerf360/ -o runs/360 --scenes bonsai bicycle --lpips-weights vgg16_lpips.npz
  hushsplat reproduce mipnerf360/ -o runs/360 --size paper --cluster auto
"""
if TYPE_CHECKING:
    SizeName = str
    DatasetPath = Path
else:
    SizeName = Literal[tuple(SIZES)]
    DatasetPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")]


@dataclass(frozen=True)
class Reproduce:
    """Train and evaluate a dataset as the paper does, and print its tables beside its own numbers."""

    dataset: DatasetPath  # folder of captures
    output: OutputPath  # folder of the run
    size: SizeName = "small"  # how much work, see above
    scenes: Names = ()  # which; all of the dataset if not said
    source: MaybeText = None  # scene whose denoiser is trained at length; room, or the first, if not said
    track: Names = ("walk",)  # files or names, as `hushsplat evaluate` takes them
    all_views: Flag = False  # train on all views, as the paper on Tanks and Temples; every 8th is measured all the same
    images: MaybeText = None  # folder of the photographs in each capture, such as images_4
    lpips_weights: MaybePath = None  # VGG16 with the heads of LPIPS v0.1, a .npz; for the loss of stage 4 too
    seeds: int = 3  # noises of the random methods along tracks: means and 95 % confidence intervals
    keep: Flag = False  # keep all frames of the evaluation: more seeds or metrics later then compute only what is new
    workers: int = 0  # processes that evaluate; 0: one for each core
    cluster: MaybeText = None  # auto or HOST:PORT: on the nodes of a Ray cluster instead (docs/cluster.md)
    dry_run: Flag = False  # list the jobs, do nothing
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Plan, train, evaluate, print."""
        plan = self._plan()
        if self.dry_run:
            for text, state in plan.listed():
                say(f"{state:<5} {text}")
            return
        with ExitStack() as stack:
            found = plan.run(executor(self.workers, self.cluster), self._command(), self._on_plan(stack))
        for table in comparisons(found, plan.scenes):
            results().print(terminal_table(table))
        say(f"{self.output / 'tables.md'}, {self.output / 'report.html'}")

    def _plan(self) -> Reproduction:
        if self.seeds < 1:
            raise EvaluationError(f"--seeds must be at least 1, got {self.seeds}.")
        known = scenes_in(self.dataset, self.images)
        scenes = self.scenes or tuple(known)
        for name in (*scenes, *([] if self.source is None else [self.source])):
            if name not in (known if name in scenes else scenes):
                raise EvaluationError(f"{name}: is no scene of {self.dataset}; it has {', '.join(known)}.")
        size = SIZES[self.size]
        size = replace(size, training=replace(size.training, hold_out=not self.all_views))
        source = self.source or (SOURCE if SOURCE in scenes else scenes[0])
        return Reproduction(
            self.dataset,
            self.output,
            size,
            scenes,
            source,
            self.track,
            self.images,
            None if self.lpips_weights is None else self.lpips_weights.absolute(),
            self.seeds,
            self.keep,
        )

    def _on_plan(self, stack: ExitStack) -> Callable[[str, int], Callable[[int], None]]:
        def on_plan(text: str, total: int) -> Callable[[int], None]:
            stack.pop_all().close()  # the bar of the step before
            return stack.enter_context(progress_bar(text, total, self.quiet)).advance

        return on_plan

    def _command(self) -> str:
        """What the results depend on, to compute them again."""
        words: list[object] = ["hushsplat", "reproduce", self.dataset, "-o", self.output]
        words += ["--size", self.size, "--seeds", self.seeds]
        words += ["--scenes", *self.scenes] if self.scenes else []
        words += [] if self.source is None else ["--source", self.source]
        words += ["--track", *self.track] + (["--all-views"] if self.all_views else [])
        return shlex.join(map(str, words))
