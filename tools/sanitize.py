"""The native engine under GCC's sanitizers: memory errors, undefined behaviour, data races.

    python tools/sanitize.py [address|thread|all]

`address` builds the module, all instruction sets of it, with AddressSanitizer and UndefinedBehaviorSanitizer and runs
tests of rendering, denoising and gradients with it; warnings are errors. `thread` builds tests/native/concurrency.cpp
with ThreadSanitizer and runs that. Builds are kept in build/sanitize. The exit code is 1 if anything was found.
On two cores the build takes about five minutes the first time, the tests about three.

Needs GCC, CMake and the package's extras: pip install '.[dev,learn]'
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/sanitize"
NATIVE = ROOT / "src/hushsplat/engines/cpu/native"
COMPILER = os.environ.get("CXX", "g++")
SCRIPTS = Path(sys.executable).parent  # not resolved: the scripts of a virtual environment lie beside its own python

LOADED = ("libasan", "libstdc++")  # the second, or exceptions are not seen by the first
# float-cast-overflow is no part of `undefined`: C++ leaves float to int undefined where the number does not fit.
ADDRESS = "address,undefined,float-cast-overflow"
TESTS = (
    "tests/engines/test_native_arguments.py",
    "tests/engines/test_scene_upload.py",
    "tests/engines/test_engine_robustness.py",
    "tests/engines/test_engine_decode.py",
    "tests/engines/test_engine_threads.py",
    "tests/engines/test_engine_equals_twin.py",
    "tests/engines/test_active_set.py",
    "tests/engines/test_denoise_engine.py",
    "tests/engines/test_baselines.py",
    "tests/engines/test_raster.py",
    "tests/training/test_losses.py",
)
# These take minutes and pass the same code again and again.
LEFT_OUT = "not thousands_of_frames and not finite_differences and not memory_beside and not test_engine_equals_twin["
FINDINGS = ("runtime error:", "ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "ERROR: ThreadSanitizer")


def main() -> int:
    """Run what is asked for; 1 if anything was found."""
    wanted = sys.argv[1:] or ["all"]
    if len(wanted) != 1 or wanted[0] not in ("address", "thread", "all"):
        print(__doc__, file=sys.stderr)
        return 2
    checks = {"thread": thread, "address": address}
    return int(any([check() for name, check in checks.items() if wanted[0] in (name, "all")]))


def address() -> bool:
    """Whether the tests fail, or the sanitizers find anything while they run."""
    if program("tile_lists", ("threads", "scene"), ADDRESS):
        return True
    folder = BUILD / "address"
    say("building the module with AddressSanitizer and UndefinedBehaviorSanitizer; minutes, the first time")
    configure = (
        *(_tool("cmake"), "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"),
        *(f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DPython_EXECUTABLE={sys.executable}"),
        *(f"-DHUSH_SANITIZE={ADDRESS}", "-DCMAKE_CXX_FLAGS=-Werror"),
    )
    build = (_tool("cmake"), "--build", str(folder), "--parallel", str(os.cpu_count() or 1))
    for command, output in ((configure, subprocess.DEVNULL), (build, None)):
        if subprocess.run(command, stdout=output, check=False).returncode:
            return True
    package = folder / "package"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src/hushsplat", package / "hushsplat", ignore=shutil.ignore_patterns("*.so", "native"))
    for module in folder.glob("_engine*.so"):
        shutil.copy(module, package / "hushsplat/engines/cpu")
    libraries = (
        subprocess.check_output((COMPILER, f"-print-file-name={name}.so"), text=True).strip() for name in LOADED
    )
    environment = {
        "PYTHONPATH": str(package),
        "LD_PRELOAD": " ".join(libraries),  # Python itself is not built with it
        "ASAN_OPTIONS": "detect_leaks=0",  # Python never frees some of its memory
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    where = "import hushsplat.engines.cpu._engine as e; print(e.__file__)"
    loaded = subprocess.run(
        (sys.executable, "-c", where), env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False
    )
    if str(package) not in loaded.stdout:
        say(f"Python loads another module, {loaded.stdout.strip()}: is the package installed as editable?")
        return True
    say("testing")
    command = (sys.executable, "-m", "pytest", "-q", "--capture=sys", "-p", "no:cacheprovider", "-k", LEFT_OUT, *TESTS)
    return found_anything(command, environment)


def thread() -> bool:
    """Whether ThreadSanitizer finds anything in what threads share."""
    return program("concurrency", ("threads", "scene", "dispatch"), "thread")


def program(name: str, sources: tuple[str, ...], sanitizers: str) -> bool:
    """Whether tests/native/NAME.cpp, built with some of the engine's sources, fails or a sanitizer finds anything."""
    BUILD.mkdir(parents=True, exist_ok=True)
    files = (ROOT / "tests/native" / f"{name}.cpp", *(NATIVE / f"{source}.cpp" for source in sources))
    say(f"tests/native/{name}.cpp with {sanitizers}")
    flags = ("-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(NATIVE))
    command = (COMPILER, *flags, f"-fsanitize={sanitizers}", *map(str, files), "-o", str(BUILD / name))
    if subprocess.run(command, check=False).returncode:
        return True
    return found_anything((str(BUILD / name),), {"TSAN_OPTIONS": "die_after_fork=0"})


def found_anything(command: tuple[str, ...], environment: dict[str, str]) -> bool:
    """Run a command, show what it says, and say whether it failed or a sanitizer spoke."""
    findings = 0
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        while piece := process.stdout.readline():
            print(piece, end="", flush=True)
            findings += any(finding in piece for finding in FINDINGS)
    if findings or process.returncode:
        say(f"{findings} findings, exit code {process.returncode}")
    return bool(findings or process.returncode)


def say(line: str) -> None:
    """One line of progress."""
    print(f"sanitize: {line}", flush=True)


def _tool(name: str) -> str:
    beside = SCRIPTS / name
    return str(beside) if beside.is_file() else name


if __name__ == "__main__":
    raise SystemExit(main())
