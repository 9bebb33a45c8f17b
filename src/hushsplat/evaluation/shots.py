"""Shots: a scene seen by a moving or a still camera, and which of its frames are scored."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushsplat.methods import ACTIVE, BLENDED, DENOISERS, LEARNED
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.options import Order


@dataclass(frozen=True)
class SceneSource:
    """Where any worker can load the scene from."""

    text: str  # a path, or a name such as synth:500k
    lod: int | None = None  # of a streamed SOG
    name: str = ""  # what tables call it
    stamp: str = ""  # of a file: its size and time, so that another one of the same name is another scene
    engine: str = "cpu"  # that draws it
    adapter: str | None = None  # of the gpu engine


@dataclass(frozen=True)
class Shot:
    """One camera over time."""

    scene: SceneSource
    track: str  # what tables call it: a track, or a held-out view
    cameras: tuple[Camera, ...] = field(repr=False)
    scored: tuple[int, ...]  # numbers of the frames that metrics are computed of
    photograph: View | None = field(default=None, repr=False)  # the target; None: `reference`
    target: SceneSource | None = None  # that `reference` draws; None: the scene itself
    fps: float = 30.0  # of the scored frames, as a video
    drawn_fps: float | None = None  # frames a second that the track was resampled to

    @property
    def is_still(self) -> bool:
        """The camera does not move."""
        return self.cameras[0] is self.cameras[-1]

    @property
    def showcase(self) -> int:
        """The frame that reports show: the middle one of those that are scored, the last one of a still camera."""
        return self.scored[-1 if self.is_still else len(self.scored) // 2]


@dataclass(frozen=True)
class Method:
    """A renderer or a denoiser with its settings."""

    label: str  # what tables call it
    name: str  # of hushsplat.methods.METHODS
    settings: DenoiserSettings | None = None  # of the learned ones
    samples: int = 0  # of `mean`: > 0 draws this many samples at each pose by itself (Ref. N), 0 means along the frames
    seed: int = 0  # added to the evaluation's: the same method with other noise
    order: Order | None = None  # of fragments; None: the method's own
    sampler: str = "stratified"  # how the `samples` at a pose relate

    @property
    def is_independent(self) -> bool:
        """Each frame is drawn by itself, so that frames are jobs of their own."""
        return self.name in (*BLENDED, "raw") or self.samples > 0

    @property
    def is_random(self) -> bool:
        """Another seed gives another picture."""
        return self.name not in (*BLENDED, *ACTIVE)

    @property
    def takes_noisy_frames(self) -> bool:
        """It denoises a stream: others along the same shot can share its noisy frames."""
        return self.name in DENOISERS and not self.is_independent

    @property
    def is_learned(self) -> bool:
        """It has weights and views."""
        return self.name in LEARNED
