"""`hushsplat.train`: a capture or a scene in, a folder with the trained scene and its denoiser out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hushsplat.io.captures.camera_list import INRIA_CAMERAS, save_inria_cameras
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.scenes.scene import load
from hushsplat.io.weights import read_weights
from hushsplat.training.log import OnProgress, last_entries
from hushsplat.training.settings import PRESETS, TrainSettings
from hushsplat.types.capture import Capture
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians

if TYPE_CHECKING:
    from hushsplat.training.stage import Plan

PathLike = str | os.PathLike[str]
SCENE_SUFFIXES = (".ply", ".splat", ".spz", ".sog")
RESULTS = ("stage1.ply", "stage2.ply", "stage3.ply", "stage4.ply", "denoiser.safetensors")


@dataclass(frozen=True)
class TrainResult:
    """What a finished run has written.

    Attributes:
        folder: of the run.
        files: scenes and weights in it, in the order in which they were made.
        metrics: of each stage at its end: loss, psnr, held_out_psnr and others.
    """

    folder: Path
    files: tuple[Path, ...]
    metrics: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class _Input:
    """What is trained on: a capture, a scene, or both."""

    capture: PathLike | Capture | Gaussians
    scene: PathLike | Gaussians | None
    images: PathLike | None
    lpips: PathLike | None
    reference_scene: PathLike | Gaussians | None
    start: PathLike | None

    def names(self) -> dict[str, str]:
        """In words, for config.json; a resumed run must have the same."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: _name(value) for name, value in given.items() if value is not None}

    def read_capture(self) -> Capture | None:
        """The photographs and their cameras; None where a scene is trained on its own pictures."""
        if self._is_scene():
            return None
        return self.capture if isinstance(self.capture, Capture) else load_capture(self.capture, images=self.images)  # type: ignore[arg-type]

    def plans(self, capture: Capture | None, settings: TrainSettings) -> list[Plan]:
        """Read everything else, so that errors come first."""
        from hushsplat.engines.torch.lpips import load_lpips
        from hushsplat.training.photographs import load_photographs, made_up_photographs
        from hushsplat.training.plans import JointInput, plans_from_capture, plans_from_scene

        joint = JointInput(
            None if self.lpips is None else load_lpips(self.lpips),
            None if self.reference_scene is None else _gaussians(self.reference_scene),
            None if self.start is None else read_weights(self.start),
        )
        if capture is None:
            if self.scene is not None or self.images is not None:
                raise TrainingError(f"{_name(self.capture)}: is a scene; --scene and --images belong to a capture.")
            own = _gaussians(self.capture)  # type: ignore[arg-type]
            return plans_from_scene(own, made_up_photographs(own, settings), settings, joint)
        gaussians = None if self.scene is None else _gaussians(self.scene)
        photographs = load_photographs(capture, settings)  # last: it takes long
        if gaussians is not None:
            return plans_from_scene(gaussians, photographs, settings, joint)
        return plans_from_capture(capture, photographs, settings, joint)

    def _is_scene(self) -> bool:
        if isinstance(self.capture, (Capture, Gaussians)):
            return isinstance(self.capture, Gaussians)
        return Path(self.capture).suffix.lower() in SCENE_SUFFIXES


def train(
    capture: PathLike | Capture | Gaussians,
    output: PathLike,
    *,
    preset: str = "small",
    settings: TrainSettings | None = None,
    scene: PathLike | Gaussians | None = None,
    images: PathLike | None = None,
    lpips: PathLike | None = None,
    reference_scene: PathLike | Gaussians | None = None,
    start: PathLike | None = None,
    resume: bool = False,
    on_progress: OnProgress | None = None,
) -> TrainResult:
    """Train a scene: surfels, their payload and a denoiser for them. Needs PyTorch.

    Args:
        capture: photographs with poses: a folder, or what `load_capture` gave. Or a trained scene (a file or
            Gaussians), which enters at stage 3 and is trained on its own sorted pictures.
        output: folder of the run; it gets config.json, cameras.json, the scenes, previews, the log and events for
            TensorBoard.
        preset: where the settings come from if none are given: `small` or `paper`.
        settings: all settings, such as `dataclasses.replace(PRESETS["small"], width=800)`.
        scene: a trained scene in the frame of the capture; training begins at stage 3.
        images: folder of the photographs inside the capture, such as images_4.
        lpips: .npz of LPIPS' weights for the loss of stage 4 (docs/evaluation.md); None does without.
        reference_scene: the vanilla scene, whose sorted pictures are the target of stage 4 and what it is measured
            against; None takes that of stage 1, or the scene given.
        start: .safetensors of weights that stage 4 begins with (a transfer); None begins as the settings say.
        resume: go on with the run in the folder, with its own settings.
        on_progress: called after every step.

    Returns:
        The files written and the metrics at the end of each stage.
    """
    import hushsplat.engines.torch  # noqa: F401  (says how to install PyTorch if it is missing)
    from hushsplat.training.runner import begin_run, read_run, run_stages

    given, folder = _Input(capture, scene, images, lpips, reference_scene, start), Path(output)
    if resume:
        settings, begun_with = read_run(folder)
        if begun_with != given.names():
            raise TrainingError(f"{folder}: was begun with {_words(begun_with)}, not with {_words(given.names())}.")
    elif settings is None:
        if preset not in PRESETS:
            raise TrainingError(f"preset must be one of {', '.join(sorted(PRESETS))}, got '{preset}'.")
        settings = PRESETS[preset]
    photographed = given.read_capture()
    plans = given.plans(photographed, settings)
    if not resume:
        begin_run(folder, settings, given.names())
    if photographed is not None:  # who opens the scenes beside it then knows which way is up
        save_inria_cameras(photographed.views, folder / INRIA_CAMERAS)
    run_stages(folder, plans, settings, on_progress or (lambda progress: None))
    files = tuple(folder / name for name in RESULTS if (folder / name).exists())
    return TrainResult(folder, files, last_entries(folder))


def _gaussians(scene: PathLike | Gaussians) -> Gaussians:
    return scene if isinstance(scene, Gaussians) else load(scene)


def _name(value: PathLike | Capture | Gaussians) -> str:
    if isinstance(value, Gaussians):
        return f"{len(value)} Gaussians in memory"
    return str(value.folder) if isinstance(value, Capture) else os.fspath(value)


def _words(source: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in source.items())
