"""The public API: names, signatures, docstrings, and what its functions promise."""

import dataclasses
import importlib
import inspect
import io
import pkgutil
import re
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import hushsplat
from hushsplat import Gaussians
from hushsplat.types.capture import Capture, View
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import to_bytes

FUNCTIONS = [name for name in hushsplat.__all__ if inspect.isfunction(getattr(hushsplat, name))]
CLASSES = [name for name in hushsplat.__all__ if inspect.isclass(getattr(hushsplat, name))]
# Nested in State, Capture and TrainSettings, and reached through them: `dataclasses.replace(settings.stage1, steps=9)`.
PARTS = {"StateLayout", "View", "Stage1", "Stage2", "Stage3", "Stage4"}
SUBMODULES = [module.name for module in pkgutil.walk_packages(hushsplat.__path__, "hushsplat.")]


@pytest.fixture(scope="module")
def scene() -> Gaussians:
    return hushsplat.room_and_garden(2000, sh_degree=1)


@pytest.fixture(scope="module")
def camera() -> hushsplat.Camera:
    return hushsplat.home_camera(48, 32)


def in_a_new_process(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_dir_shows_only_public_names() -> None:
    code = "import hushsplat; hushsplat.Camera; import hushsplat.engines.cpu.engine; print(*dir(hushsplat))"
    assert sorted(in_a_new_process(code).split()) == sorted([*hushsplat.__all__, "__version__"])


def test_every_public_name_is_there_and_importing_the_package_loads_none_of_them() -> None:
    for name in hushsplat.__all__:
        assert getattr(hushsplat, name) is not None
    assert set(hushsplat._PUBLIC) == set(hushsplat.__all__)
    loaded = in_a_new_process("import sys, hushsplat; print(*[m for m in sys.modules if m.startswith('hushsplat.')])")
    assert set(loaded.split()) == set()
    with pytest.raises(AttributeError, match="module 'hushsplat' has no attribute 'blur'"):
        hushsplat.blur  # noqa: B018


def test_no_package_has_the_name_of_a_public_name() -> None:
    children = {module.name for module in pkgutil.iter_modules(hushsplat.__path__)}
    assert children.isdisjoint(hushsplat.__all__)


def test_every_submodule_can_be_imported_under_another_name() -> None:
    modules = [name for name in SUBMODULES if not name.endswith("__main__")]
    assert "hushsplat.engines.cpu.engine" in modules and len(modules) > 100
    public = "; ".join(f"hushsplat.{name}" for name in FUNCTIONS)
    lines = "\n".join(f"import {name} as found; assert found.__name__ == '{name}'" for name in modules)
    in_a_new_process(f"import hushsplat\n{public}\n{lines}")


def hints_of(value: object) -> dict[str, object]:
    """The annotations of a function, or of the fields, public methods and documented constructor of a class."""
    public = {name: getattr(hushsplat, name) for name in hushsplat.__all__}  # for imports under TYPE_CHECKING
    if inspect.isfunction(value):
        return typing.get_type_hints(value, localns=public)
    found = dict(typing.get_type_hints(value, localns=public)) if dataclasses.is_dataclass(value) else {}
    for name, member in vars(value).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        constructor = name == "__init__" and bool(function.__doc__)
        if inspect.isfunction(function) and (not name.startswith("_") or constructor):
            hints = typing.get_type_hints(function, localns=public)
            found |= {f"{name}.{key}": hint for key, hint in hints.items()}
    return found


def classes_in(hint: object) -> set[type]:
    """Classes of this package anywhere in an annotation."""
    if isinstance(hint, type) and hint.__module__.startswith("hushsplat"):
        return {hint}
    return {found for part in typing.get_args(hint) for found in classes_in(part)}


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_every_type_in_a_public_signature_is_exported(name: str) -> None:
    found = set().union(*map(classes_in, hints_of(getattr(hushsplat, name)).values()), set())
    # By name: the handles of an engine (Image, State, ...) are protocols that the public classes of that name follow.
    assert {kind.__name__ for kind in found} - set(CLASSES) - PARTS == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_describe_their_arguments(name: str) -> None:
    function = getattr(hushsplat, name)
    text = inspect.getdoc(function) or ""
    assert re.match(r"[^\n]+\.", text), "a first sentence"
    parameters = inspect.signature(function).parameters
    if len(parameters) > 2 and "See `" not in text:
        described = text.partition("Args:")[2]
        assert [each for each in parameters if not re.search(rf"^ +{each}: ", described, re.MULTILINE)] == []


@pytest.mark.parametrize("name", CLASSES)
def test_public_classes_have_docstrings(name: str) -> None:
    kind = getattr(hushsplat, name)
    assert kind.__doc__ and not kind.__doc__.startswith(f"{name}(")


def test_play_draws_a_scene_without_payload_zero_shot(scene: Gaussians, camera: hushsplat.Camera) -> None:
    assert scene.payload is None
    cameras = [camera] * 3
    for image, expected in zip(
        hushsplat.play(scene, cameras, "temporal"), hushsplat.play(scene, cameras, "temporal-zero-shot"), strict=True
    ):
        np.testing.assert_array_equal(image.color, expected.color)
    with_payload = dataclasses.replace(scene, payload=np.ones((len(scene), 10), dtype=np.float32))
    *_, other = hushsplat.play(with_payload, cameras, "temporal")
    assert np.abs(other.color - expected.color).max() > 1e-3


def test_play_draws_by_hush_near_the_reference(scene: Gaussians, camera: hushsplat.Camera) -> None:
    for image, named in zip(
        hushsplat.play(scene, [camera] * 2), hushsplat.play(scene, [camera] * 2, "hush"), strict=True
    ):
        np.testing.assert_array_equal(image.color, named.color)
        assert np.abs(image.color - hushsplat.render(scene, camera).color).max() < 0.05


@pytest.mark.parametrize("method", list(hushsplat.METHODS))
def test_render_takes_gaussians_an_uploaded_scene_or_a_file_by_any_method(
    method: str, scene: Gaussians, camera: hushsplat.Camera, tmp_path: Path
) -> None:
    hushsplat.save(scene, tmp_path / "scene.ply")
    images = [
        hushsplat.render(given, camera, method, frames=2)
        for given in (scene, hushsplat.upload(scene), hushsplat.load(tmp_path / "scene.ply"), tmp_path / "scene.ply")
    ]
    assert images[0].color.shape == (32, 48, 3) and images[0].color.dtype == np.float32
    np.testing.assert_array_equal(images[0].color, images[1].color)
    np.testing.assert_array_equal(images[2].color, images[3].color)
    assert (images[0].variance is not None) == (method == "exact")


def test_render_guesses_a_camera_and_knows_names_of_scenes() -> None:
    named = hushsplat.render("synth:2k", method="raw")
    made = hushsplat.room_and_garden(2000)
    np.testing.assert_array_equal(named.color, hushsplat.render(made, method="raw").color)
    assert named.color.shape == (532, 800, 3)


def test_render_of_a_denoiser_is_the_last_frame_of_a_still_camera(scene: Gaussians, camera: hushsplat.Camera) -> None:
    *_, last = hushsplat.play(scene, [camera] * 5, "taa", noise=hushsplat.Noise(seed=3))
    image = hushsplat.render(scene, camera, "taa", frames=5, noise=hushsplat.Noise(seed=3))
    np.testing.assert_array_equal(image.color, last.color)
    with pytest.raises(hushsplat.HushsplatError, match="frames must be at least 1, got 0"):
        hushsplat.render(scene, camera, "taa", frames=0)


def test_a_denoiser_refuses_the_state_of_another_by_name(scene: Gaussians, camera: hushsplat.Camera) -> None:
    on = hushsplat.engine("cpu")
    observation = hushsplat.Stream(on, on.upload(scene), []).observe(camera)
    _, state = hushsplat.denoiser("taa").step(observation, camera, None)
    for name in ("svgf", "mean", "temporal-zero-shot"):
        with pytest.raises(DenoiseError, match=f"a state of 'taa' was given to '{name}'; pass the state that '{name}'"):
            hushsplat.denoiser(name).step(observation, camera, state)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Gaussians) if not field.kw_only])
def test_arrays_of_gaussians_cannot_be_changed_in_place(name: str, scene: Gaussians) -> None:
    scene = dataclasses.replace(scene, payload=np.zeros((len(scene), 10), dtype=np.float32))
    with pytest.raises(ValueError, match="read-only"):
        getattr(scene, name)[:] = 0.5


def test_a_changed_scene_is_another_scene(scene: Gaussians, camera: hushsplat.Camera) -> None:
    before = hushsplat.render(scene, camera).color
    moved = dataclasses.replace(scene, means=scene.means + np.float32(0.5))
    after = hushsplat.render(moved, camera).color
    assert np.abs(before - after).mean() > 0.01
    there = dataclasses.replace(camera, world_from_camera=camera.world_from_camera.copy())
    there.world_from_camera[:3, 3] += 0.5
    np.testing.assert_allclose(hushsplat.render(moved, there).color, before, atol=0.02)  # all of it has moved
    np.testing.assert_array_equal(hushsplat.render(scene, camera).color, before)


def test_submodules_stay_importable_after_their_functions_were_used() -> None:
    assert hushsplat.render is importlib.import_module("hushsplat.api").render
    assert importlib.import_module("hushsplat.engines.cpu.engine").ENGINE.name == "cpu"


def test_notebooks_show_pictures_and_a_line_for_the_rest(scene: Gaussians, camera: hushsplat.Camera) -> None:
    image = hushsplat.render(scene, camera, "raw")
    shown = np.asarray(Pillow.open(io.BytesIO(image._repr_png_())))
    np.testing.assert_array_equal(shown, to_bytes(image.color))
    assert repr(image) == "Image(48×32, alpha, depth)"
    assert repr(scene) == f"Gaussians({len(scene):,} surfels, SH degree {scene.sh_degree})"
    assert repr(hushsplat.walk_track(2.0, 30.0)).startswith("Track(60 frames, ")
    capture = Capture((View("a", Path("a.png"), camera), View("b", Path("b.png"), camera)), Path("garden"))
    assert repr(capture) == "Capture(2 views, 48×32, garden)"
    camera = hushsplat.Camera.look_at((1, 2, 3), (0, 0, 0), width=48, height=32)
    assert repr(camera) == "Camera(48×32, 50° from top to bottom, at 1, 2, 3)"
