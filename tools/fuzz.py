"""Hostile inputs for every reader, the viewer's protocol and the results file.

    python tools/fuzz.py TARGET --minutes 10
    python tools/fuzz.py all --inputs 20000

Each input is a seed of tests/fuzz/corpus that was mutated: bytes, lines, JSON values, and what is inside gzip and zip.
Where atheris is installed (pip install atheris), coverage decides which inputs are kept and mutated again; --plain does
without. An input passes if it is read, or refused by an error of the package in one printable line, without a warning,
within 5 s of CPU time and 1 GB. Others are minimised and kept in tests/fuzz/crashes/TARGET: tests/test_fuzz.py reads
them again.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import hashlib
import io
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "fuzz"  # corpus/TARGET/*, beside/TARGET/* (files that a reader needs beside the input), crashes
MAX_SECONDS, MAX_BYTES = 5.0, 1 << 30  # of one input; CPU time, for the machine may be busy
MAX_WAIT_S = 120.0  # of one input that waits for something
MAX_INPUT = 1 << 16
NUMBERS = (0, 1, -1, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63, 2**64, 10**18)
WORDS = (
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e999",
    "-0.0",
    "5e-324",
    "9" * 400,
    "",
    "0x10",
    "²",
    "\x1b[2J",
    "a\nb",
    "\ud800",
)
UNREADABLE = (
    ValueError,
    IndexError,
    OSError,
    EOFError,
    RecursionError,
    NotImplementedError,
    zlib.error,
    zipfile.BadZipFile,
)  # what mutated seeds raise when they are taken apart
VALUES: tuple[Any, ...] = (None, True, [], {}, [[]], "", *NUMBERS, 10**400, 1e308, 5e-324, -1e-9, float("nan"), *WORDS)


@dataclass(frozen=True)
class Target:
    """What is attacked.

    Attributes:
        file: name of the input in its folder.
        kind: how it is mutated: bytes, text, json, gzip or zip.
        reader: imports what it attacks and gives the function that reads the file.
    """

    file: str
    kind: str
    reader: Callable[[], Callable[[Path], object]]


def _scene() -> Callable[[Path], object]:
    from hushsplat.home import frame_scene
    from hushsplat.io.scenes.scene import load
    from hushsplat.types.summary import summarize

    def read(path: Path) -> object:
        scene = load(path)
        return summarize(scene), frame_scene(scene, 32, 20) if len(scene) else None

    return read


def _streamed() -> Callable[[Path], object]:
    from hushsplat.io.content import levels_of_detail
    from hushsplat.io.scenes.scene import load
    from hushsplat.io.scenes.sog_stream import StreamedSog
    from hushsplat.synth import home_camera
    from hushsplat.types.errors import HushsplatError

    def read(path: Path) -> object:
        with suppress(HushsplatError):  # the level that is refused is another than those of the viewer
            load(path)
        streamed, levels = StreamedSog(path), levels_of_detail(path)
        streamed.read(streamed.coarsest)
        return levels, streamed.read(streamed.near(home_camera(32, 20), 1000))

    return read


def _capture() -> Callable[[Path], object]:
    from hushsplat.io.captures.capture import load_capture

    return lambda path: load_capture(path, require_photographs=False)


def _photograph() -> Callable[[Path], object]:
    import numpy as np

    from hushsplat.io.captures.photographs import load_photograph, photograph_size
    from hushsplat.types.camera import Camera
    from hushsplat.types.capture import View

    def read(path: Path) -> object:
        width, height = photograph_size(path)
        if width * height > 1 << 20:  # decoding large pictures is slow, not hostile
            return None
        return load_photograph(View("a", path, Camera(width, height, 20.0, 20.0, 1.0, 1.0, np.eye(4))))

    return read


def _environment() -> Callable[[Path], object]:
    from hushsplat.viewer.backdrop import read_environment

    return lambda path: read_environment(path, "around.png")


def _track() -> Callable[[Path], object]:
    from hushsplat.viewer.uploads import _read_track

    return lambda path: _read_track(path, path.name)


def _weights() -> Callable[[Path], object]:
    from hushsplat.io.weights import read_weights

    return read_weights


def _results() -> Callable[[Path], object]:
    from hushsplat.evaluation.report import WRITERS
    from hushsplat.evaluation.results import read_results

    def read(path: Path) -> object:
        found = read_results(path)
        return [write([found]) for write in WRITERS.values()]

    return read


def _protocol() -> Callable[[Path], object]:
    from hushsplat.viewer.protocol import parse_message

    return lambda path: parse_message(path.read_text("utf-8", "replace"))


def _video() -> Callable[[Path], object]:
    from hushsplat.viewer.protocol import Draw
    from hushsplat.viewer.scene_entry import SceneEntry
    from hushsplat.viewer.uploads import parsed_json
    from hushsplat.viewer.videos import VideoRequest

    entry = object.__new__(SceneEntry)  # it is not looked at
    return lambda path: VideoRequest.parse(parsed_json(path.read_bytes(), "the video"), entry, Draw())


TARGETS = {
    "ply": Target("scene.ply", "text", _scene),
    "splat": Target("scene.splat", "bytes", _scene),
    "spz": Target("scene.spz", "gzip", _scene),
    "sog": Target("scene.sog", "zip", _scene),
    "sog-stream": Target("lod-meta.json", "json", _streamed),
    "colmap-cameras": Target("cameras.bin", "bytes", _capture),
    "colmap-images": Target("images.bin", "bytes", _capture),
    "colmap-points": Target("points3D.bin", "bytes", _capture),
    "colmap-text": Target("images.txt", "text", _capture),
    "transforms": Target("transforms.json", "json", _capture),
    "inria": Target("cameras.json", "json", _capture),
    "camera-list": Target("list.json", "json", _capture),
    "llff": Target("poses_bounds.npy", "bytes", _capture),
    "photograph": Target("photograph.png", "bytes", _photograph),
    "environment": Target("around.picture", "bytes", _environment),
    "track": Target("track.json", "json", _track),
    "eyenavgs": Target("walk.csv", "text", _track),
    "weights": Target("weights.safetensors", "bytes", _weights),
    "results": Target("results.json", "json", _results),
    "protocol": Target("message.json", "json", _protocol),
    "video": Target("video.json", "json", _video),
}


class Hang(BaseException):
    """An input took too long."""


class Fuzzer:
    """Reads inputs of one target, and keeps those that do not pass."""

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        self.name, self.target, self.folder = name, TARGETS[name], folder
        self.random = random.Random(seed)
        self.seeds = corpus(name)
        self.path = folder / self.target.file
        beside = DATA / "beside" / name
        if beside.is_dir():
            shutil.copytree(beside, folder, dirs_exist_ok=True)
        self.read = self.target.reader()
        self.slowest_s = 0.0
        self.crashes: list[str] = []

    def problem(self, content: bytes) -> str | None:
        """Why an input does not pass, or None."""
        from hushsplat.types.errors import HushsplatError

        self.path.write_bytes(content)
        begin = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.read(self.path)
        except HushsplatError as error:
            if not str(error).isprintable():
                return f"the message of {type(error).__name__} is not one printable line: {str(error)!r}"
        except Hang:
            return f"takes more than {MAX_SECONDS:g} s"
        except MemoryError:
            return f"takes more than {MAX_BYTES} bytes"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        seconds = time.process_time() - begin
        self.slowest_s = max(self.slowest_s, seconds)
        return f"takes more than {MAX_SECONDS:g} s" if seconds > MAX_SECONDS else None

    def try_input(self, content: bytes) -> None:
        """Read one input; keep it if it does not pass."""
        problem = self.problem(content)
        if problem is None:
            return
        kind = problem.split(":")[0]
        if kind in self.crashes:
            return
        self.crashes.append(kind)
        small = minimised(content, lambda part: (self.problem(part) or "").split(":")[0] == kind)
        kept = DATA / "crashes" / self.name / hashlib.sha256(small).hexdigest()[:12]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(small)
        print(f"{self.name}: {problem[:200]}\n  kept as {kept.relative_to(ROOT)}", flush=True)

    def next_input(self) -> bytes:
        """A mutated seed."""
        return mutated(self.random.choice(self.seeds), self.target.kind, self.random, self.seeds)


def corpus(name: str) -> list[bytes]:
    """The seeds of a target, and inputs that failed once."""
    folders = (DATA / "corpus" / name, DATA / "crashes" / name)
    return [path.read_bytes() for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]


def mutated(content: bytes, kind: str, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """The content with a few changes that keep more or less of its structure."""
    if rng.random() < 0.75:
        with suppress(*UNREADABLE):  # then its bytes are mutated as they are
            if kind == "json":
                return _mutated_json(content, rng)
            if kind == "gzip" and content[:2] == b"\x1f\x8b":
                return gzip.compress(_mutated_bytes(gzip.decompress(content), rng, seeds), 1, mtime=0)
            if kind == "zip":
                return _mutated_zip(content, rng, seeds)
            if kind == "text":
                return _mutated_text(content, rng)
    return _mutated_bytes(content, rng, seeds)


def _mutated_bytes(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    made = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place, size = rng.randrange(len(made) + 1), rng.choice((1, 2, 4, 8, 32, 200))
        action = rng.randrange(7)
        if action == 0:
            made[place : place + 1] = bytes([rng.randrange(256)])
        elif action == 1 and place < len(made):
            made[place] ^= 1 << rng.randrange(8)
        elif action == 2:
            del made[place : place + size]
        elif action == 3:
            made[place:place] = made[place : place + size]
        elif action == 4:  # a number of any width
            code = rng.choice(("<B", "<H", "<I", ">I", "<Q", ">H"))
            width = struct.calcsize(code)
            made[place : place + width] = struct.pack(code, rng.choice(NUMBERS) % (1 << 8 * width))
        elif action == 5:
            code = rng.choice(("<f", "<d"))
            value = rng.choice((float("nan"), float("inf"), -1e38, 1e-45, 0.0, -1.0, 3.4e38))
            made[place : place + struct.calcsize(code)] = struct.pack(code, value)
        else:
            other = rng.choice(seeds)
            begin = rng.randrange(len(other) + 1)
            made[place : place + size] = other[begin : begin + size]
    if rng.random() < 0.1:
        del made[rng.randrange(len(made) + 1) :]
    return bytes(made[:MAX_INPUT])


def _mutated_text(content: bytes, rng: random.Random) -> bytes:
    """Other numbers and words, and other orders of lines; what follows a PLY header stays bytes."""
    head, mark, body = content.partition(b"end_header\n")
    lines = head.decode("latin-1").split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        place, action = rng.randrange(len(lines)), rng.randrange(5)
        if action == 0:
            del lines[place : place + rng.choice((1, 1, 5))]
        elif action == 1:
            lines.insert(place, rng.choice(lines))
        elif action == 2 and len(lines) > 1:
            other = rng.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        else:
            words = re.split(r"([\s,]+)", lines[place])
            words[rng.randrange(len(words))] = rng.choice((*WORDS, *map(str, NUMBERS), *words))
            lines[place] = "".join(words)
        lines = lines or [""]
    return ("\n".join(lines).encode("utf-8", "surrogatepass") + mark + body)[:MAX_INPUT]


def _mutated_json(content: bytes, rng: random.Random) -> bytes:
    tree = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        holders: list[Any] = []
        todo = [tree]
        while todo:
            node = todo.pop()
            if isinstance(node, (dict, list)) and node:
                holders.append(node)
                todo += node.values() if isinstance(node, dict) else node
        if not holders:
            return json.dumps(rng.choice(VALUES)).encode("utf-8", "surrogatepass")
        holder = rng.choice(holders)
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        action = rng.randrange(5)
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif action == 2:
            other = rng.choice(holders)
            holder[key] = json.loads(json.dumps(other)) if len(holders) < 2000 else None
        elif action == 3 and isinstance(holder, dict):
            holder[rng.choice(WORDS)] = holder[key]
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    return json.dumps(tree).encode("utf-8", "surrogatepass")[:MAX_INPUT]


def _mutated_zip(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    if name.endswith(".json"):
        members[name] = _mutated_json(members[name], rng)
    elif rng.random() < 0.2:
        members[name] = members[rng.choice(list(members))]
    else:
        members[name] = _mutated_bytes(members[name], rng, seeds)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for each, inside in members.items():
            archive.writestr(zipfile.ZipInfo(each), inside)
    return made.getvalue()


def minimised(content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """A part of the content that still fails: pieces are left out, large ones first."""
    size, end = len(content) // 2, time.monotonic() + 20
    while size and time.monotonic() < end:
        place = 0
        while place < len(content) and time.monotonic() < end:
            shorter = content[:place] + content[place + size :]
            if fails(shorter):
                content = shorter
            else:
                place += size
        size //= 2
    return content


def fuzz(name: str, seconds: float, inputs: int, seed: int, plain: bool) -> tuple[int, int, float]:
    """Attack one target in a process of its own: inputs, crashes, and the slowest input in seconds."""
    shared = mmap.mmap(-1, 24)  # inputs, crashes, slowest: filled by the child, also when it is killed
    with tempfile.TemporaryDirectory(prefix="hushsplat-fuzz-", dir=_memory_disk()) as temporary:
        folder = Path(temporary)
        child = os.fork()
        if child == 0:
            try:
                _attack(name, folder, seconds, inputs, seed, plain, shared)
            except BaseException as error:
                traceback.print_exception(error)
                os._exit(3)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        count, crashes, slowest = struct.unpack("<QQd", shared[:24])
        if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) not in (0,):
            kept = DATA / "crashes" / name / f"ended-{status}-{seed}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                shutil.copy(folder / TARGETS[name].file, kept)
            print(f"{name}: the process ended with status {status}; its input: {kept.relative_to(ROOT)}", flush=True)
            crashes += 1
    return count, crashes, slowest


def _attack(name: str, folder: Path, seconds: float, inputs: int, seed: int, plain: bool, shared: mmap.mmap) -> None:
    guide = None if plain else _atheris()
    if guide is not None:
        with guide.instrument_imports(include=["hushsplat"], enable_loader_override=False):
            fuzzer = Fuzzer(name, folder, seed)
    else:
        fuzzer = Fuzzer(name, folder, seed)
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, _raise_hang)
    for content in fuzzer.seeds:  # imports what is imported late, before memory is counted
        fuzzer.problem(content)
    _limit_memory()
    end, count = time.monotonic() + seconds, 0

    def attack(content: bytes) -> None:
        nonlocal count
        if guide is None:
            signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
            signal.setitimer(signal.ITIMER_REAL, MAX_WAIT_S)
        fuzzer.try_input(content)
        if guide is None:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        count += 1
        shared[:24] = struct.pack("<QQd", count, len(fuzzer.crashes), fuzzer.slowest_s)

    if guide is None:
        while time.monotonic() < end and (not inputs or count < inputs):
            attack(fuzzer.next_input())
        return
    found = folder / "found"
    found.mkdir()
    limits = [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed or 1}", f"-max_len={MAX_INPUT}"]
    limits += [f"-runs={inputs}"] if inputs else []
    limits += ["-timeout=30", "-rss_limit_mb=0", "-verbosity=0", str(found)]
    known = DATA / "corpus" / name

    def mutate(content: bytes, most: int, choice: int) -> bytes:
        return mutated(content, fuzzer.target.kind, random.Random(choice), fuzzer.seeds)[:most]

    guide.Setup([sys.argv[0], *limits, *([str(known)] if known.is_dir() else [])], attack, custom_mutator=mutate)
    guide.Fuzz()  # ends the process


def _raise_hang(number: int, frame: object) -> None:
    raise Hang


def _limit_memory() -> None:
    """An input that takes more gets a MemoryError."""
    with Path("/proc/self/statm").open() as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, used + MAX_BYTES))


def _atheris() -> Any:
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def _memory_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> int:
    """Attack one target or all, one after the other; 1 if an input did not pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target")
    parser.add_argument("--inputs", type=int, default=0, help="for each target; 0: as many as the time allows")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; the same seed makes the same inputs")
    parser.add_argument("--plain", action="store_true", help="mutate without coverage, also where atheris is installed")
    words = parser.parse_args()
    total = failed = 0
    for name in TARGETS if words.target == "all" else [words.target]:
        count, crashes, slowest = fuzz(name, 60 * words.minutes, words.inputs, words.seed, words.plain)
        print(f"{name}: {count} inputs, {crashes} failed, slowest {slowest:.2f} s", flush=True)
        total, failed = total + count, failed + crashes
    print(f"total: {total} inputs, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
