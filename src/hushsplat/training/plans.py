"""The stages that a capture, or a scene that is trained already, goes through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushsplat.engines.torch.lpips import Lpips
from hushsplat.io.scenes.scene import load
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.training.first_surfels import first_surfels, flattened
from hushsplat.training.joint_stage import JointStage, Subject
from hushsplat.training.photographs import Photographs
from hushsplat.training.settings import TrainSettings
from hushsplat.training.stage import Plan
from hushsplat.training.surfel_model import SurfelModel
from hushsplat.training.surfel_stages import (
    STAGE1_PLY,
    STAGE2_PLY,
    STAGE3_PLY,
    OpacityStage,
    PixelOrderStage,
    VanillaStage,
)
from hushsplat.types.capture import Capture
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians


@dataclass(frozen=True)
class JointInput:
    """What stage 4 may be given beside the scene."""

    lpips: Lpips | None = None
    reference: Gaussians | None = None  # the vanilla scene, drawn sorted: target and reference of the metrics
    start: DenoiserWeights | None = None  # weights to begin with


def plans_from_capture(
    capture: Capture, photographs: Photographs, settings: TrainSettings, joint: JointInput | None = None
) -> list[Plan]:
    """All four stages."""

    def begin_stage1(folder: Path) -> VanillaStage:
        return VanillaStage(first_surfels(capture, photographs, settings.stage1, settings.seed), photographs, settings)

    def begin_stage2(folder: Path) -> OpacityStage:
        return OpacityStage(_model(folder, STAGE1_PLY), photographs, settings)

    def begin_stage3(folder: Path) -> PixelOrderStage:
        before = STAGE2_PLY if settings.stage2.steps else STAGE1_PLY
        return PixelOrderStage(_model(folder, before), photographs, settings)

    return [
        Plan("stage1", settings.stage1.steps, begin_stage1),
        Plan("stage2", settings.stage2.steps, begin_stage2),
        Plan("stage3", settings.stage3.steps, begin_stage3),
        _stage4(photographs, settings, joint or JointInput()),
    ]


def plans_from_scene(
    gaussians: Gaussians, photographs: Photographs, settings: TrainSettings, joint: JointInput | None = None
) -> list[Plan]:
    """Stages 3 and 4: a trained scene becomes surfels for the order in every pixel."""
    begin: Callable[[Path], PixelOrderStage] = lambda folder: PixelOrderStage(  # noqa: E731
        SurfelModel.from_gaussians(flattened(gaussians)), photographs, settings
    )
    return [
        Plan("stage3", settings.stage3.steps, begin),
        _stage4(photographs, settings, joint or JointInput(), gaussians),
    ]


def _stage4(
    photographs: Photographs, settings: TrainSettings, joint: JointInput, given: Gaussians | None = None
) -> Plan:
    """Payload and denoiser, of the scene that the stages before have written; of the one given if there is none.

    The target is the vanilla scene: the one that is named, else that of stage 1, else the one given.
    """

    def begin(folder: Path) -> JointStage:
        last = next((name for name in (STAGE3_PLY, STAGE2_PLY, STAGE1_PLY) if (folder / name).exists()), None)
        if last is not None:
            scene = load(folder / last)
        elif given is not None:
            scene = flattened(given)
        else:
            raise TrainingError(f"{folder}: stage 4 needs a scene; let one of the stages before it run.")
        train, held_out = ([view.camera for view in views] for views in (photographs.train, photographs.held_out))
        vanilla = joint.reference
        if vanilla is None:
            vanilla = load(folder / STAGE1_PLY) if (folder / STAGE1_PLY).exists() else given
        subject = Subject(scene, train, held_out, photographs.extent, vanilla)
        return JointStage(subject, settings, joint.lpips, joint.start)

    return Plan("stage4", settings.stage4.steps, begin)


def _model(folder: Path, name: str) -> SurfelModel:
    return SurfelModel.from_gaussians(load(folder / name))
