"""PlayCanvas' SOG (Spatially Ordered Gaussians), version 2: a meta.json and lossless WebP pictures, a Gaussian a pixel.

https://developer.playcanvas.com, "The SOG Format".
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64, UInt8
from numpy import ndarray as Array
from PIL import Image

from hushsplat.io.scenes.sanitize import checked, refuse_bomb
from hushsplat.io.scenes.sog_members import Members, open_members, plain_name
from hushsplat.io.strict_json import Fields, parse_json_object
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians

META = "meta.json"
META_BYTES_MAX = 4 << 20  # ours: three codebooks are 15 KiB
SLACK_PIXELS = 4096  # ours: pictures may have up to twice the pixels they need, and this
FIRST_MODE = 252  # SOG: the alpha of a quaternion is this plus the index of its largest component, in w, x, y, z
CODEBOOK_ENTRIES = 256  # SOG: a byte per value
PALETTE_MAX = 65536  # SOG: two bytes per label
PALETTE_ROW = 64  # SOG: palette entries in a row of the picture of centroids
MAX_COUNT = 80_000_000  # ours: SOG's pictures could hold 268 million, ten times what tools write
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

    @property
    def pixels(self) -> int:
        """Of the picture of centroids."""
        return -(-self.count // PALETTE_ROW) * PALETTE_ROW * ((self.degree + 1) ** 2 - 1)


@dataclass(frozen=True)
class SogMeta:
    """A checked meta.json: what the pictures hold and the names of their files."""

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

    @property
    def decoded_bytes(self) -> int:
        """Of the Gaussians as float32, and of the pictures that they are decoded from."""
        coefficients = (self.palette.degree + 1) ** 2 if self.palette else 1
        return self.count * 4 * (3 + 3 + 4 + 1 + 3 * coefficients + len(self.files))


@dataclass(frozen=True)
class Loaded:
    """The pictures of a scene, read and not yet decoded."""

    where: Callable[[str], str]  # what errors call a file
    contents: dict[str, bytes]

    @staticmethod
    def of(members: Members, meta: SogMeta) -> Loaded:
        """Read all pictures; none may have more bytes than the most pixels that it may have."""
        most = {name: _most_pixels(meta.count) for name in meta.files}
        if meta.palette is not None:
            most[meta.palette.centroids_file] = _most_pixels(meta.palette.pixels)
        # Lossless WebP is never larger than its pixels, but for headers.
        return Loaded(members.where, {name: members.read(name, 4 * pixels + 65536) for name, pixels in most.items()})


def read_sog(path: str | os.PathLike[str]) -> Gaussians:
    """Read a `.sog` bundle, a folder with a meta.json, or that meta.json.

    The scene is made of ellipsoids, unless its meta.json tags it as 2DGS: then of surfels.
    """
    path = Path(path)
    with open_members(path) as members:
        name = path.name if path.suffix.lower() == ".json" else META
        meta = parse_meta(members.where(name), members.read(name, META_BYTES_MAX))
        refuse_bomb(members.where(name), meta.count, meta.decoded_bytes, sum(map(members.size, set(meta.files))))
        pictures = Loaded.of(members, meta)
        # Zeros behind a picture are no part of it, they do not count.
        picture_bytes = sum(len(content.rstrip(b"\0")) for content in pictures.contents.values())
        refuse_bomb(members.where(name), meta.count, meta.decoded_bytes, picture_bytes)
        means = _means(pictures, meta)
        scales = np.exp(meta.scales_codebook)[_pixels(pictures, meta.scales_file, meta.count)[:, :3]]
        rotations = _rotations(pictures, meta)
        sh0 = _pixels(pictures, meta.sh0_file, meta.count)
        sh = meta.sh0_codebook[sh0[:, None, :3]]
        if meta.palette is not None:
            sh = np.concatenate([sh, _higher_bands(pictures, meta.palette, meta.count)], axis=1)
        if meta.is_surfels:
            scales = scales[:, :2]
        return checked(path, means, scales, rotations, sh0[:, 3] / np.float32(255), sh)


def _means(pictures: Loaded, meta: SogMeta) -> Float32[Array, "n 3"]:
    low, high = (_pixels(pictures, name, meta.count)[:, :3].astype(np.uint16) for name in meta.means_files)
    share = (low | high << 8) / 65535
    logarithms = meta.means_min + (meta.means_max - meta.means_min) * share
    return (np.sign(logarithms) * np.expm1(np.abs(logarithms))).astype(np.float32)


def _rotations(pictures: Loaded, meta: SogMeta) -> Float32[Array, "n 4"]:
    pixels = _pixels(pictures, meta.quats_file, meta.count)
    modes = pixels[:, 3]
    if len(modes) and modes.min() < FIRST_MODE:
        raise SceneError(
            f"{pictures.where(meta.quats_file)}: alpha of Gaussian {modes.argmin()} is {modes.min()}, "
            "expected 252 to 255; the picture is damaged or was compressed with loss."
        )
    stored = (pixels[:, :3] / np.float32(127.5) - 1) * np.float32(np.sqrt(0.5))
    largest = np.sqrt(np.maximum(0, 1 - (stored * stored).sum(axis=1)))
    rotations = np.empty((len(pixels), 4), np.float32)
    for mode in range(4):
        rows = modes == FIRST_MODE + mode
        rotations[rows] = np.insert(stored[rows], mode, largest[rows], axis=1)
    return rotations


def _higher_bands(pictures: Loaded, palette: Palette, count: int) -> Float32[Array, "n k 3"]:
    coefficients = (palette.degree + 1) ** 2 - 1
    name = palette.centroids_file
    picture = _picture(pictures, name, 1, _most_pixels(palette.pixels))
    if picture.shape[1] != PALETTE_ROW * coefficients:
        raise SceneError(
            f"{pictures.where(name)}: is {picture.shape[1]} pixels wide, expected {PALETTE_ROW * coefficients} for "
            f"{palette.degree} SH bands."
        )
    entries = picture[..., :3].reshape(-1, coefficients, 3)[: palette.count]
    pixels = _pixels(pictures, palette.labels_file, count)
    labels = pixels[:, 0] | pixels[:, 1].astype(np.uint16) << 8
    if len(labels) and labels.max() >= len(entries):
        raise SceneError(
            f"{pictures.where(palette.labels_file)}: the label of Gaussian {labels.argmax()} is {labels.max()}, but "
            f"the palette has {len(entries)} entries."
        )
    return palette.codebook[entries][labels]


def _pixels(pictures: Loaded, name: str, count: int) -> UInt8[Array, "n 4"]:
    """One RGBA value for each Gaussian."""
    return _picture(pictures, name, count, _most_pixels(count)).reshape(-1, 4)[:count]


def _picture(pictures: Loaded, name: str, fewest: int, most: int) -> UInt8[Array, "h w 4"]:
    """A WebP picture as RGBA; its size is checked before memory is allocated for its pixels."""
    content, where = pictures.contents[name], pictures.where(name)
    width, height = _webp_size(where, content)
    if not fewest <= width * height <= most:
        raise SceneError(f"{where}: has {width}×{height} pixels, expected {fewest} to {most}; the picture is damaged.")
    try:
        with Image.open(BytesIO(content), formats=["WEBP"]) as image:
            pixels = np.asarray(image.convert("RGBA"))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise SceneError(f"{where}: the WebP picture is damaged: {error}.") from error
    if pixels.shape != (height, width, 4):
        raise SceneError(f"{where}: has {pixels.shape[1]}×{pixels.shape[0]} pixels, but says {width}×{height}.")
    return pixels


def _most_pixels(needed: int) -> int:
    return 2 * needed + SLACK_PIXELS


def _webp_size(where: str, content: bytes) -> tuple[int, int]:
    """Width and height from the header of a lossless still WebP picture."""
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        raise SceneError(f"{where}: is not a WebP picture.")
    offset = 12
    while offset + 13 <= len(content):
        kind, size = struct.unpack_from("<4sI", content, offset)
        if kind == b"VP8L" and content[offset + 8] == 0x2F:
            (bits,) = struct.unpack_from("<I", content, offset + 9)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        if kind in (b"VP8 ", b"ANIM", b"ANMF"):  # what follows is not the picture that will be decoded
            break
        offset += 8 + size + size % 2
    raise SceneError(f"{where}: is not a lossless still WebP picture; SOG needs exact pixels.")


def parse_meta(where: str, text: bytes) -> SogMeta:
    """Check a meta.json; `where` names it in errors."""
    meta = Fields(where, parse_json_object(where, text, SceneError), SceneError)
    if "version" not in meta.values:
        raise SceneError(f"{where}: version is missing: SOG version 1 is not read; convert it with splat-transform.")
    if meta.values["version"] != 2:
        raise meta.refusal("version", meta.values["version"], "2")
    means, scales, quats, sh0 = (meta.nested(key) for key in ("means", "scales", "quats", "sh0"))
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
        palette=_palette(meta.nested("shN")) if meta.values.get("shN") is not None else None,
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
