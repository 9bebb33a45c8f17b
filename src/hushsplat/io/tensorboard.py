"""TensorBoard's event files, as far as numbers over steps need them: no dependency, a few dozen lines.

A file is a row of records (length, its checksum, content, its checksum), each an `Event` of protocol buffers.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

CRC32C = 0x82F63B78  # the polynomial, reversed
MASK = 0xA282EAD8
SESSION_START = 1


class EventWriter:
    """Appends events to a file of its own in the folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"events.out.tfevents.{int(time.time()):010d}.{os.getpid()}"
        self._file = self.path.open("ab")
        self._write(_bytes_field(3, b"brain.Event:2"))

    def begin_session(self, step: int) -> None:
        """Steps after this one that an earlier file has will be made again: TensorBoard forgets them."""
        self._write(_integer_field(2, step) + _bytes_field(7, _integer_field(1, SESSION_START)))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """One number per name at a step."""
        summary = b"".join(
            _bytes_field(1, _bytes_field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
            for name, value in values.items()
        )
        self._write(_integer_field(2, step) + _bytes_field(5, summary))

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    def _write(self, content: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + content
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))
        self._file.flush()


def _integer_field(number: int, value: int) -> bytes:
    return bytes([number << 3]) + _varint(value)


def _bytes_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (CRC32C if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def _checksum(content: bytes) -> bytes:
    """CRC32C, turned and shifted as the format wants it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF)
