"""What is measured: a scene seen by a camera that moves or stands still, and which of its frames count."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushsplat.engines.cpu.denoise_names import LEARNED, DenoiserSettings
from hushsplat.stream import BLENDED
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View


@dataclass(frozen=True)
class SceneSource:
    """A scene that any worker can open again."""

    text: str  # a path, or a name such as synth:500k
    lod: int | None = None  # of a streamed SOG
    name: str = ""  # what tables call it
    stamp: str = ""  # of a file: its size and time, so that another one of the same name is another scene


@dataclass(frozen=True)
class Shot:
    """One camera over time."""

    scene: SceneSource
    track: str  # what tables call it: a track, or a held-out view
    cameras: tuple[Camera, ...] = field(repr=False)
    measured: tuple[int, ...]  # numbers of the frames that count
    photograph: View | None = field(default=None, repr=False)  # what should be seen; None: `reference`
    fps: float = 30.0  # of the measured frames, as a video

    @property
    def is_still(self) -> bool:
        """The camera does not move."""
        return self.cameras[0] is self.cameras[-1]

    @property
    def showcase(self) -> int:
        """The frame that reports show: the middle one of those that count, the last one of a still camera."""
        return self.measured[-1 if self.is_still else len(self.measured) // 2]


@dataclass(frozen=True)
class Method:
    """A renderer or a denoiser with its settings."""

    label: str  # what tables call it
    name: str  # of hushsplat.stream.METHODS
    config: DenoiserSettings | None = None  # of the learned ones
    samples: int = 0  # of `mean`: > 0 draws this many samples at each pose by itself (Ref. N), 0 means along the frames

    @property
    def is_independent(self) -> bool:
        """Each frame is drawn by itself, so that frames are jobs of their own."""
        return self.name in (*BLENDED, "raw") or self.samples > 0

    @property
    def is_learned(self) -> bool:
        """It has weights and views."""
        return self.name in LEARNED
