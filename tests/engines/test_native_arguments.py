"""What the native module refuses: arrays it would have to copy, pictures without pixels, ids that nobody has."""

import ast
from pathlib import Path

import native_calls
import numpy as np
import pytest
from drawing import decode_color, uploaded
from native_calls import CALLS, COUNT

from hushsplat import engines
from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.engine import decode_neural_view
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Visibility
from hushsplat.types.options import RenderOptions

STUB = Path(engines.__file__).with_name("cpu") / "_engine.pyi"  # in an editable install the module lies elsewhere
ARRAYS = [
    (call, name)
    for call, (_, arguments) in CALLS.items()
    for name, value in arguments().items()
    if isinstance(value, np.ndarray)
]
OUTPUTS = [
    *(("Scene.stochastic", name) for name in ("id", "depth")),
    *(("Scene.exact", name) for name in ("color", "alpha", "depth", "variance")),
    *(("Scene.sorted", name) for name in ("color", "alpha", "depth")),
    *(("SurfelGradients", name) for name in ("means", "scales", "rotations", "opacities", "sh")),
    *(("Drawing", name) for name in ("color", "alpha", "geometry")),
    *(("TrainedScene.gradient", name) for name in ("by_center", "seen")),
    *(("adam", name) for name in ("values", "first", "second")),
    *(("denoise", name) for name in ("state", "shown", "views")),
    *((f"baseline_{kind}", name) for kind in ("mean", "st_taa", "taa", "svgf") for name in ("history", "shown")),
    ("ssim", "by_first"),
    ("decode", "color"),
    ("decode_view", "view"),
]


def wider(array: np.ndarray) -> np.ndarray:
    """The same values in a larger type."""
    return array.astype({"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.uint8}[array.dtype.kind])


def strided(array: np.ndarray) -> np.ndarray:
    """The same values with gaps between them."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def read_only(array: np.ndarray) -> np.ndarray:
    fixed = array.copy()
    fixed.flags.writeable = False
    return fixed


def test_every_binding_with_arrays_is_tested():
    """The stub says which ones there are; a new one belongs into native_calls.CALLS."""
    named = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            named[node.name] = node
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    named[node.name if method.name == "__init__" else f"{node.name}.{method.name}"] = method
    takers = {
        name
        for name, node in named.items()
        if any("_Floats" in (text := ast.unparse(a.annotation or a)) or "NDArray" in text for a in node.args.args)
    }
    assert takers <= set(CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_sound_arguments_are_taken(call):
    function, arguments = CALLS[call]
    function(**arguments())


@pytest.mark.parametrize("spoilt", [wider, strided])
@pytest.mark.parametrize(("call", "name"), ARRAYS)
def test_arrays_are_never_converted(call, name, spoilt):
    """An output would be written to the copy and lost; an input would cost a copy in every frame."""
    function, arguments = CALLS[call]
    taken = arguments()
    taken[name] = spoilt(taken[name])
    with pytest.raises(TypeError, match="incompatible function arguments"):
        function(**taken)


@pytest.mark.parametrize(("call", "name"), OUTPUTS)
def test_outputs_must_be_writable(call, name):
    function, arguments = CALLS[call]
    taken = arguments()
    taken[name] = read_only(taken[name])
    with pytest.raises(TypeError, match="incompatible function arguments"):
        function(**taken)


SIZED = {
    "ssim": native_calls.ssim,
    "decode_view": native_calls.decode_view,
    "denoise": native_calls.denoise,
    "baseline_mean": native_calls.mean,
    "baseline_st_taa": lambda h, w: native_calls.baseline(_engine.StTaaSettings(), h, w),
    "baseline_taa": lambda h, w: native_calls.baseline(_engine.TaaSettings(), h, w),
    "baseline_svgf": lambda h, w: native_calls.baseline(native_calls.svgf_settings(), h, w),
    "Camera": native_calls.camera,
}


@pytest.mark.parametrize("size", [(0, 0), (0, 3), (3, 0), (1, 16385), (16385, 1)], ids=str)
@pytest.mark.parametrize("call", SIZED)
def test_pictures_without_pixels_or_too_large_are_refused(call, size):
    with pytest.raises(ValueError, match="a picture has 1 to 16384 px a side"):
        CALLS[call][0](**SIZED[call](*size))


@pytest.mark.parametrize("call", SIZED)
def test_pictures_of_one_pixel_are_taken(call):
    CALLS[call][0](**SIZED[call](1, 1))


@pytest.mark.parametrize("call", ["stochastic", "decode", "decode_view"])
def test_a_frame_without_samples_is_refused(call):
    function = CALLS["Scene.stochastic" if call == "stochastic" else call][0]
    with pytest.raises(ValueError, match="at least one sample"):
        function(**getattr(native_calls, call)(samples=0))


@pytest.mark.parametrize("threads", [-(2**31), -1, 0, 3, 2**31 - 1])
@pytest.mark.parametrize("call", ["denoise", "ssim", "decode", "Scene.sorted", "baseline_svgf"])
def test_any_number_of_threads(call, threads):
    function, arguments = CALLS[call]
    function(**arguments() | {"threads": threads})


@pytest.mark.parametrize("bad", [COUNT, 2**31 - 1, -2, -(2**31)])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("call", ["decode", "decode_view"])
def test_ids_of_nobody_are_refused(call, threads, bad):
    function, arguments = CALLS[call]
    taken = arguments() | {"threads": threads}
    taken["id"][-1, -1, -1] = bad
    with pytest.raises(IndexError, match=f"primitive {bad} was seen, but there are {COUNT}"):
        function(**taken)


@pytest.mark.parametrize("bad", [COUNT, -2])
@pytest.mark.parametrize("instruction_set", _engine.instruction_sets())
def test_an_unknown_id_is_an_error_that_says_what_to_do(instruction_set, bad):
    gaussians = Gaussians(**native_calls.surfels(), payload=native_calls.floats(COUNT, 10))
    ids = np.zeros((1, 2, 3), dtype=np.int32)
    ids[0, 1, 1] = bad
    seen, camera = (
        Visibility(ids, np.ones((1, 2, 3), dtype=np.float32)),
        Camera(3, 2, 3.0, 3.0, 1.5, 1.0, np.eye(4)),
    )
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        for decoded in (
            lambda: decode_color(seen, gaussians, camera),
            lambda: decode_neural_view(seen, uploaded(gaussians), camera, RenderOptions()),
        ):
            with pytest.raises(RenderError, match=f"primitive {bad} was seen, but there are {COUNT}; give the scene"):
                decoded()
    finally:
        _engine.choose_instruction_set(in_use)
