"""`auto` goes on with the cpu engine when the GPU cannot; `gpu` says so in one line, and the process lives."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import wgpu

from hushsplat.engines.base import Engine, engine
from hushsplat.engines.fallback import FallbackEngine
from hushsplat.engines.webgpu import adapters as listing
from hushsplat.engines.webgpu.adapters import Adapter
from hushsplat.engines.webgpu.engine import GpuEngine
from hushsplat.methods import configure
from hushsplat.stream import Stream
from hushsplat.synth import home_camera, room_and_garden, walk_track
from hushsplat.types.errors import DenoiseError, EngineError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import Noise, RenderOptions

METHODS = ("raw", "temporal-zero-shot", "taa", "hush", "reference")
OPTIONS = RenderOptions(background=(0.2, 0.3, 0.4))
CAMERA = home_camera(48, 32)


@pytest.fixture(scope="module")
def scene() -> Gaussians:
    return room_and_garden(3000, sh_degree=1)


@pytest.fixture
def lost_soon(gpu):
    """An engine of its own, to be broken, and the notes that it leaves."""
    notes: list[str] = []
    return FallbackEngine(GpuEngine(exact=True), engine("cpu"), notes.append), notes


def drawn_by_cpu(scene: Gaussians, numbers: range) -> list[np.ndarray]:
    cpu = engine("cpu")
    stream = Stream(cpu, cpu.upload(scene), METHODS, noise=Noise(frame=numbers[0]), options=OPTIONS)
    return [[image.numpy().color for image in stream.step(CAMERA).images] for _ in numbers][-1]


def test_it_draws_on_the_gpu_as_long_as_that_works(lost_soon, scene: Gaussians) -> None:
    drawing, notes = lost_soon
    assert isinstance(drawing, Engine) and drawing.name == "gpu" and drawing.adapter is not None
    stream = Stream(drawing, drawing.upload(scene), METHODS, options=OPTIONS)
    for camera in (CAMERA, CAMERA, CAMERA.resized(33, 20)):
        frame = stream.step(camera)
    assert [image.numpy().color.shape for image in frame.images] == [(20, 33, 3)] * len(METHODS)
    assert stream.states[1].numpy().accumulated_frames.max() > 1
    drawing.finish()
    drawing.release_memory()
    payload = drawing.with_payload(drawing.upload(scene), np.ones((len(scene), 10), dtype=np.float32))
    seen = drawing.sample(payload, CAMERA, Noise(), OPTIONS)
    observed = drawing.decode(seen.numpy(), payload, CAMERA, OPTIONS)  # plain arrays, too
    assert observed.neural_view is not None and observed.numpy().neural_view is not None
    assert drawing.name == "gpu" and not notes


def test_a_lost_device_loses_no_frame(lost_soon, scene: Gaussians) -> None:
    """The pictures of the frame that was not read back are drawn again; what follows is the cpu engine's."""
    drawing, notes = lost_soon
    stream = Stream(drawing, drawing.upload(scene), METHODS, options=OPTIONS)
    for _ in range(2):
        stream.step(CAMERA)
    frame = stream.step(CAMERA)
    drawing.active.device.native.destroy()
    found = [image.numpy().color for image in frame.images]
    for color, expected in zip(found, drawn_by_cpu(scene, range(2, 3)), strict=True):  # history is lost
        np.testing.assert_array_equal(color, expected)
    assert len(notes) == 1 and "is lost" in notes[0] and drawing.name == "cpu" and drawing.adapter is None
    for _ in range(2):
        frame = stream.step(CAMERA)
    for image, expected in zip(frame.images, drawn_by_cpu(scene, range(3, 5)), strict=True):
        np.testing.assert_array_equal(image.numpy().color, expected)
    assert len(notes) == 1
    stream.step(CAMERA.resized(33, 20))


def test_a_device_lost_between_passes(lost_soon, scene: Gaussians) -> None:
    drawing, notes = lost_soon
    uploaded = drawing.upload(scene)
    seen = drawing.sample(uploaded, CAMERA, Noise(), OPTIONS)
    drawing.active.device.native.destroy()
    observed = drawing.decode(seen, uploaded, CAMERA, OPTIONS)
    cpu, on_cpu = engine("cpu"), engine("cpu").upload(scene)
    expected = cpu.decode(cpu.sample(on_cpu, CAMERA, Noise(), OPTIONS), on_cpu, CAMERA, OPTIONS)
    np.testing.assert_array_equal(observed.numpy().color, expected.color)
    np.testing.assert_array_equal(seen.numpy().primitive_id, cpu.sample(on_cpu, CAMERA, Noise(), OPTIONS).primitive_id)
    assert len(notes) == 1 and set(uploaded.held) == {"cpu"}


def out_of_memory(drawing: FallbackEngine, monkeypatch) -> None:
    def refuse(**_):
        raise wgpu.GPUOutOfMemoryError("Not enough memory left")

    drawing.active.device.release_memory()
    monkeypatch.setattr(drawing.active.device.native, "create_buffer", refuse)


def small_buffers(drawing: FallbackEngine, monkeypatch) -> None:
    monkeypatch.setattr(drawing.active.device, "most_bytes", 1 << 10)


def refused_feature(drawing: FallbackEngine, monkeypatch) -> None:
    def refuse(**_):
        raise wgpu.GPUValidationError("In wgpuDeviceCreateComputePipeline\n  the driver knows no storage buffers")

    drawing.active.device._passes.clear()
    monkeypatch.setattr(drawing.active.device.native, "create_compute_pipeline", refuse)


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        (out_of_memory, "is out of memory"),
        (small_buffers, "has at most 0 MiB in one buffer"),
        (refused_feature, "failed: the driver knows no storage buffers"),
    ],
)
def test_what_the_device_refuses_is_drawn_on_the_cpu(lost_soon, monkeypatch, scene: Gaussians, broken, cause) -> None:
    drawing, notes = lost_soon
    stream = Stream(drawing, drawing.upload(scene), METHODS, options=OPTIONS)
    broken(drawing, monkeypatch)
    gpu, uploaded = drawing.active, stream.scene.held["gpu"]
    with pytest.raises(EngineError, match=f"{cause}.*; .*use the cpu engine") as refused:
        gpu.sample(uploaded, CAMERA, Noise(), OPTIONS)
    assert "\n" not in str(refused.value)
    for image, expected in zip(stream.step(CAMERA).images, drawn_by_cpu(scene, range(1)), strict=True):
        np.testing.assert_array_equal(image.numpy().color, expected)
    assert len(notes) == 1 and cause in notes[0] and notes[0].endswith(": drawing on the CPU from now on.")


def test_a_picture_larger_than_a_texture_is_drawn_on_the_cpu(lost_soon, scene: Gaussians) -> None:
    drawing, notes = lost_soon
    wide = home_camera(9000, 2)
    seen = drawing.sample(drawing.upload(scene), wide, Noise(), OPTIONS)
    assert seen.numpy().primitive_id.shape == (1, 2, 9000)
    assert notes == ["the gpu engine draws up to 8192×8192 px, got 9000×2: drawing on the CPU from now on."]


def test_exact_is_drawn_on_the_cpu_and_the_rest_stays(lost_soon, scene: Gaussians) -> None:
    drawing, notes = lost_soon
    uploaded = drawing.upload(scene)
    found = drawing.render(uploaded, CAMERA, "exact", OPTIONS).numpy()
    cpu = engine("cpu")
    np.testing.assert_array_equal(found.color, cpu.render(cpu.upload(scene), CAMERA, "exact", OPTIONS).color)
    drawing.render(uploaded, CAMERA, "reference", OPTIONS).numpy()
    assert drawing.name == "gpu" and not notes


def test_errors_of_the_caller_are_no_reason_to_change_the_engine(lost_soon, scene: Gaussians) -> None:
    drawing, notes = lost_soon
    _, state = drawing.draw_active_set(configure("hush"), drawing.upload(scene), CAMERA, Noise(), None, OPTIONS)
    with pytest.raises(DenoiseError, match="a state of 'hush' was given to 'sorted'"):
        drawing.draw_active_set(configure("sorted"), drawing.upload(scene), CAMERA, Noise(), state, OPTIONS)
    assert drawing.name == "gpu" and not notes


def test_auto_takes_hardware_and_keeps_the_cpu_in_reserve(gpu, monkeypatch) -> None:
    hardware = replace(gpu.adapter, is_software=False)
    monkeypatch.setattr(listing, "adapters", lambda: (hardware,))
    found = engine("auto")
    assert isinstance(found, FallbackEngine) and found.adapter == hardware
    monkeypatch.setattr(listing, "adapters", lambda: (gpu.adapter,))
    assert engine("auto").name == "cpu" and not isinstance(engine("auto"), FallbackEngine)
    monkeypatch.setattr(listing, "adapters", lambda: ())
    assert engine("auto").name == "cpu"


def test_a_driver_that_gives_no_device_is_left_alone(gpu, monkeypatch) -> None:
    def refuse(**_):
        raise RuntimeError("Request device failed:\n  Unsupported features were requested")

    native = SimpleNamespace(limits=gpu.adapter.native.limits, features=set(), request_device_sync=refuse)
    monkeypatch.setattr(listing, "adapters", lambda: (Adapter(0, "Old card", "1.0", "Vulkan", False, native),))
    with pytest.raises(EngineError, match=r"^Old card \(Vulkan\) cannot be used: Unsupported features were re.*; "):
        engine("gpu")
    with pytest.warns(RuntimeWarning, match=r"Unsupported features were requested: drawing on the CPU\.$"):
        assert engine("auto").name == "cpu"


def test_play_goes_on_with_a_warning(lost_soon, scene: Gaussians) -> None:
    from hushsplat import play

    drawing = FallbackEngine(lost_soon[0].active, engine("cpu"))
    pictures = play(scene, walk_track(width=48, height=32), on=drawing)
    next(pictures)
    drawing.active.device.native.destroy()
    with pytest.warns(RuntimeWarning, match=r"is lost: drawing on the CPU from now on\.$"):
        assert next(pictures).color.shape == (32, 48, 3)
    next(pictures)
