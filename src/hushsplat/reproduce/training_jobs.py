"""Training as jobs: stages 1 to 3 of every scene, stage 4 of the source scene, transfers to the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hushsplat.evaluation.experiments import CONSTANTS, SIGMAS
from hushsplat.training.api import train
from hushsplat.training.settings import PRESETS, ChainSizes, Stage2, Stage3, Stage4, TrainSettings

SURFELS, DENOISERS = "scenes", "denoisers"  # folders of a reproduction
VANILLA, CONVERTED, FINAL, WEIGHTS = "stage1.ply", "stage3.ply", "stage4.ply", "denoiser.safetensors"


@dataclass(frozen=True)
class Size:
    """How much of the paper's work is done."""

    summary: str  # in words, for help
    training: TrainSettings  # stage 4 is that of the source scene
    transfer_steps: int  # of stage 4 of the other scenes
    width: int  # px, of what is evaluated
    samples: int = 1024  # of Ref. N along tracks
    every: int | None = None  # so many-th frame of a track is scored; None: 30 a second
    frames: int | None = None  # of a track: at most so many are scored; None: to its end
    metrics: tuple[str, ...] | None = None  # None: all that can be computed
    figure_metrics: tuple[str, ...] | None = None  # the same of ablation and convergence, which score many pictures
    views: int | None = None  # still views of a scene: at most so many; None: all that are held out
    fps: float = 300.0  # of a track
    rounds: int = 3  # of timing
    # Of the ablation: the best of these is shown.
    sigmas: tuple[float, ...] = SIGMAS  # of the heuristic trust
    constants: tuple[float, ...] = CONSTANTS  # constant trusts

    def transfer(self) -> TrainSettings:
        """Settings of a transfer: stage 4 alone."""
        stage4 = replace(self.training.stage4, steps=self.transfer_steps, transfer=True)
        return replace(self.only_stage4(), stage4=stage4)

    def only_stage4(self) -> TrainSettings:
        """Settings of the source scene's stage 4."""
        return replace(self.training, stage3=replace(self.training.stage3, steps=0))

    def surfels(self) -> TrainSettings:
        """Settings of stages 1 to 3, whatever those of stage 4 are."""
        return replace(self.training, stage4=Stage4(steps=0))


_SMALL = PRESETS["small"]
_MEDIUM_STAGE1 = replace(
    _SMALL.stage1,
    steps=8_000,
    densification=replace(_SMALL.stage1.densification, last_step=5_000, most_surfels=250_000),
)
_LARGE_STAGE1 = replace(
    _SMALL.stage1,
    steps=15_000,
    densification=replace(_SMALL.stage1.densification, last_step=10_000, most_surfels=500_000),
)
# The loss of stage 4 is the paper's in all sizes, its chains in all but `small`; all but `paper` draw a window of the
# picture in each step.
SIZES = {
    "small": Size(
        "an hour a scene on two cores: width 400, 150,000 surfels, few steps of stage 4, in windows",
        replace(
            _SMALL,
            stage4=Stage4(
                steps=900,
                network_rate=1e-3,
                gate_warmup=50,
                gradient_frames=8,
                flight_share=1.0,  # with the paper's chains t_s comes out at 1: docs/results.md
                chains=ChainSizes(pace_px=(0.2, 6.0)),
                window=(128, 96),
                lpips=0.0,  # would take most of the time
            ),
        ),
        transfer_steps=300,
        width=400,
        samples=256,
        every=30,
        views=6,
        metrics=("psnr", "ssim", "lpips_3dgs", "cvvdp"),
        figure_metrics=("psnr", "ssim"),
        sigmas=(0.1, 0.5, 2.0, 10.0),
        constants=(0.6, 0.8, 0.9, 0.95),
    ),
    "medium": Size(
        "two hours a scene on two cores: width 800, 250,000 surfels, fewer steps of stage 4, in windows",
        replace(
            _SMALL,
            stage1=_MEDIUM_STAGE1,
            stage2=Stage2(steps=500),
            stage3=Stage3(steps=1_000),
            stage4=Stage4(steps=6_000, window=(200, 144), lpips=0.0),
            width=800,
        ),
        transfer_steps=1_500,
        width=800,
        # A pair of pictures of this size takes 8 s of LPIPS and 0.8 s of ColorVideoVDP, 64 samples of Ref. N take 2 s.
        samples=64,
        every=30,
        views=4,
        metrics=("psnr", "ssim", "cvvdp"),
        figure_metrics=("psnr", "ssim"),
        sigmas=(0.5,),  # the best one of `small`
        constants=(0.9, 0.95),
    ),
    "large": Size(
        "a night a scene on two cores: width 800, 500,000 surfels, all steps of stages 2 to 4",
        replace(
            _SMALL,
            stage1=_LARGE_STAGE1,
            stage2=Stage2(),
            stage3=Stage3(),
            stage4=Stage4(window=(200, 144)),
            width=800,
        ),
        transfer_steps=4_000,
        width=800,
    ),
    "paper": Size("all that the paper did, for a cluster", PRESETS["paper"], transfer_steps=4_000, width=1600),
}


@dataclass(frozen=True)
class TrainJob:
    """One run of training in its own folder; one that was stopped goes on from its checkpoint."""

    output: str  # folder, below that of the reproduction
    capture: str
    settings: TrainSettings
    results: tuple[str, ...]  # files that it writes
    scene: str | None = None  # that enters at stage 3, below the folder of the reproduction
    reference: str | None = None  # vanilla scene that stage 4 takes its target from, below the same
    start: str | None = None  # denoiser that stage 4 begins with, below the same
    lpips: Path | None = None  # weights of LPIPS, for the loss of stage 4
    images: str | None = None  # folder of the photographs
    after: tuple[str, ...] = ()  # digests of the jobs that made `scene` and `start`: others are another job

    @property
    def group(self) -> str:
        """Each by itself."""
        return self.output

    @property
    def cost(self) -> int:
        """Steps, for a progress bar."""
        stages = self.settings.stage1, self.settings.stage2, self.settings.stage3, self.settings.stage4
        return sum(stage.steps for stage in (stages if self.scene is None else stages[2:]))

    @property
    def takes_all_cores(self) -> bool:
        """Training uses every core of its machine."""
        return True

    def files(self, folder: Path) -> list[Path]:
        """What the stages write."""
        return [folder / self.output / name for name in self.results]

    def run(self, folder: Path, threads: int) -> dict[str, Any]:
        """The metrics of each stage at its end."""
        output = folder.absolute() / self.output

        def below(name: str | None) -> str | None:
            return None if name is None else str(folder.absolute() / name)

        found = train(
            self.capture,
            output,
            settings=replace(self.settings, threads=threads),
            scene=below(self.scene),
            reference_scene=below(self.reference),
            start=below(self.start),
            images=self.images,
            lpips=self.lpips if self.settings.stage4.lpips else None,
            resume=(output / "config.json").exists(),
        )
        return {"metrics": {stage: dict(metrics) for stage, metrics in found.metrics.items()}}
