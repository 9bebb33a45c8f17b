"""Programs in C++ that test parts of the native engine which Python cannot reach."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "src/hushsplat/engines/cpu/native"
SECONDS = 300  # a program that takes longer hangs


def run_program(name: str, sources: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile tests/native/NAME.cpp with some of the engine's sources, and run it."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.fail("parts of the engine are tested in C++: install a compiler, or name one in CXX.")
    files = [ROOT / "tests/native" / f"{name}.cpp", *(NATIVE / source for source in sources)]
    program = folder / name
    flags = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(NATIVE))
    built = subprocess.run(
        (compiler, *flags, *map(str, files), "-o", str(program)), capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return subprocess.run((str(program),), capture_output=True, text=True, check=False, timeout=SECONDS)
