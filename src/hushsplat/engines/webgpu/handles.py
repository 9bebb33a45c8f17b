"""What the GPU engine gives out: buffers of its device that are read back by `.numpy()` and by nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Int32, UInt8
from numpy import ndarray as Array

from hushsplat.engines.webgpu.device import Buffer, Device, reported, tiles_of
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation, Visibility


@dataclass(frozen=True, eq=False)
class GpuVisibility:
    """Who is seen in each pixel: their places in the scene and their depths, a pair of buffers a sample."""

    device: Device = field(repr=False)
    width: int
    height: int
    ids: Int32[Array, " n"] = field(repr=False)  # of the Gaussian at each place
    place: tuple[Buffer, ...] = field(repr=False)  # i32
    depth: tuple[Buffer, ...] = field(repr=False)

    def numpy(self) -> Visibility:
        """Read back."""
        size = (self.height, self.width)
        id_at = np.append(self.ids, np.int32(-1))  # nothing was seen at place -1
        ids = [id_at[read_plane(self.device, buffer, size, 1, np.int32)[..., 0]] for buffer in self.place]
        depths = [read_plane(self.device, buffer, size, 1)[..., 0] for buffer in self.depth]
        return Visibility(np.stack(ids), np.stack(depths))


@dataclass(frozen=True, eq=False)
class GpuImage:
    """A finished picture."""

    device: Device = field(repr=False)
    width: int
    height: int
    color: Buffer = field(repr=False)  # vec4f: RGB and depth
    alpha: Buffer | None = field(default=None, repr=False)
    has_depth: bool = False
    views: Callable[[], Mapping[str, Float32[Array, "h w _"]]] | None = field(default=None, repr=False)

    def pixels(self) -> UInt8[Array, "h w 3"]:
        """The colours as bytes, packed on the GPU: a quarter of what float32 takes to read back."""
        device, tiles = self.device, tiles_of(self.width, self.height)
        with reported(device.adapter):
            size = device.uniform("present", "Size", width=self.width, height=self.height)
            rgba8 = device.buffer(4 * self.width * self.height)
            with device.work() as work:
                work.run(device.compute("present"), tiles, picture=size, color=self.color, rgba8=rgba8)
        return np.ascontiguousarray(read_plane(device, rgba8, (self.height, self.width), 4, np.uint8)[..., :3])

    def numpy(self) -> Image:
        """Read back."""
        size = (self.height, self.width)
        picture = read_plane(self.device, self.color, size, 4)
        alpha = None if self.alpha is None else read_plane(self.device, self.alpha, size, 1)[..., 0]
        return Image(
            np.ascontiguousarray(picture[..., :3]),
            alpha,
            np.ascontiguousarray(picture[..., 3]) if self.has_depth else None,
            views=None if self.views is None else self.views(),
        )


@dataclass(frozen=True, eq=False)
class GpuObservation:
    """One noisy frame."""

    device: Device = field(repr=False)
    width: int
    height: int
    observed: Buffer = field(repr=False)  # vec4f: RGB and depth
    alpha: Buffer = field(repr=False)
    neural_view: Buffer | None = field(default=None, repr=False)  # vec4f: V0..V3

    def image(self) -> GpuImage:
        """The noisy frame itself as a picture."""
        return GpuImage(self.device, self.width, self.height, self.observed, self.alpha, has_depth=True)

    def numpy(self) -> Observation:
        """Read back."""
        picture, view = self.image().numpy(), None
        if self.neural_view is not None:
            view = read_plane(self.device, self.neural_view, (self.height, self.width), 4)
        assert picture.alpha is not None and picture.depth is not None
        return Observation(picture.color, picture.depth, picture.alpha, view)


def read_plane(device: Device, buffer: Buffer, size: tuple[int, int], floats: int, dtype: type = np.float32) -> Array:
    """A buffer of a picture as [height, width, floats]."""
    height, width = size
    return device.read(buffer, dtype)[: height * width * floats].reshape(height, width, floats)
