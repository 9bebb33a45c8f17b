"""A device of an adapter: buffers from a pool, shaders bound by the names that they declare, work in one submission."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import wgpu
from numpy import ndarray as Array

from hushsplat.engines.webgpu.adapters import Adapter
from hushsplat.types.errors import EngineError

SHADERS = files("hushsplat.engines.webgpu") / "shaders"
INCLUDE = re.compile(r"^//!include (\w+)\n", re.MULTILINE)
BINDING = re.compile(r"@group\(0\) @binding\((\d+)\) var(?:<[^>]*>)? (\w+): ([^;]+);")
STRUCT = re.compile(r"struct (\w+) \{(.*?)\n\}", re.DOTALL)
OVERRIDE = re.compile(r"^override (\w+):", re.MULTILINE)
FIELD = re.compile(r"(\w+): (f32|u32|i32),")
LIMITS = {  # WebGPU's defaults: what runs here runs in a browser
    "max-texture-dimension-2d": 8192,
    "max-bind-groups": 4,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffers-per-shader-stage": 12,
    "max-uniform-buffer-binding-size": 64 << 10,
    "max-inter-stage-shader-variables": 16,
    "max-color-attachment-bytes-per-sample": 32,
    "max-compute-workgroup-storage-size": 16 << 10,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroups-per-dimension": 65535,
}
LARGER = ("max-storage-buffer-binding-size", "max-buffer-size")  # as large as the adapter has them
OPTIONAL_FEATURES = ("float32-blendable", "timestamp-query")
POOLED = 8  # buffers of one size that wait for their next use
USAGE = (
    wgpu.BufferUsage.STORAGE
    | wgpu.BufferUsage.UNIFORM
    | wgpu.BufferUsage.INDIRECT
    | wgpu.BufferUsage.COPY_SRC
    | wgpu.BufferUsage.COPY_DST
)


@cache
def source(name: str) -> str:
    """A shader with the files that it includes, each once."""
    included: list[str] = []

    def text_of(each: str) -> str:
        included.append(each)
        text = (SHADERS / f"{each}.wgsl").read_text(encoding="utf-8")
        return INCLUDE.sub(lambda found: "" if found[1] in included else text_of(found[1]), text)

    return text_of(name)


@cache
def struct_fields(shader: str, struct: str) -> tuple[tuple[str, str], ...]:
    """Name and type of each field of a struct that a shader declares; all have four bytes.

    An underscore at the end, which keeps a reserved word of WGSL apart, is no part of the name.
    """
    bodies = dict(STRUCT.findall(source(shader)))
    return tuple((name.rstrip("_"), kind) for name, kind in FIELD.findall(bodies[struct]))


def packed(shader: str, struct: str, values: Mapping[str, Any]) -> bytes:
    """The values of a struct's fields as the shader reads them."""
    fields = struct_fields(shader, struct)
    if {name for name, _ in fields} != set(values):
        raise ValueError(f"{struct} has the fields {[name for name, _ in fields]}, got {list(values)}")
    kinds = {"f32": np.float32, "u32": np.uint32, "i32": np.int32}
    words = [np.array([values[name]]).astype(kinds[kind]).view(np.uint32)[0] for name, kind in fields]
    return np.array(words, dtype=np.uint32).tobytes()


def declared(shader: str, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the constants that a shader has."""
    found = OVERRIDE.findall(source(shader))
    return {name: value for name, value in constants.items() if name in found}


class Pool:
    """Buffers of one size. It holds those in use, too: a garbage collection must not release what comes back here."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.used: dict[int, Any] = {}

    def take(self, create: Callable[[], Any]) -> Any:
        """One that waits, or a new one."""
        try:
            native = self.waiting.pop()
        except IndexError:
            native = create()
        self.used[id(native)] = native
        return native

    def give_back(self, native: Any) -> None:
        """Nobody uses it any more."""
        self.used.pop(id(native), None)
        if len(self.waiting) < POOLED:
            self.waiting.append(native)


class Buffer:
    """Memory of the device; it goes back to the pool when nobody holds it."""

    def __init__(self, native: Any, pool: Pool) -> None:
        self.native, self._pool = native, pool

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.native.size

    def __del__(self) -> None:
        self._pool.give_back(self.native)


@dataclass(frozen=True)
class Part:
    """Some bytes of a buffer, as a resource; they begin at a multiple of 256."""

    buffer: Buffer
    offset: int
    bytes: int


@dataclass(frozen=True)
class Indirect:
    """Where the number of workgroups of a dispatch lies."""

    buffer: Buffer
    offset: int


class Pass:
    """A pipeline and the names of what it binds."""

    def __init__(self, device: Any, shader: str, pipeline: Any) -> None:
        self.device, self.pipeline, self.shader = device, pipeline, shader
        self.bindings = [(int(place), name) for place, name, _ in BINDING.findall(source(shader))]

    def bound(self, resources: Mapping[str, Any]) -> Any:
        """A bind group of buffers and texture views by the names in the shader."""
        entries = []
        for place, name in self.bindings:
            found = resources[name]
            if isinstance(found, Buffer):
                found = {"buffer": found.native, "offset": 0, "size": found.bytes}
            elif isinstance(found, Part):
                found = {"buffer": found.buffer.native, "offset": found.offset, "size": found.bytes}
            entries.append({"binding": place, "resource": found})
        return self.device.create_bind_group(layout=self.pipeline.get_bind_group_layout(0), entries=entries)


class Timestamps:
    """When each pass of one submission began and ended, on the GPU's own clock."""

    MOST = 2048  # of one query set, half as many passes

    def __init__(self, device: Device) -> None:
        self._device = device
        self._queries = device.native.create_query_set(type="timestamp", count=self.MOST)
        self._names: list[str] = []

    def writes(self, name: str) -> dict[str, Any] | None:
        """Of the next pass; None when there is no room left."""
        first = 2 * len(self._names)
        if first + 2 > self.MOST:
            return None
        self._names.append(name)
        place = {"beginning_of_pass_write_index": first, "end_of_pass_write_index": first + 1}
        return {"query_set": self._queries, **place}

    def resolve(self, encoder: Any) -> Callable[[], dict[str, float]]:
        """Called after the submission: milliseconds by name. A pass that the driver gives no time for is left out."""
        count = 2 * len(self._names)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        resolved = self._device.native.create_buffer(size=max(8 * count, 8), usage=usage)
        if count:
            encoder.resolve_query_set(self._queries, 0, count, resolved, 0)

        def times_ms() -> dict[str, float]:
            ticks = self._device.read_native(resolved, np.uint64)[:count].astype(np.int64).reshape(-1, 2)
            found: dict[str, float] = defaultdict(float)
            for name, (begin, end) in zip(self._names, ticks, strict=True):
                if end > begin:
                    found[name] += (end - begin) / 1e6
            return dict(found)

        return times_ms


class Work:
    """Commands that are submitted together."""

    def __init__(self, encoder: Any, timestamps: Timestamps | None = None) -> None:
        self.encoder, self.timestamps = encoder, timestamps
        self._compute: Any = None
        self._held: list[Any] = []  # until submission, or the pool would give a buffer out again before it is read

    def bind(self, onto: Any, step: Pass, resources: Mapping[str, Any]) -> None:
        """Set the pipeline and its resources."""
        self._held.append(resources)
        onto.set_pipeline(step.pipeline)
        onto.set_bind_group(0, step.bound(resources))

    def run(self, step: Pass, groups: tuple[int, int] | Indirect, /, **resources: Any) -> None:
        """A compute pass over so many workgroups."""
        if self._compute is None:
            self._compute = self.encoder.begin_compute_pass(timestamp_writes=self._writes(step.shader))
        self.bind(self._compute, step, resources)
        if isinstance(groups, Indirect):
            self._held.append(groups)
            self._compute.dispatch_workgroups_indirect(groups.buffer.native, groups.offset)
        else:
            self._compute.dispatch_workgroups(*groups)
        if self.timestamps is not None:
            self.end_compute()  # passes are timed one by one

    def _writes(self, name: str) -> dict[str, Any] | None:
        return None if self.timestamps is None else self.timestamps.writes(name)

    def clear(self, buffer: Buffer) -> None:
        """Fill with zeros."""
        self.end_compute()
        self._held.append(buffer)
        self.encoder.clear_buffer(buffer.native)

    @contextmanager
    def render(self, name: str, colors: Sequence[dict[str, Any]], depth: dict[str, Any] | None = None) -> Iterator[Any]:
        """A render pass into these attachments."""
        self.end_compute()
        drawing = self.encoder.begin_render_pass(
            color_attachments=list(colors), depth_stencil_attachment=depth, timestamp_writes=self._writes(name)
        )
        yield drawing
        drawing.end()

    def end_compute(self) -> None:
        """What follows is no compute pass."""
        if self._compute is not None:
            self._compute.end()
            self._compute = None


class Device:
    """Runs shaders on one adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        offered = adapter.native
        larger = {name: offered.limits[name] for name in LARGER}
        features = [name for name in OPTIONAL_FEATURES if name in offered.features]
        try:
            self.native = offered.request_device_sync(required_features=features, required_limits=LIMITS | larger)
        except RuntimeError as error:
            raise EngineError(f"{adapter} cannot be used: {_cause(error)}; choose another adapter.") from None
        self.features = frozenset(features)
        self.most_bytes = min(larger.values())  # of one buffer
        self._pools: dict[int, Pool] = defaultdict(Pool)
        self._passes: dict[Any, Pass] = {}
        self._staging: Any = None
        self.is_timed = False  # each submission is waited for, and the times of its passes are added up
        self.passes_ms: dict[str, float] = defaultdict(float)

    @property
    def held_bytes(self) -> int:
        """Of all buffers, those that wait for their next use and the staging buffer too."""
        staging = 0 if self._staging is None else self._staging.size
        return staging + sum(size * (len(pool.used) + len(pool.waiting)) for size, pool in self._pools.items())

    def buffer(self, size: int) -> Buffer:
        """Memory of so many bytes, its content undefined."""
        size = max(-(-size // 16) * 16, 16)
        if size > self.most_bytes:
            raise EngineError(
                f"{self.adapter} has at most {self.most_bytes >> 20} MiB in one buffer, {size >> 20} are needed; "
                "draw a smaller picture or use the cpu engine."
            )
        pool = self._pools[size]
        return Buffer(pool.take(lambda: self.native.create_buffer(size=size, usage=USAGE)), pool)

    def upload(self, data: Array | bytes) -> Buffer:
        """A buffer with this content."""
        raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else np.ascontiguousarray(data)
        buffer = self.buffer(raw.nbytes)
        if raw.nbytes:
            self.native.queue.write_buffer(buffer.native, 0, raw)
        return buffer

    def uniform(self, shader: str, struct: str, **values: Any) -> Buffer:
        """A struct that the shader declares."""
        return self.upload(packed(shader, struct, values))

    def compute(self, shader: str, **constants: int | float) -> Pass:
        """The compute pass of a file, entry point `main`."""

        def made() -> Any:
            stage = {"module": self._module(shader), "entry_point": "main", "constants": dict(constants)}
            return self.native.create_compute_pipeline(layout="auto", compute=stage)

        return self._pass((shader, *sorted(constants.items())), shader, made)

    def raster(
        self,
        shader: str,
        fragment: str,
        targets: Sequence[dict[str, Any]],
        depth: dict[str, Any] | None = None,
        **constants: int | float,
    ) -> Pass:
        """The render pass of a file: entry points `vertex` and that fragment stage."""

        def made() -> Any:
            stage = {"module": self._module(shader), "constants": dict(constants)}
            return self.native.create_render_pipeline(
                layout="auto",
                vertex={**stage, "entry_point": "vertex", "buffers": []},
                primitive={"topology": "triangle-list"},
                depth_stencil=depth,
                fragment={**stage, "entry_point": fragment, "targets": list(targets)},
            )

        return self._pass((shader, fragment, str(targets), *sorted(constants.items())), shader, made)

    def _pass(self, key: Any, shader: str, made: Callable[[], Any]) -> Pass:
        if key not in self._passes:
            self._passes[key] = Pass(self.native, shader, made())
        return self._passes[key]

    def _module(self, shader: str) -> Any:
        return self.native.create_shader_module(code=source(shader), label=shader)

    def texture(self, width: int, height: int, pixels: str) -> Any:
        """A texture to draw into and to read from in a shader."""
        most = LIMITS["max-texture-dimension-2d"]
        if max(width, height) > most:
            raise EngineError(f"the gpu engine draws up to {most}×{most} px, got {width}×{height}; use the cpu engine.")
        usage = wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.TEXTURE_BINDING
        return self.native.create_texture(size=(width, height, 1), format=pixels, usage=usage)

    @contextmanager
    def work(self) -> Iterator[Work]:
        """Commands, submitted at the end of the block; what the driver refuses is one error."""
        with reported(self.adapter):
            work = Work(self.native.create_command_encoder(), Timestamps(self) if self.is_timed else None)
            yield work
            work.end_compute()
            times_ms = None if work.timestamps is None else work.timestamps.resolve(work.encoder)
            self.native.queue.submit([work.encoder.finish()])
            for name, time_ms in ({} if times_ms is None else times_ms()).items():
                self.passes_ms[name] += time_ms

    def read(self, buffer: Buffer, dtype: Any = np.float32) -> Array:
        """The content of a buffer, copied out through one staging buffer."""
        return self.read_native(buffer.native, dtype)

    def read_native(self, native: Any, dtype: Any) -> Array:
        """The same of a buffer of wgpu."""
        with reported(self.adapter):
            size = native.size
            if self._staging is None or self._staging.size < size:
                usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
                self._staging = self.native.create_buffer(size=size, usage=usage)
            encoder = self.native.create_command_encoder()
            encoder.copy_buffer_to_buffer(native, 0, self._staging, 0, size)
            self.native.queue.submit([encoder.finish()])
            self._staging.map_sync(wgpu.MapMode.READ, 0, size)
            content = np.frombuffer(self._staging.read_mapped(0, size, copy=True), dtype)
            self._staging.unmap()
            return content

    def release_memory(self) -> None:
        """Free the buffers that wait for their next use."""
        self._staging = None
        for pool in self._pools.values():
            pool.waiting.clear()


@contextmanager
def reported(adapter: Adapter) -> Iterator[None]:
    """What the driver refuses as the package's own error of one line."""
    try:
        yield
    except wgpu.GPUOutOfMemoryError:
        raise EngineError(
            f"{adapter} is out of memory; draw a smaller picture or scene, or use the cpu engine."
        ) from None
    except (wgpu.GPUError, RuntimeError) as error:
        raise EngineError(f"{adapter} failed: {_cause(error)}; use the cpu engine.") from error


def groups_of(count: int, size: int) -> int:
    """Workgroups of this size for so many threads."""
    return -(-count // size)


def tiles_of(width: int, height: int) -> tuple[int, int]:
    """Workgroups of 16×16 px for a picture."""
    return groups_of(width, 16), groups_of(height, 16)


def _cause(error: Exception) -> str:
    """The last line of what wgpu says: it goes from the call down to the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".:") if lines else type(error).__name__
