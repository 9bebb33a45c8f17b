"""Recordings of EyeNavGS (Ding et al., 2025): people with a headset walking through 3DGS scenes, one CSV a walk.

Each frame has a row for each eye. Poses are OpenXR's (x right, y up, z back, both of the world and of the eye), in the
world of the scene as it was recorded but turned by 180 degrees about x: turned back here, they fit the scene's own
splat file. Angles of view are left, right, down, up in radians with OpenXR's signs. Times are milliseconds.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.errors import CameraError, TrackError
from hushsplat.types.rotations import matrix_from_quaternion
from hushsplat.types.track import MAX_FRAMES, Track

POSE_COLUMNS = ("PositionX", "PositionY", "PositionZ", "QuaternionW", "QuaternionX", "QuaternionY", "QuaternionZ")
FOV_COLUMNS = ("FOV1", "FOV2", "FOV3", "FOV4")
TIME_COLUMNS = ("elapsed_ms", "Timestamp", "timestep")  # of the recorder itself, of Rutgers, of NTHU
MAX_FILE_BYTES = 200 * 2**20  # an hour at 90 frames a second is half of it


def read_eyenavgs(
    path: str | Path,
    *,
    eye: int = 0,  # 0 left, 1 right
    width: int = 800,
    height: int = 532,
    fov_y_deg: float | None = None,  # None: as wide as the headset's view, cut to the picture's shape
) -> Track:
    """One eye of a recording, beginning at 0 s; of rows with the same time the first counts."""
    path = Path(path)
    if eye not in (0, 1):
        raise TrackError(f"{path}: eye is {eye}, expected 0 (left) or 1 (right).")
    table = _read_table(path, eye)
    times_ms, angles, positions, quaternions = table[:, 0], table[:, 1:5], table[:, 5:8], table[:, 8:12]
    steps = np.diff(times_ms)
    if (steps < 0).any():
        raise TrackError(f"{path}: the times of eye {eye} go back at its row {np.argmax(steps < 0) + 1}.")
    first = np.concatenate([[True], steps > 0])
    if len(table) > 1 and first.sum() == 1:
        raise TrackError(f"{path}: all times of eye {eye} are the same, so there is no motion in it.")
    with np.errstate(over="ignore"):  # infinite, and refused as too long
        lengths = np.linalg.norm(quaternions, axis=1)
    if not ((lengths > 0.5) & (lengths < 2)).all():
        raise TrackError(f"{path}: a quaternion of eye {eye} is not of length 1; the file is damaged.")

    poses = np.tile(np.eye(4), (int(first.sum()), 1, 1))
    half_turn = np.array([1.0, -1.0, -1.0])  # about x: of the world (rows) to the scene's, of the eye (columns) to ours
    poses[:, :3, :3] = half_turn[:, None] * matrix_from_quaternion(quaternions[first]) * half_turn
    poses[:, :3, 3] = positions[first] * half_turn
    focal = _focal_length(path, angles[0], width, height, fov_y_deg)
    times_s = (times_ms[first] - times_ms[0]) / 1000
    try:
        return Track(width, height, focal, focal, width / 2, height / 2, times_s, poses)
    except (CameraError, TrackError) as error:
        raise TrackError(f"{path}: {error}") from error


def _focal_length(path: Path, angles: Float64[Array, " 4"], width: int, height: int, fov_y_deg: float | None) -> float:
    """Focal length of a picture with square pixels and a central axis; a headset's frustum is asymmetric."""
    if fov_y_deg is not None:
        if not 0 < fov_y_deg < 180:
            raise TrackError(f"{path}: fov_y_deg must lie between 0 and 180, got {fov_y_deg}.")
        return float(0.5 * height / np.tan(np.radians(fov_y_deg) / 2))
    left, right, down, up = np.tan(np.clip(angles, -1.57, 1.57))
    if not (np.abs(angles) < 1.57).all() or not (right - left > 1e-3 and up - down > 1e-3):
        raise TrackError(f"{path}: the angles of view {angles.tolist()} are not a view; give fov_y_deg.")
    return float(max(width / (right - left), height / (up - down)))


def _read_table(path: Path, eye: int) -> Float64[Array, "n 12"]:
    """Time, angles of view, position and quaternion wxyz of each row of one eye."""
    reader = csv.reader(io.StringIO(_read_text(path), newline=""))
    rows: list[list[float]] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        columns = _columns(path, header)
        view_column = header.index("ViewIndex")
        for number, row in enumerate(reader, start=2):
            if not row:
                continue
            if len(row) < len(header):
                raise TrackError(f"{path}: row {number} has {len(row)} values, expected {len(header)}; was it cut off?")
            if float(row[view_column]) != eye:
                continue
            rows.append([float(row[column]) for column in columns])
            if len(rows) > MAX_FRAMES:
                raise TrackError(f"{path}: has more than {MAX_FRAMES} frames; split it.")
    except csv.Error as error:
        raise TrackError(f"{path}: is not CSV: {error}.") from error
    except ValueError as error:
        raise TrackError(f"{path}: row {number} has a value that is not a number: {error}.") from error
    if not rows:
        raise TrackError(f"{path}: has no rows of eye {eye}.")
    table = np.array(rows, dtype=np.float64)
    if not np.isfinite(table).all():
        raise TrackError(
            f"{path}: row {np.argmin(np.isfinite(table).all(axis=1))} of eye {eye} has a value not finite."
        )
    return table


def _columns(path: Path, header: list[str]) -> list[int]:
    times = [name for name in TIME_COLUMNS if name in header]
    missing = [name for name in ("ViewIndex", *FOV_COLUMNS, *POSE_COLUMNS) if name not in header]
    if missing or not times:
        expected = missing[0] if missing else " or ".join(TIME_COLUMNS)
        raise TrackError(f"{path}: has no column {expected}; is it a recording of EyeNavGS?")
    return [header.index(name) for name in (times[0], *FOV_COLUMNS, *POSE_COLUMNS)]


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise TrackError(f"{path}: is larger than {MAX_FILE_BYTES} bytes, too large for a recording.")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TrackError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise TrackError(f"{path}: is not text in UTF-8.") from error
