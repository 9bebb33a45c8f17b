"""The header of a PLY file: which elements follow it, of which properties, and where each begins."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushsplat.types.errors import SceneError

LONGEST_HEADER = 1 << 18  # bytes; ours: a splat header takes two thousand, so a longer one is no header
BYTE_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": None}
MIP_COMMENT = "SplatRenderMode: mip"
RENDER_MODES = {  # comments, to whether a scene is anti-aliased
    **{MIP_COMMENT.lower(): True, "splatrendermode: default": False, "splatrendermode: 2dgs": False},
    **{"antialiased 1": True, "antialiased 0": False},
}
TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"},
}


@dataclass(frozen=True)
class PlyElement:
    """One element of the header: `count` rows of these properties."""

    name: str
    count: int
    types: dict[str, str]  # property name to numpy type code without byte order, in the order of the file
    lists: tuple[str, ...]  # properties of varying length; rows that have any cannot be skipped or addressed

    def row(self, byte_order: str) -> np.dtype:
        """The numpy type of one binary row."""
        return np.dtype([(name, byte_order + code) for name, code in self.types.items()])


@dataclass(frozen=True)
class PlyHeader:
    """A whole header; every binary element that `begin` gives is known to lie inside the file."""

    path: str
    byte_order: str | None  # '<' or '>'; None for text
    elements: tuple[PlyElement, ...]
    length: int  # bytes, up to the first byte of data
    file_size: int  # bytes
    comments: tuple[str, ...] = ()

    @property
    def antialiased(self) -> bool:
        """By the last comment that says whether: Brush's "SplatRenderMode: mip", Postshot's "antialiased 1"."""
        lines = [" ".join(comment.lower().split()) for comment in self.comments]
        return next((RENDER_MODES[line] for line in reversed(lines) if line in RENDER_MODES), False)

    def find(self, name: str) -> PlyElement | None:
        """The element of this name, if the file has one."""
        return next((element for element in self.elements if element.name == name), None)

    def begin(self, wanted: PlyElement) -> int:
        """The byte at which a binary element begins; refuses a file that is too short to hold all of it."""
        if self.byte_order is None:
            raise SceneError(f"{self.path}: this kind of PLY must be binary, got text; export it as binary.")
        offset = self.length
        for element in self.elements:
            if element.lists:
                raise SceneError(
                    f"{self.path}: property '{element.lists[0]}' of element '{element.name}' is a list, "
                    "which a splat scene does not have; export the scene again."
                )
            end = offset + element.count * element.row(self.byte_order).itemsize
            if end > self.file_size:
                raise SceneError(
                    f"{self.path}: the header promises {element.count} rows of element '{element.name}', up to byte "
                    f"{end}, but the file has {self.file_size}; it is cut short, copy or export it again."
                )
            if element is wanted:
                break
            offset = end
        return offset


def read_header(path: str | os.PathLike[str]) -> PlyHeader:
    """Parse and check the header of a PLY file."""
    with Path(path).open("rb") as file:
        start = file.read(LONGEST_HEADER)
        file_size = file.seek(0, os.SEEK_END)
    first_line = re.match(rb"ply[ \t]*(\r\n|\n|\r)", start)
    if first_line is None:
        raise SceneError(f"{path}: not a PLY file: it does not begin with a line 'ply'.")
    newline = first_line[1]  # of the first line and so of all: after the last one, data begins at the very next byte
    last_line = re.search(newline + rb"end_header[ \t]*" + newline, start)
    if last_line is None:
        raise SceneError(
            f"{path}: the header has no end: no line 'end_header' in its first {len(start)} bytes; "
            "the file is damaged or cut short, copy or export it again."
        )
    lines = start[first_line.end() : last_line.start()].decode("utf-8", errors="replace").split(newline.decode())
    byte_order, elements = _parse_lines(str(path), lines)
    comments = tuple(line[8:] for line in lines if line.startswith("comment "))
    return PlyHeader(str(path), byte_order, elements, last_line.end(), file_size, comments)


def _parse_lines(path: str, lines: list[str]) -> tuple[str | None, tuple[PlyElement, ...]]:
    formats: list[str] = []
    elements: list[PlyElement] = []
    for line in lines:
        match line.split():
            case [] | ["comment" | "obj_info", *_]:
                pass
            case ["format", encoding, _] if encoding in BYTE_ORDERS:
                formats.append(encoding)
            case ["element", name, count] if re.fullmatch("[0-9]{1,15}", count):
                elements.append(PlyElement(name, int(count), {}, ()))
            case ["property", "list", _, _, name] if elements:
                last = elements[-1]
                elements[-1] = PlyElement(last.name, last.count, last.types, (*last.lists, name))
            case ["property", type_name, name] if elements and type_name in TYPES:
                if name in elements[-1].types:
                    raise SceneError(f"{path}: property '{name}' appears twice in element '{elements[-1].name}'.")
                elements[-1].types[name] = TYPES[type_name]
            case _:
                raise SceneError(f"{path}: header line {line[:80]!r} is not understood; the file is damaged.")
    if len(formats) != 1:
        raise SceneError(f"{path}: the header must have one line 'format', got {len(formats)}; the file is damaged.")
    names = [element.name for element in elements]
    if len(set(names)) != len(names):
        raise SceneError(f"{path}: two elements have the same name; the file is damaged.")
    return BYTE_ORDERS[formats[0]], tuple(elements)
