"""The meta.json of a SOG scene (version 2), checked."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray as Array

from hushsplat.io.scenes.sog_members import plain_name
from hushsplat.io.strict_json import Fields, parse_json_object
from hushsplat.types.errors import SceneError

CODEBOOK_ENTRIES = 256  # SOG: a byte per value
PALETTE_MAX = 65536  # SOG: two bytes per label
PALETTE_ROW = 64  # SOG: palette entries in a row of the picture of centroids
MAX_COUNT = 80_000_000  # ours: SOG's pictures could hold 268 million, ten times what anybody writes in one
MAX_LOG = 80.0  # ours: e^80 is still a float32
MAX_SH = 1e6  # ours: colours are about 1


@dataclass(frozen=True)
class Palette:
    """The higher SH bands: a palette of them, and a label per Gaussian."""

    degree: int  # 1 to 3
    count: int  # entries of the palette
    codebook: Float32[Array, " 256"]
    centroids_file: str
    labels_file: str


@dataclass(frozen=True)
class SogMeta:
    """What the pictures of a scene mean and where they are."""

    count: int
    is_surfels: bool  # the third scale is only there for readers that need one
    means_min: Float64[Array, " 3"]  # of sign(x)·ln(|x| + 1)
    means_max: Float64[Array, " 3"]
    means_files: tuple[str, str]  # low bytes, high bytes
    scales_codebook: Float32[Array, " 256"]  # logarithms
    scales_file: str
    quats_file: str
    sh0_codebook: Float32[Array, " 256"]
    sh0_file: str
    palette: Palette | None

    @property
    def files(self) -> list[str]:
        """The names of all pictures."""
        palette = [self.palette.centroids_file, self.palette.labels_file] if self.palette else []
        return [*self.means_files, self.scales_file, self.quats_file, self.sh0_file, *palette]


def parse_meta(where: str, text: bytes) -> SogMeta:
    """Check a meta.json; `where` names it in errors."""
    meta = Fields(where, parse_json_object(where, text, SceneError), SceneError)
    if "version" not in meta.values:
        raise SceneError(f"{where}: version is missing: SOG version 1 is not read; convert it with splat-transform.")
    if meta.values["version"] != 2:
        raise meta.refusal("version", meta.values["version"], "2")
    means, scales, quats, sh0 = (meta.object(key) for key in ("means", "scales", "quats", "sh0"))
    low, high = _files(means, 2)
    return SogMeta(
        count=meta.integer("count", 0, MAX_COUNT),
        is_surfels=meta.values.get("model") == "2dgs",
        means_min=np.array(means.numbers("mins", 3, MAX_LOG)),
        means_max=np.array(means.numbers("maxs", 3, MAX_LOG)),
        means_files=(low, high),
        scales_codebook=_codebook(scales, MAX_LOG),
        scales_file=_files(scales, 1)[0],
        quats_file=_files(quats, 1)[0],
        sh0_codebook=_codebook(sh0, MAX_SH),
        sh0_file=_files(sh0, 1)[0],
        palette=_palette(meta.object("shN")) if meta.values.get("shN") is not None else None,
    )


def _palette(record: Fields) -> Palette:
    centroids, labels = _files(record, 2)
    return Palette(
        degree=record.integer("bands", 1, 3),
        count=record.integer("count", 1, PALETTE_MAX),
        codebook=_codebook(record, MAX_SH),
        centroids_file=centroids,
        labels_file=labels,
    )


def _files(record: Fields, count: int) -> list[str]:
    return [plain_name(record.where, name) for name in record.names("files", count)]


def _codebook(record: Fields, limit: float) -> Float32[Array, " 256"]:
    values = record.values.get("codebook")
    if isinstance(values, list) and len(values) == CODEBOOK_ENTRIES and values[0] is None:
        # Early splat-transform wrote null for its first entry; the PlayCanvas engine extrapolates it from the others.
        others = replace(record, values={"codebook": values[1:]}).numbers("codebook", CODEBOOK_ENTRIES - 1, limit)
        return np.array([others[0] + (others[0] - others[-1]) / 255, *others], np.float32)
    return np.array(record.numbers("codebook", CODEBOOK_ENTRIES, limit), np.float32)
