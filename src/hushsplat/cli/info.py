"""`hushsplat info`: what is in a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hushsplat.cli.console import bytes_text, results
from hushsplat.cli.flags import AnyPath, Flag, MaybeInt
from hushsplat.engines.cpu.machine import default_threads, instruction_set
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.content import ContentKind, content_kind, levels_of_detail, scene_format
from hushsplat.io.scenes.sog_members import bytes_on_disk
from hushsplat.io.tracks import load_track
from hushsplat.scenes import PREFIX, NamedScene, framing_level, scene_argument
from hushsplat.types.capture import Capture
from hushsplat.types.errors import HushsplatError, printable
from hushsplat.types.summary import summarize
from hushsplat.types.track import Track
from hushsplat.types.up import up_text

DESCRIPTION = """Say what is in a scene, a capture or a track.

Examples of use:
  hushsplat info garden.ply           a scene: how many Gaussians, how large, where, which way is up
  hushsplat info flowers/ --lod 2     one level of detail of a streamed SOG
  hushsplat info capture/             photographs with cameras: COLMAP, transforms.json or LLFF
  hushsplat info walk.json            a camera track, also a .csv of EyeNavGS
  hushsplat info garden.ply --json    the same as one JSON object, for scripts
  hushsplat info --engines            what can draw on this machine
"""
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Info:
    """Say what is in a scene, a capture or a track."""

    path: AnyPath = ""  # a scene, a capture or a track; or synth:500k for a scene made by code
    engines: Flag = False  # list the engines and GPU adapters of this machine instead
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    json: Flag = False  # print one JSON object instead of a table

    def run(self) -> None:
        """Read the file, print what it holds."""
        if bool(self.path) == self.engines:
            raise HushsplatError("give a scene, a capture or a track; or --engines alone.")
        content = _engines() if self.engines else self._content()
        if self.json:
            print(json.dumps(content))
            return
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for key, value in content.items():
            if key == "up":
                value = f"{value} ({content['up_by']})"
            if value is not None and key != "up_by":
                table.add_row(Text(key.replace("_", " "), style="bold"), Text(_text(key, value)))
        results().print(table)

    def _content(self) -> dict[str, Any]:
        if self.path.startswith(PREFIX):
            return {"format": "made by code", **_scene(scene_argument(self.path, self.lod))}
        path = Path(self.path)
        kind = content_kind(path)
        if kind != ContentKind.SCENE and self.lod is not None:
            raise HushsplatError(f"{path}: is a {kind.value}, which has no levels of detail; leave out --lod.")
        if kind == ContentKind.CAPTURE:
            return _capture(load_capture(path, require_photographs=False))
        if kind == ContentKind.TRACK:
            return _track(load_track(path))
        levels = levels_of_detail(path)
        level = self.lod
        if level is None and levels:  # a coarse level says nearly the same, and at once
            level = framing_level(levels)
        named = scene_argument(self.path, level)
        found = {
            "format": scene_format(path, named.gaussians),
            "bytes_on_disk": bytes_on_disk(path),
            "levels_of_detail": levels,
        }
        if levels and self.lod is None:
            found |= {"statistics_of_level": level}
        content = {**found, **_scene(named)}
        return content if self.lod is not None or not levels else {**content, "gaussians": levels[min(levels)]}


def _engines() -> dict[str, Any]:
    """What can draw here."""
    found: dict[str, Any] = {"cpu": f"{instruction_set()}, {default_threads()} threads"}
    found["torch"] = "yes" if find_spec("torch") else "no; pip install 'hushsplat[learn]'"
    if not find_spec("wgpu"):
        return {**found, "gpu": "no; pip install 'hushsplat[gpu]'"}
    from hushsplat.engines.webgpu.adapters import NO_ADAPTER, adapters

    listed = {f"gpu_{each.number}": f"{each}, {each.driver}" for each in adapters()}
    return {**found, **(listed or {"gpu": NO_ADAPTER})}


def _scene(named: NamedScene) -> dict[str, Any]:
    up = None if named.known_up is None else up_text(named.known_up)
    return {**asdict(summarize(named.gaussians, named.framing, up)), "up_by": named.up_by}


def _capture(capture: Capture) -> dict[str, Any]:
    sizes = sorted({(view.camera.width, view.camera.height) for view in capture.views})
    return {
        "format": "capture",
        "views": len(capture.views),
        "held_out": len(capture.held_out),
        "sizes": [f"{width}×{height}" for width, height in sizes],
        "focal_px": round(capture.views[0].camera.fx, 3),
        "lens": "pinhole" if all(view.distortion is None for view in capture.views) else "distorted",
        "photographs": sum(view.image_path.is_file() for view in capture.views),
        "points": None if capture.points is None else len(capture.points),
        "first_view": capture.views[0].name,
    }


def _track(track: Track) -> dict[str, Any]:
    return {
        "format": "track",
        "frames": len(track),
        "seconds": round(track.duration_s, 3),
        "frames_per_second": round((len(track) - 1) / track.duration_s, 3) if len(track) > 1 else None,
        "size": f"{track.width}×{track.height}",
        "focal_px": round(track.fx, 3),
    }


def _text(key: str, value: Any) -> str:
    """A value as the table shows it."""
    if key in ("sizes", "opacities") and isinstance(value, dict):
        return _distribution(key, value)
    if key in ("bounds", "bulk"):
        return "   ".join(f"{axis} {low:.4g} .. {high:.4g}" for axis, low, high in zip("xyz", *value, strict=True))
    if key.startswith("bytes"):
        return bytes_text(value)
    if key == "levels_of_detail":
        return ", ".join(f"{level} ({count:,})" for level, count in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(printable, map(str, value)))
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _distribution(key: str, spread: dict[str, Any]) -> str:
    """Percentiles and a little histogram in letters."""
    highest = max(spread["counts"])
    bars = "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // highest)] for count in spread["counts"])
    span = f"{10 ** spread['low']:.2g} .. {10 ** spread['high']:.2g}, log" if key == "sizes" else "0 .. 1"
    percentiles = "   ".join(f"{percent} % {value:.3g}" for percent, value in spread["percentiles"].items())
    return f"{percentiles}\n|{bars}| {span}"
