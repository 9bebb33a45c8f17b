"""Write rendered frames to one picture, numbered pictures or a video, by the name of the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import count
from pathlib import Path

from hushsplat.io.atomic import check_output
from hushsplat.io.images import PICTURE_SUFFIXES, save_image
from hushsplat.io.video import DEFAULT_CRF, VIDEO_SUFFIXES, video_writer
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Pixels
from hushsplat.types.track import Track

NUMBER = re.compile(r"%(0[1-9])?d")
IN_FOLDER = "%05d.png"
STILL_FPS = 30.0  # of a track with one frame


class OutputKind(Enum):
    """What frames can be written to."""

    PICTURE = "one picture"
    NUMBERED = "numbered pictures"
    FOLDER = "numbered pictures in a folder that is there"
    VIDEO = "a video"


Write = Callable[[Pixels], None]


@contextmanager
def frame_writer(path: Path, seen: Camera | Track, crf: int = DEFAULT_CRF) -> Iterator[Write]:
    """A function that writes the frames of a camera or a track, one after the other.

    A folder gets numbered pictures; a video only appears when the block ends without an exception.
    """
    frames = len(seen) if isinstance(seen, Track) else 1
    kind = output_kind(path)
    if kind is OutputKind.VIDEO:
        if not isinstance(seen, Track):
            raise HushsplatError(f"{path}: a video needs a moving camera: --orbit, --track or --walk; or write a .png.")
        with video_writer(path, seen.width, seen.height, frame_rate(seen), crf) as video:
            yield video.write
    elif kind is OutputKind.PICTURE:
        if frames > 1:
            raise HushsplatError(f"{path}: {frames} frames need a video (.mp4) or numbers (frames/%04d.png).")
        yield lambda color: save_image(color, path)
    else:
        pattern = path / IN_FOLDER if kind is OutputKind.FOLDER else path
        try:
            pattern.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HushsplatError(f"{path}: its folder cannot be made: {error.strerror or error}.") from error
        numbers = count()
        yield lambda color: save_image(color, pattern.with_name(pattern.name % next(numbers)))


def check_frames_output(path: Path, force: bool) -> None:
    """Refuse an output before the work for it begins; see `check_output`. Numbered pictures are new or of a folder."""
    kind = output_kind(path)
    if kind in (OutputKind.PICTURE, OutputKind.VIDEO):
        check_output(path, force)
        return
    pattern = path / IN_FOLDER if kind is OutputKind.FOLDER else path
    first = pattern.with_name(pattern.name % 0)
    if pattern.parent.is_dir():
        check_output(first, force)


def output_kind(path: Path) -> OutputKind:
    """What the name of an output asks for; names that fit nothing are refused."""
    suffix = path.suffix.lower()
    if path.is_dir():
        return OutputKind.FOLDER
    if suffix in VIDEO_SUFFIXES:
        return OutputKind.VIDEO
    if suffix not in PICTURE_SUFFIXES:
        names = ", ".join((*PICTURE_SUFFIXES, *VIDEO_SUFFIXES))
        wrong = f"cannot write '{suffix}'" if suffix else "has no ending and is no folder"
        raise HushsplatError(f"{path}: {wrong}; end the name in {names}, or give a folder that is there.")
    if "%" not in path.name:
        return OutputKind.PICTURE
    if path.name.count("%") != 1 or not NUMBER.search(path.name):
        raise HushsplatError(f"{path}: numbered pictures have one number in their name, such as frames/%04d.png.")
    return OutputKind.NUMBERED


def frame_rate(track: Track) -> float:
    """Frames a second, on average."""
    return (len(track) - 1) / track.duration_s if len(track) > 1 else STILL_FPS
