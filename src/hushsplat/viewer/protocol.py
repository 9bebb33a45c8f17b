"""The messages of the WebSocket: those from the page are checked field by field, or refused in one line.

Text messages are JSON objects with a `type`. Frames and screenshots are sent as binary messages: the length of a JSON
header (uint32, little endian), the header, and the encoded pictures one after the other.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.io.strict_json import Fields, described
from hushsplat.methods import LEARNED, METHODS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.views import SHOWN
from hushsplat.spec.weights import MIN_GAMMA
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.types.settings import declared

MAX_MESSAGE_BYTES = 1 << 16  # of a text message; the longest that the page sends has some hundreds
MAX_SIDE_PX = 8192  # of a canvas
MAX_FAR = 1e9  # world units: how far a camera may be from the origin
MAX_SAMPLES = 64  # per pixel and frame
MAX_GAMMA = 1e4
RGB = tuple[float, float, float]
ENVIRONMENT = "environment"  # as background: the picture that the page has sent
PICTURE = "picture"  # shown unless a view, an intermediate result of the denoiser, is asked for
# Settings that the page may change: those with a slider, as in static/settings.js.
TUNABLE = tuple(name for name, each in declared(DenoiserSettings).items() if each.slider is not None)


@dataclass(frozen=True)
class Look:
    """The page's camera.

    Attributes:
        camera: of the canvas' own size.
        sequence: number of this message; the frame that it leads to repeats it.
    """

    camera: Camera
    sequence: int


@dataclass(frozen=True)
class Side:
    """What one side of the page shows.

    Attributes:
        method: that draws it.
        show: its picture, or a view of a learned denoiser.
    """

    method: str
    show: str = PICTURE


@dataclass(frozen=True)
class Draw:
    """How to draw.

    Attributes:
        sides: one, or two with a divider between them.
        samples: per pixel and frame.
        settings: of the learned denoisers.
        gamma: of the gate; None: that of the weights.
        adapt: whether frames may have fewer pixels while the camera moves.
        background: None: that of the viewer; one colour, two (above, below), or ENVIRONMENT.
    """

    sides: tuple[Side, ...] = (Side("hush"),)
    samples: int = 1
    settings: DenoiserSettings = field(default_factory=DenoiserSettings)
    gamma: float | None = None
    adapt: bool = True
    background: tuple[RGB, ...] | str | None = None


@dataclass(frozen=True)
class Hold:
    """Whether a hand is on the camera: then it counts as moving, also while it stands still."""

    held: bool


@dataclass(frozen=True)
class Acknowledge:
    """The page has shown a frame; the next one may be sent."""

    frame: int


@dataclass(frozen=True)
class Probe:
    """Asks for the point of the scene at a pixel."""

    request: int
    x: float  # 0..1 from left to right
    y: float  # 0..1 from top to bottom


@dataclass(frozen=True)
class Shot:
    """Asks for a screenshot."""

    request: int
    divider: float  # 0..1: where the second side begins


@dataclass(frozen=True)
class Home:
    """Asks for a camera that frames the scene, with this up direction."""

    up: Float64[Array, " 3"]


@dataclass(frozen=True)
class Walls:
    """Asks how far surfaces are from a point, to all sides and farther than `near`."""

    point: Float64[Array, " 3"]
    near: float


@dataclass(frozen=True)
class CancelVideo:
    """Stop the video that is being made."""


@dataclass(frozen=True)
class CloseFile:
    """Show the server's own scene again."""


Message = Look | Draw | Hold | Acknowledge | Probe | Shot | Home | Walls | CancelVideo | CloseFile


def parse_message(text: str) -> Message:
    """The message in a text, or a ViewError that says what is wrong with it."""
    if len(text) > MAX_MESSAGE_BYTES:
        raise ViewError(f"a message of {len(text)} characters was refused; the limit is {MAX_MESSAGE_BYTES}.")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: syntax or endless digits
        raise ViewError(f"a message was refused: it is not JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ViewError(f"a message was refused: it is {described(content)}, expected an object.")
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _PARSERS:
        raise ViewError(f"a message was refused: type is {described(kind)}, expected one of {', '.join(_PARSERS)}.")
    try:
        return _PARSERS[kind](Fields(f"the message '{kind}' was refused", content, ViewError))
    except ViewError:
        raise
    except HushsplatError as error:
        raise ViewError(f"the message '{kind}' was refused: {error}") from error


def pinhole(pose: Float64[Array, "4 4"], fov_y_deg: float, width: int, height: int) -> Camera:
    """A camera with one focal length and its axis through the middle of the picture."""
    if not 1 <= fov_y_deg <= 170:
        raise ViewError(f"fov_y_deg is {fov_y_deg:g}, expected 1 to 170 degrees.")
    if not np.abs(pose[:3, 3]).max() <= MAX_FAR:
        raise ViewError(f"the camera is farther than {MAX_FAR:g} from the origin.")
    focal = 0.5 * height / math.tan(math.radians(fov_y_deg) / 2)
    return Camera(width, height, focal, focal, width / 2, height / 2, pose)


def pack(header: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """A binary message."""
    encoded = json.dumps({**header, "lengths": [len(part) for part in parts]}).encode()
    return b"".join([struct.pack("<I", len(encoded)), encoded, *parts])


def _look(message: Fields) -> Look:
    width, height = message.pixels("width"), message.pixels("height")
    if max(width, height) > MAX_SIDE_PX:
        raise ViewError(f"{message.where}: {width}×{height} px are more than {MAX_SIDE_PX} a side.")
    camera = pinhole(message.pose("world_from_camera"), message.number("fov_y_deg"), width, height)
    return Look(camera, _count(message, "sequence"))


def _draw(message: Fields) -> Draw:
    sides = tuple(_side(Fields(message.where, side, ViewError)) for side in message.objects("sides"))
    if len(sides) > 2:
        raise ViewError(f"{message.where}: {len(sides)} sides came, expected one or two.")
    samples = message.number("samples", 1.0)
    if samples != round(samples) or not 1 <= samples <= MAX_SAMPLES:
        raise ViewError(f"{message.where}: samples is {samples:g}, expected a whole number from 1 to {MAX_SAMPLES}.")
    gamma = message.number("gamma") if message.values.get("gamma") is not None else None
    if gamma is not None and not MIN_GAMMA <= gamma <= MAX_GAMMA:
        raise ViewError(f"{message.where}: gamma is {gamma:g}, expected {MIN_GAMMA:g} to {MAX_GAMMA:g}.")
    chosen = message.values.get("config", {})
    if not isinstance(chosen, dict) or not set(chosen) <= set(TUNABLE):
        raise ViewError(f"{message.where}: config is {described(chosen)}, expected an object of {', '.join(TUNABLE)}.")
    numbers = Fields(message.where, chosen, ViewError)
    settings: dict[str, Any] = {name: numbers.number(name) for name in chosen}
    adapt = message.values.get("adapt", True)
    if not isinstance(adapt, bool):
        raise ViewError(f"{message.where}: adapt is {described(adapt)}, expected true or false.")
    return Draw(sides, int(samples), DenoiserSettings(**settings), gamma, adapt, _background(message))


def _background(message: Fields) -> tuple[RGB, ...] | str | None:
    given = message.values.get("background")
    if given is None or given == ENVIRONMENT:
        return given
    if not isinstance(given, list) or len(given) not in (1, 2):
        raise ViewError(f"{message.where}: background is {described(given)}, expected one or two colours.")
    colors = []
    for color in given:
        x, y, z = _three(message, "background", color)
        if not 0 <= min(x, y, z) <= max(x, y, z) <= 1:
            raise ViewError(f"{message.where}: background is {described(given)}, expected colours of 0 to 1.")
        colors.append((x, y, z))
    return tuple(colors)


def _three(message: Fields, key: str, given: Any) -> tuple[float, float, float]:
    if not isinstance(given, list) or len(given) != 3:
        raise ViewError(f"{message.where}: {key} is {described(given)}, expected three numbers.")
    numbered = Fields(message.where, dict(zip("xyz", given, strict=True)), ViewError)
    x, y, z = (numbered.number(axis) for axis in "xyz")
    return x, y, z


def _side(side: Fields) -> Side:
    method, show = side.values.get("method"), side.values.get("show", PICTURE)
    if not isinstance(method, str) or method not in METHODS:
        raise ViewError(f"{side.where}: method is {described(method)}, expected one of {', '.join(METHODS)}.")
    if show not in (PICTURE, *SHOWN):
        raise ViewError(f"{side.where}: show is {described(show)}, expected one of {PICTURE}, {', '.join(SHOWN)}.")
    if show != PICTURE and method not in LEARNED:
        raise ViewError(f"{side.where}: {method} has no view '{show}'; {' and '.join(LEARNED)} have.")
    return Side(method, show)


def _hold(message: Fields) -> Hold:
    held = message.values.get("held")
    if not isinstance(held, bool):
        raise ViewError(f"{message.where}: held is {described(held)}, expected true or false.")
    return Hold(held)


def _acknowledge(message: Fields) -> Acknowledge:
    return Acknowledge(_count(message, "frame"))


def _probe(message: Fields) -> Probe:
    return Probe(_count(message, "request"), _share(message, "x"), _share(message, "y"))


def _shot(message: Fields) -> Shot:
    return Shot(_count(message, "request"), _share(message, "divider"))


def _home(message: Fields) -> Home:
    direction = np.array(_three(message, "up", message.values.get("up")))
    length = math.hypot(*direction)
    if not 1e-6 < length < MAX_FAR:
        raise ViewError(f"{message.where}: up has the length {length:g}, expected a direction.")
    return Home(direction / length)


def _walls(message: Fields) -> Walls:
    point, near = np.array(_three(message, "point", message.values.get("point"))), message.number("near")
    if not np.abs(point).max() <= MAX_FAR or not 0 < near <= MAX_FAR:
        raise ViewError(f"{message.where}: point or near is outside of {MAX_FAR:g}.")
    return Walls(point, near)


def _count(message: Fields, key: str) -> int:
    value = message.number(key)
    if value != round(value) or not 0 <= value <= 2**53:
        raise ViewError(f"{message.where}: {key} is {described(value)}, expected a whole number >= 0.")
    return int(value)


def _share(message: Fields, key: str) -> float:
    value = message.number(key)
    if not 0 <= value <= 1:
        raise ViewError(f"{message.where}: {key} is {value:g}, expected 0 to 1.")
    return value


_PARSERS: dict[str, Callable[[Fields], Message]] = {
    "look": _look,
    "draw": _draw,
    "hold": _hold,
    "ack": _acknowledge,
    "probe": _probe,
    "shot": _shot,
    "home": _home,
    "walls": _walls,
    "cancel-video": lambda message: CancelVideo(),
    "close-file": lambda message: CloseFile(),
}
