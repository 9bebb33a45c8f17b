"""What `hushsplat render` takes for denoisers: how long to look, what to show, weights and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.cli.flags import MaybeInt, MaybePath
from hushsplat.engines.cpu.denoise_names import LEARNED, METHODS, SHOWN, Denoiser, DenoiserSettings, view_picture
from hushsplat.io.legend import BAR_HEIGHT, BAR_WIDTH, with_scale
from hushsplat.scenes import NamedScene
from hushsplat.stream import denoiser
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Image
from hushsplat.types.track import Track

STILL_FRAMES = 64  # after which hush has found its picture; the accumulated path goes on to 128

if TYPE_CHECKING:
    Show = str
else:  # the names become the choices that --help lists
    Show = Literal[("picture", *SHOWN)]


@dataclass(frozen=True)
class Denoising:
    """How denoisers are used; renderers take no notice."""

    frames: MaybeInt = None  # from a still camera: how many frames the denoiser sees; 64 if not said
    show: Show = "picture"  # of hush: what lies behind the picture instead of it
    weights: MaybePath = None  # of hush: a .safetensors file; the package's own if not said
    hush: DenoiserSettings = field(default_factory=DenoiserSettings)

    def drawn_by(self, name: str, scene: NamedScene) -> str:
        """The method that is used for the one asked for: `hush` without a payload becomes zero-shot."""
        falls_back = name == "hush" and scene.gaussians.payload is None and not self.hush.zero_shot
        return "hush-zero-shot" if falls_back else name

    def method(self, name: str, threads: int) -> str | Denoiser:
        """The method ready to play."""
        if name not in LEARNED:
            return denoiser(name, threads=threads) if name in METHODS else name
        return denoiser(name, weights=self.weights, config=self.hush, threads=threads)

    def cameras(self, seen: Camera | Track, denoised: bool) -> list[Camera]:
        """All cameras that frames are drawn from; a still one again and again, as long as a denoiser needs."""
        if isinstance(seen, Track):
            if self.frames is not None:
                raise HushsplatError("--frames is for a still camera; a track has frames of its own, leave it out.")
            return [seen.camera(index) for index in range(len(seen))]
        if self.frames is not None and not denoised:
            raise HushsplatError("--frames is for denoisers, which look at many; renderers draw one, leave it out.")
        count = self.frames if self.frames is not None else STILL_FRAMES if denoised else 1
        if count < 1:
            raise HushsplatError(f"--frames must be at least 1, got {count}.")
        return [seen] * count

    def shown(self, frame: Image) -> Float32[Array, "h w 3"]:
        """The picture, or the view that was asked for with its scale in the corner."""
        if self.show == "picture":
            return frame.color
        view = view_picture(frame, self.show, self.hush)
        if view.scale is None:
            return view.color
        height = 3 * BAR_HEIGHT if view.scale.wheel else BAR_HEIGHT
        return with_scale(view.color, view.scale.title, view.scale.bar(BAR_WIDTH, height), view.scale.value)

    def refuse_settings_for(self, names: Sequence[str]) -> None:
        """Settings of hush where nobody takes them are a mistake."""
        given = {
            "--show": self.show != "picture",
            "--weights": self.weights is not None,
            "--hush.*": self.hush != DenoiserSettings(),
        }
        useless = [flag for flag, was_given in given.items() if was_given]
        if useless and not set(names) & set(LEARNED):
            raise HushsplatError(f"{useless[0]} is for {' and '.join(LEARNED)}, not for {names[0]}; leave it out.")
