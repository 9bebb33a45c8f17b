"""`hushsplat convert`: from any format that is read to any that is written."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from hushsplat.cli.console import bytes_text, say, status
from hushsplat.cli.flags import Flag, Force, MaybeInt, MaybeOutput, MaybeTarget, SceneName
from hushsplat.io.atomic import check_output, new_folder
from hushsplat.io.scenes.scene import STREAMED, save, writer_of
from hushsplat.io.scenes.sog_members import bytes_on_disk
from hushsplat.scenes import PREFIX, scene_argument
from hushsplat.types.errors import HushsplatError
from hushsplat.types.gaussians import Gaussians, with_min_opacity, with_sh_degree

DESCRIPTION = """Write a scene in another format.

PLY keeps everything, .splat, .spz and .sog are small and lossy.

Examples of use:
  hushsplat convert garden.ply garden.sog                  a tenth of the size
  hushsplat convert flowers/lod-meta.json flowers.ply --lod 1
  hushsplat convert garden.ply garden/lod-meta.json        levels of detail in a folder, to view large scenes at once
  hushsplat convert garden.ply light.spz --sh-degree 0 --min-opacity 0.02
  hushsplat convert synth:200k room.ply                    our own scene as a 2DGS file
"""


@dataclass(frozen=True)
class Convert:
    """Write a scene in another format."""

    source: SceneName  # the scene to read; or synth:500k for a scene made by code
    target: MaybeTarget = None  # the file to write: .ply, .splat, .spz, .sog or FOLDER/lod-meta.json
    output: MaybeOutput = None  # TARGET, as other commands take it
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    sh_degree: MaybeInt = None  # 0..3: keep the spherical harmonics up to this degree only
    min_opacity: float = 0.0  # 0..1: leave out Gaussians that are more transparent than this
    spz_version: MaybeInt = None  # of an .spz: 4 if not said, 3 for older readers
    force: Force = False
    quiet: Flag = False  # print nothing

    def run(self) -> None:
        """Read, thin out, write, and say what it came to."""
        named = [path for path in (self.target, self.output) if path is not None]
        if len(named) != 1:
            raise HushsplatError("convert needs one TARGET; see `hushsplat convert --help`.")
        (target,) = named
        writer_of(target, self.spz_version)  # refuses what cannot be written before anything is read
        with new_folder(target.parent) if target.name == STREAMED else nullcontext():
            self._write(target)

    def _write(self, target: Path) -> None:
        check_output(target, self.force)
        with status(f"reading {self.source}", self.quiet):
            scene = scene_argument(self.source, self.lod).gaussians
        before = len(scene)
        scene = with_min_opacity(scene, self.min_opacity)
        if self.sh_degree is not None:
            scene = with_sh_degree(scene, self.sh_degree)
        with status(f"writing {target}", self.quiet):
            save(scene, target, spz_version=self.spz_version)
        if self.quiet:
            return
        written = bytes_on_disk(target)
        read = None if self.source.startswith(PREFIX) else bytes_on_disk(Path(self.source))
        sizes = f"{bytes_text(written)}" if read is None else f"{bytes_text(read)} → {bytes_text(written)}"
        kept = f"{before:,}" if before == len(scene) else f"{before:,} → {len(scene):,}"
        say(f"{self.source} → {target}: {kept} Gaussians, {sizes}{_dropped(scene, target)}")


def _dropped(scene: Gaussians, target: Path) -> str:
    """What the format of this file cannot keep of the scene (docs/formats.md)."""
    suffix = ".sog" if target.name == STREAMED else target.suffix.lower()
    is_splat = suffix == ".splat"
    dropped = ["spherical harmonics"] * (is_splat and scene.sh_degree > 0)
    dropped += ["anti-aliasing"] * (is_splat and scene.antialiased)
    dropped += ["the payload"] * (suffix != ".ply" and scene.payload is not None)
    return f"; {suffix} drops {' and '.join(dropped)}" if dropped else ""
