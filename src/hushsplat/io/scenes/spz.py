"""Niantic's SPZ: versions 1 to 3 (one gzip stream) and 4 (a plain header and a zstd stream per attribute).

SPZ stores y up and z back (RUB) where PLY, and so `Gaussians`, have y down and z forward (RDF): reading and writing
turn the scene by 180° about x, as the reference library does. A file may name other axes in an extension of Adobe's.
"""

from __future__ import annotations

import gzip
import importlib
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from hushsplat.io.atomic import atomic_write
from hushsplat.io.progress import progressed
from hushsplat.io.scenes import spz_packing as packing
from hushsplat.io.scenes.sanitize import checked, refuse_bomb, refuse_unwritable, three_scales
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import MAX_SH_DEGREE, Gaussians

MAGIC = b"NGSP"
HEADER = struct.Struct("<4sIIBBBB")  # magic, version, count, SH degree, fractional bits, flags, streams (version 4)
HEADER_V4_BYTES = 32  # HEADER, then the offset of the table of streams and 12 reserved bytes
WRITTEN_VERSIONS = (4, 3)  # the first by default; readers of 2025 know 3
ANTIALIASED, HAS_EXTENSIONS = 0x1, 0x2
COORDINATE_SYSTEM = 0xADBE0003  # an extension: one uint32, the axis system
EXTENSION_BYTES_READ = 65536  # ours: of the extensions behind a gzip stream; the one we want has 12

ZSTD_LEVEL = 12  # ours: smaller than gzip's 6 and as fast
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Header:
    """The first 16 bytes, checked."""

    version: int
    count: int
    sh_degree: int
    fractional_bits: int
    flags: int
    streams: int  # version 4 only

    @property
    def attribute_bytes(self) -> list[int]:
        """The sizes of positions, opacities, colours, scales, rotations and SH, in the order of the file."""
        position = 6 if self.version == 1 else 9
        rotation = 3 if self.version <= 2 else 4
        rest = 3 * ((self.sh_degree + 1) ** 2 - 1)
        return [self.count * size for size in (position, 1, 3, 3, rotation, rest)]


def read_spz(path: str | os.PathLike[str]) -> Gaussians:
    """Read an SPZ file of version 1 to 4 and SH degree 0 to 3, as ellipsoids with PLY's axes (y down, z forward)."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start[:2] == b"\x1f\x8b":
                header, attributes, extensions = _read_gzip(path, file)
            elif start == MAGIC:
                header, attributes, extensions = _read_version_4(path, file)
            else:
                raise SceneError(f"{path}: starts with {start!r}; an SPZ file starts with gzip data or {MAGIC!r}.")
    except OSError as error:  # gzip's own errors are OSErrors without a number
        raise SceneError(f"{path}: cannot be read: {error.strerror or error}.") from error
    return _decoded(path, header, attributes, _axis_system(path, extensions))


def write_spz(gaussians: Gaussians, path: str | os.PathLike[str], version: int = WRITTEN_VERSIONS[0]) -> None:
    """Write an SPZ file of version 4, or 3 for older readers; it has no room for a denoiser payload.

    Positions have as many fractional bits as fit 24 bits, rotations 10 bits for each of three components, the rest a
    byte per value: scales in steps of 6 %, clamped to 4.5e-5 .. 380 units, opacities 1/255, the constant SH band 0.026
    up to ±3.3, the others 1/128 within ±1. Surfels become ellipsoids of the smallest thickness that SPZ knows, 4.5e-5.
    """
    refuse_unwritable(path, gaussians)
    if version not in WRITTEN_VERSIONS:
        raise SceneError(f"{path}: SPZ version {version} is not written; choose 4, or 3 for older readers.")
    bits = packing.fitting_fractional_bits(gaussians.means)
    if bits is None:
        raise SceneError(
            f"{path}: a position of {abs(gaussians.means).max():g} does not fit SPZ's 24 bits; "
            f"keep positions within ±{packing.FIXED_POINT_MAX} or write a PLY."
        )
    flips = packing.flips_to_rdf(packing.RUB)
    colors, rest = packing.pack_sh(gaussians.sh * packing.sh_signs(flips, gaussians.sh_degree)[:, None])
    attributes = [
        packing.pack_positions(gaussians.means * flips, bits),
        packing.pack_opacities(gaussians.opacities),
        colors,
        packing.pack_scales(three_scales(gaussians)),
        packing.pack_smallest_three(gaussians.rotations * packing.quaternion_signs(flips)),
        rest,
    ]
    streams = [attribute for attribute in attributes if attribute] if version == 4 else []
    flags = ANTIALIASED * gaussians.antialiased
    header = HEADER.pack(MAGIC, version, len(gaussians), gaussians.sh_degree, bits, flags, len(streams))
    if version == 4:
        content = _version_4(path, header, streams)
    else:
        content = gzip.compress(b"".join([header, *attributes]), 6, mtime=0)
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def _version_4(path: str | os.PathLike[str], header: bytes, streams: list[bytes]) -> bytes:
    """The header with the offset of the table of streams, the table, and the streams that are not empty."""
    zstd = _zstd_module(path)
    packed = [zstd.compress(stream, ZSTD_LEVEL) for stream in streams]
    table = b"".join(struct.pack("<QQ", len(small), len(large)) for small, large in zip(packed, streams, strict=True))
    offset = struct.pack("<I", HEADER_V4_BYTES)
    return b"".join([(header + offset).ljust(HEADER_V4_BYTES, b"\0"), table, *packed])


def _checked_header(path: str | os.PathLike[str], raw: bytes, file_bytes: int) -> Header:
    if len(raw) < HEADER.size:
        raise SceneError(f"{path}: ends inside the SPZ header of {HEADER.size} bytes; the file is truncated.")
    magic, version, *fields = HEADER.unpack(raw[: HEADER.size])
    if magic != MAGIC:
        raise SceneError(f"{path}: the gzip stream holds {magic!r}, not the {MAGIC!r} of an SPZ file.")
    if not 1 <= version <= 4:
        raise SceneError(f"{path}: SPZ version {version} is not known, only 1 to 4; export the scene as one of these.")
    header = Header(version, *fields)
    if header.sh_degree > MAX_SH_DEGREE:
        raise SceneError(f"{path}: SH degree {header.sh_degree} is not supported; export with degree 0 to 3.")
    if header.fractional_bits > 30:
        raise SceneError(f"{path}: {header.fractional_bits} fractional bits of 24 make no sense; the file is damaged.")
    refuse_bomb(path, header.count, sum(header.attribute_bytes), file_bytes)
    return header


def _read_gzip(path: str | os.PathLike[str], file: BinaryIO) -> tuple[Header, list[bytes], bytes]:
    """Versions 1 to 3: header, attributes and extensions behind each other in one gzip stream."""
    file_bytes = os.fstat(file.fileno()).st_size
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            header = _checked_header(path, stream.read(HEADER.size), file_bytes)
            if header.version > 3:
                raise SceneError(f"{path}: SPZ version {header.version} inside gzip; only versions 1 to 3 are gzipped.")
            attributes = [_read_exactly(path, stream.read, size) for size in header.attribute_bytes]
            extensions = stream.read(EXTENSION_BYTES_READ) if header.flags & HAS_EXTENSIONS else b""
    except (EOFError, zlib.error) as error:
        raise SceneError(f"{path}: the gzip stream is truncated or damaged ({error}).") from error
    return header, attributes, extensions


def _read_exactly(path: str | os.PathLike[str], read: Callable[[int], bytes], size: int) -> bytes:
    # In pieces: read(size) would allocate all of it before the first byte is there.
    pieces = []
    while size:
        piece = read(min(size, CHUNK_BYTES))
        if not piece:
            raise SceneError(f"{path}: ends {size} bytes too early; the file is truncated.")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _read_version_4(path: str | os.PathLike[str], file: BinaryIO) -> tuple[Header, list[bytes], bytes]:
    """Version 4: header, extensions, a table of the streams' sizes and one zstd stream per attribute that is there."""
    file_bytes = os.fstat(file.fileno()).st_size
    raw = file.read(HEADER_V4_BYTES)
    header = _checked_header(path, raw, file_bytes)
    if header.version != 4:
        raise SceneError(f"{path}: SPZ version {header.version} must be gzipped, this file is plain; it is damaged.")
    sizes = [size for size in header.attribute_bytes if size]
    (table_offset,) = struct.unpack_from("<I", raw.ljust(HEADER_V4_BYTES, b"\0"), HEADER.size)
    if header.streams != len(sizes) or not HEADER_V4_BYTES <= table_offset <= file_bytes - 16 * len(sizes):
        raise SceneError(
            f"{path}: {header.streams} streams with their table at byte {table_offset} of {file_bytes}, "
            f"expected {len(sizes)} streams and a table inside the file; the file is damaged."
        )
    extensions = file.read(table_offset - HEADER_V4_BYTES)
    table = struct.unpack(f"<{2 * len(sizes)}Q", file.read(16 * len(sizes)))
    if list(table[1::2]) != sizes or sum(table[::2]) > file_bytes - file.tell():
        raise SceneError(
            f"{path}: the table of streams says {table[1::2]} bytes from {table[::2]} compressed ones, expected "
            f"{tuple(sizes)} from what the file holds; the file is truncated or damaged."
        )
    streams = [
        _zstd_decompressed(path, file.read(packed), size) for packed, size in zip(table[::2], sizes, strict=True)
    ]
    return header, streams + [b""] * (6 - len(streams)), extensions if header.flags & HAS_EXTENSIONS else b""


def _zstd_decompressed(path: str | os.PathLike[str], packed: bytes, size: int) -> bytes:
    zstd = _zstd_module(path)
    # A frame may ask for a window of memory larger than what it holds: no more than the size, but at least 8 MiB.
    window = {zstd.DecompressionParameter.window_log_max: min(31, max(23, size.bit_length()))}
    try:
        content: bytes = zstd.ZstdDecompressor(options=window).decompress(packed, max_length=size)
    except zstd.ZstdError as error:
        raise SceneError(f"{path}: a zstd stream is damaged ({error}).") from error
    if len(content) != size:
        raise SceneError(f"{path}: a zstd stream holds {len(content)} bytes, expected {size}; the file is damaged.")
    return content


def _zstd_module(path: str | os.PathLike[str]) -> ModuleType:
    for name in ("compression.zstd", "backports.zstd"):  # Python 3.14 brings the first
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise SceneError(f"{path}: SPZ version 4 needs zstd; install it with: pip install backports.zstd")


def _axis_system(path: str | os.PathLike[str], extensions: bytes) -> int:
    """The number of the axis system that the extensions name, or RUB; other extensions are skipped."""
    offset = 0
    while offset + 8 <= len(extensions):
        kind, size = struct.unpack_from("<II", extensions, offset)
        content = extensions[offset + 8 : offset + 8 + size]
        offset += 8 + size
        if kind != COORDINATE_SYSTEM or len(content) < 4:
            continue
        (system,) = struct.unpack_from("<I", content)
        if system > packing.LAST_Y_UP_SYSTEM:
            raise SceneError(
                f"{path}: stored with axis system {system}, whose z points up or down; only 1 to "
                f"{packing.LAST_Y_UP_SYSTEM} are supported, export the scene with y up or down."
            )
        return system or packing.RUB  # 0 means: not said
    return packing.RUB


def _decoded(path: str | os.PathLike[str], header: Header, attributes: list[bytes], system: int) -> Gaussians:
    positions, opacities, colors, scales, rotations, rest = attributes
    progressed(0.4)  # it is decompressed
    if header.version == 1:
        means = packing.unpack_half_positions(positions)
    else:
        means = packing.unpack_positions(positions, header.fractional_bits)
    unpack_rotations = packing.unpack_first_three if header.version <= 2 else packing.unpack_smallest_three
    flips = packing.flips_to_rdf(system)
    sh = packing.unpack_sh(colors, rest, header.sh_degree)
    sh *= packing.sh_signs(flips, header.sh_degree)[:, None]
    progressed(0.8)
    scene = checked(
        path,
        means * flips,
        packing.unpack_scales(scales),
        unpack_rotations(rotations) * packing.quaternion_signs(flips),
        packing.unpack_opacities(opacities),
        sh,
    )
    return replace(scene, antialiased=bool(header.flags & ANTIALIASED))
