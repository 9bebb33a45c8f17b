"""A camera track: one set of intrinsics, poses over time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import MAX_FAR, Camera
from hushsplat.types.errors import TrackError
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix, slerp
from hushsplat.types.splines import curve, segment_of

MAX_TIME_S, MIN_STEP_S = 1e9, 1e-9  # ours: thirty years, and no step so short that speeds overflow
MAX_FRAMES = 1_000_000  # ours: four and a half hours at 60 frames a second


@dataclass(frozen=True)
class Track:
    """Poses of one camera over time; `camera(i)` is the camera of frame i.

    Attributes:
        width: px.
        height: px.
        fx: focal length along x, px.
        fy: focal length along y, px.
        cx: principal point, px from the left edge.
        cy: principal point, px from the top edge.
        times_s: [n] seconds, strictly increasing.
        world_from_camera: [n, 4, 4] poses, one for each time.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    times_s: Float64[Array, " n"]
    world_from_camera: Float64[Array, "n 4 4"]

    def __post_init__(self) -> None:
        n = len(self.times_s)
        if n == 0 or self.world_from_camera.shape != (n, 4, 4):
            raise TrackError(f"a track needs as many poses as times, got {len(self.world_from_camera)} and {n}.")
        if not np.abs(self.times_s).max() <= MAX_TIME_S or (np.diff(self.times_s) < MIN_STEP_S).any():
            raise TrackError("the times of a track must be finite and strictly increasing.")
        _check_poses(self.world_from_camera)
        self.camera(0)  # checks the intrinsics

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def duration_s(self) -> float:
        """Seconds from the first pose to the last."""
        return float(self.times_s[-1] - self.times_s[0])

    def camera(self, index: int) -> Camera:
        """The camera of one frame."""
        pose = self.world_from_camera[index]
        return Camera(self.width, self.height, self.fx, self.fy, self.cx, self.cy, pose)

    def resized(self, width: int, height: int | None = None) -> Track:
        """The same track at another picture size; see `Camera.resized`."""
        small = self.camera(0).resized(width, height)
        return replace(self, width=small.width, height=small.height, fx=small.fx, fy=small.fy, cx=small.cx, cy=small.cy)

    def interpolate(self, times_s: Float64[Array, " m"]) -> Track:
        """The track at other times within its own: positions by a Catmull-Rom spline, rotations by slerp.

        Args:
            times_s: seconds, strictly increasing.

        Returns:
            A track with a pose at each of these times.
        """
        first, last = self.times_s[0], self.times_s[-1]
        slack = 1e-9 * max(1.0, abs(first), abs(last))  # rounding of a time is no extrapolation
        if len(times_s) and not (np.min(times_s) >= first - slack and np.max(times_s) <= last + slack):
            raise TrackError(f"times from {first:g} to {last:g} s exist; cannot interpolate outside of them.")
        poses = np.tile(np.eye(4), (len(times_s), 1, 1))
        at = np.clip(times_s, first, last)
        poses[:, :3, 3] = curve(self.times_s, self.world_from_camera[:, :3, 3], at)
        poses[:, :3, :3] = self._rotations_at(at)
        return replace(self, times_s=times_s, world_from_camera=poses)

    def resampled(self, fps: float, speed: float = 1.0) -> Track:
        """The track at an even frame rate.

        Args:
            fps: frames a second.
            speed: how many times as fast.

        Returns:
            A track whose frames are evenly apart. The first pose is kept. The last pose is kept if it falls on a frame
            (to a millionth of one); otherwise the last frame is less than one frame before it.
        """
        if not (np.isfinite(fps) and fps > 0 and np.isfinite(speed) and speed > 0):
            raise TrackError(f"fps and speed must be finite and > 0, got {fps} and {speed}.")
        frames = self.duration_s / speed * fps
        if not frames < MAX_FRAMES:
            raise TrackError(
                f"{frames:.3g} frames are more than {MAX_FRAMES}; lower the frame rate or raise the speed."
            )
        index = np.arange(int(frames + 1e-6) + 1)
        sources = np.minimum(self.times_s[0] + index * (speed / fps), self.times_s[-1])
        poses = self.interpolate(sources).world_from_camera if len(index) > 1 else self.world_from_camera[:1]
        return replace(self, times_s=self.times_s[0] + index / fps, world_from_camera=poses)

    def _rotations_at(self, at: Float64[Array, " m"]) -> Float64[Array, "m 3 3"]:
        rotations = self.world_from_camera[:, :3, :3]
        if len(self) == 1:
            return np.repeat(rotations, len(at), axis=0)
        quaternions = quaternion_from_matrix(rotations)
        segment = segment_of(self.times_s, at)
        start, end = self.times_s[segment], self.times_s[segment + 1]
        between = slerp(quaternions[segment], quaternions[segment + 1], (at - start) / (end - start))
        return matrix_from_quaternion(between)


def _check_poses(poses: Float64[Array, "n 4 4"]) -> None:
    """What Camera asks of one pose, for all of them at once: a long track would take minutes one by one."""
    finite = np.isfinite(poses).all(axis=(1, 2))
    if not finite.all():
        raise TrackError(f"pose {np.argmin(finite)} of the track has a value that is not finite.")
    near = np.abs(poses[:, :3, 3]).max(axis=1) <= MAX_FAR
    if not near.all():
        raise TrackError(f"pose {np.argmin(near)} of the track is farther than {MAX_FAR:g} from the origin.")
    rotations = poses[:, :3, :3]
    with np.errstate(over="ignore", invalid="ignore"):  # huge values are refused here, not warned about
        deviation = np.abs(rotations @ rotations.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        rigid = (deviation < 1e-3) & (np.linalg.det(rotations) > 0)
    if not rigid.all():
        raise TrackError(
            f"pose {np.argmin(rigid)} of the track must be a rotation and a position, without scale or mirroring."
        )
