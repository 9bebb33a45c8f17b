"""The three renderers once more, slow and obvious, in float64: what the engine is tested against.

Everything follows from the fragment of a Gaussian on the ray of a pixel: its squared Mahalanobis distance D², its
depth z, and alpha = opacity · exp(-D²/2). All fragments of all pixels are held in memory at once: for small pictures.
Space is the camera's (x right, y down, z forward); the ray of a pixel is p = ((px - cx) / fx, (py - cy) / fy, 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int32
from numpy import ndarray as Array

from hushsplat.spec import sampling
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import sh_colors
from hushsplat.types.image import Image
from hushsplat.types.observation import Visibility
from hushsplat.types.options import Order
from hushsplat.types.rotations import matrix_from_quaternion

NEAR = 0.2  # world units: centres and fragments must be farther than this; 3DGS
LOW_PASS_PER_PX2 = 2.0  # 2DGS: a surfel is never smaller than a screen-space Gaussian with D² = 2 · distance_px²
DILATION_PX2 = 0.3  # 3DGS: added to the projected variances of an ellipsoid
MIN_TRANSMITTANCE = 1e-4  # 3DGS: blending stops once less light than this comes through


@dataclass(frozen=True)
class Fragments:
    """What every Gaussian is at every pixel, in the order of the scene."""

    distance2: Float64[Array, "n h w"]  # D²; inf where there is no valid fragment
    depth: Float64[Array, "n h w"]  # camera-space z; inf where there is no valid fragment
    opacity: Float64[Array, " n"]
    color: Float64[Array, "n 3"]  # as seen from the camera
    center_depth: Float64[Array, " n"]  # camera-space z of the centre
    center_px: Float64[Array, "n 2"]  # projected centre (x, y); 0 where the Gaussian is not drawn

    @property
    def alpha(self) -> Float64[Array, "n h w"]:
        """opacity · exp(-D²/2), zero below 1/255."""
        alpha = self.opacity[:, None, None] * np.exp(-self.distance2 / 2)
        return np.where(alpha < sampling.MIN_ALPHA, 0.0, alpha)


def reference(
    gaussians: Gaussians, camera: Camera, *, background: Sequence[float] = (0.0, 0.0, 0.0), near: float = NEAR
) -> Image:
    """Sorted by the depth of the centres, blended front to back until opaque: what 2DGS and 3DGS draw."""
    fragments = fragments_of(gaussians, camera, near)
    alpha = fragments.alpha
    order = np.argsort(fragments.center_depth, kind="stable")
    layers = (Layer(alpha[i], fragments.depth[i], fragments.color[i]) for i in order)
    return _blend(layers, camera, background, MIN_TRANSMITTANCE)


def exact(
    gaussians: Gaussians, camera: Camera, *, background: Sequence[float] = (0.0, 0.0, 0.0), near: float = NEAR
) -> Image:
    """Sorted by the depth of the fragments in each pixel, blended to the end: the expectation of `raw`."""
    fragments = fragments_of(gaussians, camera, near)
    alpha = fragments.alpha
    order = np.argsort(fragments.depth, axis=0, kind="stable")
    rows, columns = np.indices((camera.height, camera.width))
    layers = (
        Layer(alpha[rank, rows, columns], fragments.depth[rank, rows, columns], fragments.color[rank]) for rank in order
    )
    return _blend(layers, camera, background, None)


def raw(
    gaussians: Gaussians,
    camera: Camera,
    *,
    samples: int = 1,
    seed: int = 0,
    frame: int = 0,
    sampler: str = "independent",
    order: Order = "pixel",
    near: float = NEAR,
) -> Visibility:
    """Every fragment is kept with probability alpha, and the nearest kept one wins the pixel."""
    fragments = fragments_of(gaussians, camera, near)
    times = [sampling.sequence_index(frame, samples, sample) for sample in range(samples)]
    planes = [nearest_kept(fragments, sampler, seed, t, order) for t in times]
    return Visibility(
        np.stack([primitive_id for primitive_id, _ in planes]),
        np.stack([depth for _, depth in planes]).astype(np.float32),
    )


def nearest_kept(
    fragments: Fragments, sampler: str, seed: int, t: int, order: Order = "pixel"
) -> tuple[Int32[Array, "h w"], Float64[Array, "h w"]]:
    """One stochastic sample at sequence index t: which primitive wins each pixel (-1: none), and how deep (0: none)."""
    count, height, width = fragments.depth.shape
    table = sampling.level_table(sampler, seed, t)
    keys = sampling.primitive_keys(sampler, seed, t, np.arange(count))
    index = sampling.table_index(
        keys[:, None, None],
        np.arange(height)[:, None],
        np.arange(width),
        sampling.anchor_pixels(fragments.center_px)[:, None, None],
    )
    with np.errstate(divide="ignore"):  # an opacity of 0 is never kept
        limit = 2 * np.log(fragments.opacity)[:, None, None] + table[index]
    compared = fragments.depth if order == "pixel" else fragments.center_depth[:, None, None]
    kept_depth = np.where(fragments.distance2 < limit, compared, np.inf)
    kept_depth = np.concatenate([kept_depth, np.full((1, height, width), np.inf)])  # nothing: behind everything
    winner = kept_depth.argmin(axis=0)  # the first of equals
    hit = np.isfinite(kept_depth.min(axis=0))
    shown = np.take_along_axis(fragments.depth, np.where(hit, winner, 0)[None], axis=0)[0] if count else 0.0
    return np.where(hit, winner, -1).astype(np.int32), np.where(hit, shown, 0.0)


def fragments_of(gaussians: Gaussians, camera: Camera, near: float = NEAR) -> Fragments:
    """Every Gaussian on the ray of every pixel, one Gaussian after the other."""
    count, shape = len(gaussians), (camera.height, camera.width)
    distance2 = np.full((count, *shape), np.inf)
    depth = np.full((count, *shape), np.inf)
    center_px = np.zeros((count, 2))
    camera_from_world = camera.camera_from_world
    centers = gaussians.means.astype(np.float64) @ camera_from_world[:3, :3].T + camera_from_world[:3, 3]
    rotations = camera_from_world[:3, :3] @ matrix_from_quaternion(gaussians.rotations.astype(np.float64))
    fragment = _surfel_fragment if gaussians.is_surfels else _ellipsoid_fragment
    for i, center in enumerate(centers):
        if center[2] <= near:
            continue
        found, z, valid = fragment(center, rotations[i], gaussians.scales[i].astype(np.float64), camera, near)
        distance2[i] = np.where(valid, found, np.inf)
        depth[i] = np.where(valid, z, np.inf)
        center_px[i] = _project(center, camera)
    color = sh_colors(gaussians.sh.astype(np.float64), gaussians.means.astype(np.float64), camera.position)
    opacity = gaussians.opacities.astype(np.float64)
    if gaussians.antialiased:
        opacity *= [
            _compensation(center, rotation, scales.astype(np.float64), camera) if center[2] > near else 0.0
            for center, rotation, scales in zip(centers, rotations, gaussians.scales, strict=True)
        ]
    return Fragments(distance2, depth, opacity, color, centers[:, 2], center_px)


Fragment = tuple[Float64[Array, "h w"], Float64[Array, "h w"], Bool[Array, "h w"]]  # D², z, and whether they count


def _surfel_fragment(
    center: Float64[Array, " 3"],
    rotation: Float64[Array, "3 3"],  # camera from local
    scales: Float64[Array, " 2"],
    camera: Camera,
    near: float,
) -> Fragment:
    """The ray meets the surfel's plane at z·p = c + u·a + v·b: D² = u² + v², unless the low-pass is nearer."""
    first, second = scales[0] * rotation[:, 0], scales[1] * rotation[:, 1]  # a, b
    normal = rotation[:, 2]
    rays = _rays(camera)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # rays parallel to the plane
        plane_depth = (normal @ center) / (rays @ normal)
        offset = plane_depth[..., None] * rays - center
        u, v = offset @ first / (first @ first), offset @ second / (second @ second)
        plane_distance2 = u**2 + v**2
    meets = np.isfinite(plane_depth) & np.isfinite(plane_distance2) & (plane_depth > near)
    low_pass = LOW_PASS_PER_PX2 * np.sum((_pixel_centers(camera) - _project(center, camera)) ** 2, axis=-1)
    by_plane = meets & (plane_distance2 <= low_pass)
    # The centre's depth where the low-pass decides: the plane's depth is wild when a surfel is seen edge-on.
    distance2 = np.where(by_plane, plane_distance2, low_pass)
    return distance2, np.where(by_plane, plane_depth, center[2]), np.ones_like(by_plane)


def _ellipsoid_fragment(
    center: Float64[Array, " 3"],
    rotation: Float64[Array, "3 3"],  # camera from local
    scales: Float64[Array, " 3"],
    camera: Camera,
    near: float,
) -> Fragment:
    """The point of the ray where the dilated Gaussian responds most: z = pᵀAc / pᵀAp with A the inverse covariance."""
    covariance = rotation @ np.diag(scales**2) @ rotation.T
    px_x, px_y = center[2] / camera.fx, center[2] / camera.fy  # the size of a pixel at the centre's depth
    dilated = covariance + DILATION_PX2 * np.diag([px_x**2, px_y**2, 0.0])
    inverse = np.linalg.inv(dilated)
    rays = _rays(camera)
    depth = (rays @ inverse @ center) / np.einsum("hwi,ij,hwj->hw", rays, inverse, rays)
    offset = depth[..., None] * rays - center
    return np.einsum("hwi,ij,hwj->hw", offset, inverse, offset), depth, depth > near


def _compensation(
    center: Float64[Array, " 3"],
    rotation: Float64[Array, "3 3"],  # camera from local
    scales: Float64[Array, " 3"],
    camera: Camera,
) -> float:
    """Of an anti-aliased scene: √(det Σ / det Σ') of the projected covariance without and with the dilation."""
    x, y, z = center
    jacobian = np.array([[camera.fx / z, 0, -camera.fx * x / z**2], [0, camera.fy / z, -camera.fy * y / z**2]])
    covariance = jacobian @ rotation @ np.diag(scales**2) @ rotation.T @ jacobian.T
    dilated = covariance + DILATION_PX2 * np.eye(2)
    return float(np.sqrt(max(0.0, np.linalg.det(covariance)) / np.linalg.det(dilated)))


@dataclass(frozen=True)
class Layer:
    """One fragment per pixel, or one Gaussian's colour for all pixels."""

    alpha: Float64[Array, "h w"]
    depth: Float64[Array, "h w"]
    color: Float64[Array, "h w 3"] | Float64[Array, " 3"]


def _blend(
    layers: Iterable[Layer],  # front to back
    camera: Camera,
    background: Sequence[float],
    stop_below: float | None,  # transmittance after which a pixel takes no more layers
) -> Image:
    """Front-to-back alpha blending: weight = alpha · transmittance, the background behind everything."""
    shape = (camera.height, camera.width)
    transmittance = np.ones(shape)
    color, color2 = np.zeros((*shape, 3)), np.zeros((*shape, 3))  # first and second moment over the weights
    depth, weights = np.zeros(shape), np.zeros(shape)
    for layer in layers:
        alpha = layer.alpha if stop_below is None else np.where(transmittance < stop_below, 0.0, layer.alpha)
        weight = alpha * transmittance
        color += weight[..., None] * layer.color
        color2 += weight[..., None] * layer.color**2
        depth += weight * np.where(weight > 0, layer.depth, 0.0)  # depth is inf where there is no fragment
        weights += weight
        transmittance = transmittance * (1 - alpha)
    behind = np.asarray(background, dtype=np.float64)
    color += transmittance[..., None] * behind
    color2 += transmittance[..., None] * behind**2
    variance = np.maximum(color2 - color**2, 0) if stop_below is None else None
    return Image(
        color=color.astype(np.float32),
        alpha=(1 - transmittance).astype(np.float32),
        depth=np.divide(depth, weights, out=np.zeros(shape), where=weights > 0).astype(np.float32),
        variance=None if variance is None else variance.astype(np.float32),
    )


def _pixel_centers(camera: Camera) -> Float64[Array, "h w 2"]:
    """(x, y) of every pixel's centre."""
    y, x = np.indices((camera.height, camera.width)) + 0.5
    return np.stack([x, y], axis=-1)


def _rays(camera: Camera) -> Float64[Array, "h w 3"]:
    """p of every pixel: the point of its ray at depth 1."""
    x, y = np.moveaxis(_pixel_centers(camera), -1, 0)
    return np.stack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones_like(x)], axis=-1)


def _project(point: Float64[Array, " 3"], camera: Camera) -> Float64[Array, " 2"]:
    """Where a point in front of the camera appears, in pixels."""
    x, y, z = point
    return np.array([camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy])
