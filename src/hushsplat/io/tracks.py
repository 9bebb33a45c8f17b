"""Camera tracks on disk: our own JSON (docs/tracks.md), EyeNavGS recordings, and flights through captures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat.io.atomic import atomic_write
from hushsplat.io.captures.camera_list import INRIA_LIST
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.captures.photographs import is_file
from hushsplat.io.eyenavgs import read_eyenavgs
from hushsplat.io.strict_json import MAX_JSON_BYTES, Fields, read_json_object
from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError, TrackError
from hushsplat.types.paths import track_from_cameras
from hushsplat.types.track import MAX_FRAMES, Track

FORMAT = "hushsplat-track"
VERSION = 1
CONVENTION = "opencv"  # x right, y down, z forward; pixel centres at +0.5
EXPECTED = "a track is our JSON, the cameras of a capture (transforms.json, cameras.json of 3DGS) or a .csv of EyeNavGS"
KINDS = (  # keys of the JSON of others
    ({"means", "sh0"}, "the description of a SOG scene, not a track"),
    ({"lodLevels"}, "the description of a streamed scene, not a track"),
    ({"asset", "scenes"}, "a mesh of glTF, not a track"),
)
SECONDS_PER_VIEW = 0.5  # ours: how long a flight through a capture takes from one photograph to the next
SECONDS_PER_FRAME = 1 / 30  # and through a list that is a camera path already
# Ours: a step to the next camera that is no larger belongs to a path, one that is three times as large to photographs.
# The published path through bicycle turns by 0.4 degrees a step and moves by 0.01; bonsai's photographs: 3.7 and 0.07.
PATH_TURN_DEG, PATH_MOVE = 1.0, 0.02  # of the median distance of cameras to their middle


def load_track(
    path: str | Path,
    *,
    eye: int = 0,
    seconds: float | None = None,
    fps: float = 30.0,
) -> Track:
    """Load a camera track: our JSON, an EyeNavGS recording (.csv), or a flight past the cameras of a capture.

    Args:
        path: of a .json or .csv file, or of a capture.
        eye: of an EyeNavGS recording: 0 left, 1 right.
        seconds: of a flight through a capture; None: half a second for each photograph, 1/30 s for each camera of a
            path whose cameras are close to each other (docs/tracks.md).
        fps: of a flight through a capture; other tracks keep their own times.

    Returns:
        The track.

    Raises:
        TrackError: in one line that names the file and what is wrong with it.
    """
    path = Path(path)
    if is_file(path) and path.suffix.lower() == ".csv":
        return read_eyenavgs(path, eye=eye)
    if is_file(path) and path.suffix.lower() == ".json":
        content = read_json_object(path, TrackError, INRIA_LIST)
        if "format" in content:
            return track_from_json(path, content)
        if not {"frames", INRIA_LIST} & content.keys():
            raise TrackError(f"{path}: is {_kind(content)}; {EXPECTED}.")
    if not path.is_dir() and not is_file(path):
        raise TrackError(f"{path}: does not exist; a track is a .json, a .csv of EyeNavGS or the folder of a capture.")
    cameras = [view.camera for view in load_capture(path, require_photographs=False).views]
    return track_from_cameras(cameras, _flight_seconds(cameras) if seconds is None else seconds, fps)


def _kind(content: Mapping[str, Any]) -> str:
    """What a JSON object that is neither a track nor a list of cameras seems to be."""
    for keys, kind in KINDS:
        if keys <= content.keys():
            return kind
    return "no track"


def _flight_seconds(cameras: Sequence[Camera]) -> float:
    """How long a flight past these cameras takes: by how far each is from the next, in the median."""
    poses = np.stack([camera.world_from_camera for camera in cameras])
    positions, axes = poses[:, :3, 3], poses[:, :3, :3]
    extent = np.median(np.linalg.norm(positions - np.median(positions, axis=0), axis=1))
    moves = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    traces = np.einsum("nij,nij->n", axes[1:], axes[:-1])
    turns_deg = np.degrees(np.arccos(np.clip((traces - 1) / 2, -1, 1)))
    if not len(moves):
        return SECONDS_PER_VIEW
    moved = np.median(moves) / (PATH_MOVE * extent) if extent > 0 else 0.0
    step = max(moved, np.median(turns_deg) / PATH_TURN_DEG)
    return len(cameras) * float(np.interp(step, [1, 3], [SECONDS_PER_FRAME, SECONDS_PER_VIEW]))


def read_track(path: str | Path) -> Track:
    """A track as `write_track` writes it."""
    path = Path(path)
    return track_from_json(path, read_json_object(path, TrackError))


def write_track(track: Track, path: str | Path) -> None:
    """Write a track so that reading gives back every bit of it; one frame a line, for people and for diffs."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for piece in track_json(track):
            file.write(piece)
        if file.tell() > MAX_JSON_BYTES:
            raise TrackError(f"{path}: {len(track)} frames are too many for one file; split the track.")


def track_json(track: Track) -> Iterator[str]:
    """The text of a track's file, piece by piece."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "convention": CONVENTION,
        "width": track.width,
        "height": track.height,
        "fx": float(track.fx),
        "fy": float(track.fy),
        "cx": float(track.cx),
        "cy": float(track.cy),
    }
    frames = (
        json.dumps({"time_s": time, "world_from_camera": pose})  # Python writes floats so that they read back the same
        for time, pose in zip(track.times_s.tolist(), track.world_from_camera.tolist(), strict=True)
    )
    yield f'{json.dumps(head)[:-1]}, "frames": [\n'
    for index, frame in enumerate(frames):
        yield frame if index == 0 else ",\n" + frame
    yield "\n]}\n"


def track_from_json(path: str | Path, content: dict[str, Any]) -> Track:
    """The track that an object of our JSON describes; `path` is what errors call it."""
    fields = Fields(str(path), content, TrackError)
    for key, expected in (("format", FORMAT), ("version", VERSION), ("convention", CONVENTION)):
        value = fields.values.get(key)
        if value != expected or isinstance(value, bool):
            raise fields.refusal(key, value, repr(expected))
    frames = fields.objects("frames")
    if len(frames) > MAX_FRAMES:
        raise TrackError(f"{path}: {len(frames)} frames are more than {MAX_FRAMES}; split the track.")
    times, poses = np.empty(len(frames)), np.empty((len(frames), 4, 4))
    for index, frame in enumerate(frames):
        one = Fields(f"{path}: frame {index}", frame, TrackError)
        times[index] = one.number("time_s")
        poses[index] = one.pose("world_from_camera")
    fx, fy, cx, cy = (fields.number(key) for key in ("fx", "fy", "cx", "cy"))
    width, height = fields.pixels("width"), fields.pixels("height")
    try:
        return Track(width, height, fx, fy, cx, cy, times, poses)
    except (CameraError, TrackError) as error:
        raise TrackError(f"{path}: {error}") from error
