"""The registry of methods: names, settings, weights, the payload policy, and a denoiser on any stream."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import hushsplat
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.engines.torch.engine import TorchEngine
from hushsplat.io import weights as weight_files
from hushsplat.methods import (
    ACTIVE,
    BLENDED,
    DENOISERS,
    LEARNED,
    METHODS,
    Denoiser,
    adjusted,
    configure,
    denoiser,
    drawn_by,
    for_payload,
    method,
    weights_of,
)
from hushsplat.spec.passes import VIEWS
from hushsplat.spec.settings import PAPER, TUNED_SVGF, DenoiserSettings, SvgfSettings, TaaSettings
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.synth import home_camera
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, RenderError, WeightsError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Observation
from hushsplat.types.options import RenderOptions


@pytest.fixture(scope="module")
def weights() -> DenoiserWeights:
    tensors = {name: np.zeros(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    tensors["accumulated.head.bias"][:] = 3.0
    tensors["denoised.head.bias"][:] = 2.0
    tensors["gate.gamma"] = np.array(10.0, dtype=np.float32)
    return DenoiserWeights(tensors)


@pytest.fixture(scope="module")
def camera() -> Camera:
    return home_camera(30, 20)


def observed(seed: int = 0, payload: bool = True) -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        color=rng.random((20, 30, 3), dtype=np.float32),
        depth=rng.uniform(1, 3, (20, 30)).astype(np.float32),
        alpha=np.ones((20, 30), dtype=np.float32),
        neural_view=rng.normal(0, 2, (20, 30, 4)).astype(np.float32) if payload else None,
    )


def test_names_and_kinds_of_the_methods() -> None:
    assert BLENDED == ("exact", "reference")
    assert ACTIVE == ("hush", "hush-fast", "hush-best", "sorted")
    assert LEARNED == ("paper", "paper-zero-shot", "temporal", "temporal-zero-shot")
    assert ("mean", "st-taa", "taa", "svgf", "svgf-literal", "svgf-tuned", *LEARNED) == DENOISERS
    assert set(METHODS) == {"raw", *BLENDED, *ACTIVE, *DENOISERS}
    for name, found in METHODS.items():
        assert method(name) is found and found.name == name and found.summary
        assert found.is_denoiser == (name in DENOISERS)
        assert (found.settings is not None) == (found.layout is not None) == (name in (*DENOISERS, *ACTIVE))
        assert found.kind == ("blended" if name in BLENDED else "active" if name in ACTIVE else "streaming")


def test_settings_of_a_command_change_those_of_the_method_and_leave_the_others() -> None:
    assert adjusted("paper", DenoiserSettings()) == PAPER
    changed = adjusted("paper", DenoiserSettings(gate=1, tau_frames=3.0))
    assert changed == dataclasses.replace(PAPER, gate=1, tau_frames=3.0) and not changed.smooth
    with pytest.raises(DenoiseError, match=r"^hush has no settings of the denoiser; they belong to paper, "):
        adjusted("hush", DenoiserSettings())


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(
        RenderError, match=r"^method must be one of hush, .*, raw, exact, .*, temporal-zero-shot, got 'x'\.$"
    ):
        method("x")
    with pytest.raises(
        RenderError, match=r"^method must be one of hush, .*, raw, exact, .*, temporal-zero-shot, got 'x'\.$"
    ):
        drawn_by("x", True)
    for name in ("blurry", "raw", "exact"):
        with pytest.raises(DenoiseError, match=rf"^a denoiser is one of mean, .*, temporal-zero-shot, got '{name}'\.$"):
            configure(name)


def test_a_method_that_needs_a_payload_is_replaced_by_its_fallback_without_one() -> None:
    assert drawn_by("temporal", True).name == "temporal"
    assert drawn_by("temporal", False).name == "temporal-zero-shot"
    for name in METHODS:
        if name not in ("paper", "temporal"):
            assert drawn_by(name, True).name == drawn_by(name, False).name == name
    assert [name for name, found in METHODS.items() if found.needs_payload] == ["paper", "temporal"]


def test_a_configured_denoiser_is_zero_shot_without_a_payload_and_keeps_its_other_settings(
    weights: DenoiserWeights,
) -> None:
    configured = configure("temporal", weights=weights, settings=DenoiserSettings(gate=1))
    assert for_payload(configured, True) is configured
    without = for_payload(configured, False)
    assert without.settings == DenoiserSettings(gate=1, zero_shot=True)
    assert without.name == "temporal" and without.weights is weights
    baseline = configure("taa")
    assert for_payload(baseline, False) is baseline


def test_a_learned_denoiser_draws_a_scene_without_payload_zero_shot(weights: DenoiserWeights, camera: Camera) -> None:
    frames = {}
    for name, payload in (
        ("temporal", False),
        ("temporal-zero-shot", False),
        ("temporal-zero-shot", True),
        ("temporal", True),
    ):
        frames[name, payload] = denoiser(name, weights=weights).step(observed(payload=payload), camera, None)[0].color
    np.testing.assert_array_equal(frames["temporal", False], frames["temporal-zero-shot", False])
    np.testing.assert_array_equal(frames["temporal", False], frames["temporal-zero-shot", True])
    assert (frames["temporal", False] != frames["temporal", True]).any()


def test_settings_of_another_method_are_refused_by_name() -> None:
    with pytest.raises(
        DenoiseError,
        match=r"^taa takes TaaSettings, got SvgfSettings; those belong to svgf, svgf-literal, svgf-tuned\.$",
    ):
        configure("taa", settings=SvgfSettings())
    with pytest.raises(
        DenoiseError, match=r"^temporal takes DenoiserSettings, got TaaSettings; those belong to taa\.$"
    ):
        configure("temporal", settings=TaaSettings())


def test_weights_of_a_method_without_weights_are_refused(weights: DenoiserWeights) -> None:
    with pytest.raises(
        DenoiseError,
        match=r"^taa has no weights; they belong to paper, paper-zero-shot, temporal, temporal-zero-shot\.$",
    ):
        configure("taa", weights=weights)


def test_defaults_of_a_configured_denoiser() -> None:
    assert configure("svgf").settings == SvgfSettings()
    assert configure("svgf-tuned").settings == TUNED_SVGF
    assert configure("temporal").settings == DenoiserSettings()
    assert configure("temporal-zero-shot").settings == DenoiserSettings(zero_shot=True)
    assert configure("temporal-zero-shot", settings=DenoiserSettings(gate=0)).settings.zero_shot
    assert configure("temporal").weights is not None and configure("taa").weights is None


def test_weights_come_from_memory_a_file_or_the_package(weights: DenoiserWeights, tmp_path) -> None:
    assert weights_of(weights, "temporal") is weights
    path = tmp_path / "w.safetensors"
    weight_files.write_weights(weights, path)
    for name, tensor in weights_of(path, "temporal").tensors.items():
        np.testing.assert_array_equal(tensor, weights[name])
    assert weights_of(None, "paper").gamma > 0
    with pytest.raises(WeightsError, match=r"gone\.safetensors: the weights of the package are not there; install it"):
        weight_files.default_weights("gone")
    with pytest.raises(DenoiseError, match="taa has no weights; they belong to paper, paper-zero-shot, temporal"):
        weights_of(None, "taa")


@pytest.mark.parametrize("name", LEARNED)
def test_each_learned_method_takes_its_own_weights_of_the_package(name: str) -> None:
    expected = weight_files.default_weights(name.removesuffix("-zero-shot"))
    found = configure(name).weights
    assert found is not None and all(np.array_equal(found[key], expected[key]) for key in expected.tensors)


@pytest.mark.parametrize("engine", [CpuEngine(), TorchEngine()], ids=["cpu", "torch"])
@pytest.mark.parametrize("name", DENOISERS)
def test_every_denoiser_calms_a_still_stream_and_is_a_pure_function(
    name: str, engine, weights: DenoiserWeights, camera: Camera
) -> None:
    it = denoiser(name, weights=weights if name in LEARNED else None, on=engine)
    state, kept = None, []
    for seed in range(8):
        frame, state = it.step(observed(seed), camera, state)
        kept.append(frame.numpy().color)
    assert np.abs(kept[-1] - 0.5).mean() < 0.6 * np.abs(observed(7).color - 0.5).mean()
    again, _ = it.step(observed(0), camera, None)
    np.testing.assert_array_equal(again.numpy().color, kept[0])
    assert state.method == name


@pytest.mark.parametrize("engine", [CpuEngine(), TorchEngine()], ids=["cpu", "torch"])
@pytest.mark.parametrize("name", DENOISERS)
def test_a_state_of_another_method_is_refused_by_name(
    name: str, engine, weights: DenoiserWeights, camera: Camera
) -> None:
    other = "taa" if name != "taa" else "temporal"
    _, state = denoiser(other, on=engine).step(observed(), camera, None)
    with pytest.raises(DenoiseError, match=rf"^a state of '{other}' was given to '{name}'; pass the state that"):
        denoiser(name, on=engine).step(observed(), camera, state)


@pytest.mark.parametrize("name", [name for name in DENOISERS if name not in LEARNED])
def test_a_baseline_has_no_views(name: str, camera: Camera) -> None:
    for engine in ("cpu", "torch"):
        with pytest.raises(DenoiseError, match=rf"^{name} has no views behind its picture\.$"):
            denoiser(name, on=engine).step(observed(), camera, None, with_views=True)


def test_views_are_those_that_the_spec_declares(weights: DenoiserWeights, camera: Camera) -> None:
    for engine in ("cpu", "torch"):
        it = denoiser("temporal", weights=weights, on=engine)
        views = it.step(observed(), camera, None, with_views=True)[0].numpy().views
        assert {name: view.shape for name, view in views.items()} == {
            name: (20, 30, view.floats) for name, view in VIEWS.items()
        }


def test_a_denoiser_uses_the_threads_of_its_options(weights: DenoiserWeights, camera: Camera) -> None:
    class Recorder(CpuEngine):
        def denoise(self, denoiser, observation, camera, state, options, with_views=False):
            self.options = options
            return super().denoise(denoiser, observation, camera, state, options, with_views)

    engine = Recorder()
    denoiser("taa", options=RenderOptions(threads=3), on=engine).step(observed(), camera, None)
    assert engine.options.threads == 3


def test_a_denoiser_of_the_registry_follows_the_protocol(weights: DenoiserWeights) -> None:
    assert isinstance(denoiser("temporal", weights=weights), Denoiser)


def test_playing_needs_no_torch() -> None:
    code = "import sys, hushsplat; hushsplat.play; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_public_denoiser_is_that_of_the_registry() -> None:
    assert hushsplat.denoiser is denoiser


@pytest.mark.parametrize("method", ["raw", "reference", "exact", "sorted", "hush", "temporal-zero-shot", "svgf"])
def test_every_method_draws_antialiased_scenes_as_thin_as_they_are(method: str) -> None:
    rng = np.random.default_rng(5)
    n = 400
    small = Gaussians(  # smaller than a pixel: without the compensation each is as large as one
        means=np.concatenate([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 4, (n, 1))], axis=1).astype(np.float32),
        scales=np.full((n, 3), 0.02, dtype=np.float32),
        rotations=np.tile(np.array([1, 0, 0, 0], dtype=np.float32), (n, 1)),
        opacities=np.full(n, 0.9, dtype=np.float32),
        sh=np.ones((n, 1, 3), dtype=np.float32),
    )
    camera = Camera.look_at((0, 0, 0), (0, 0, 1), width=48, height=32, fov_y_deg=40.0)

    def brightness(antialiased: bool, drawn_by: str) -> float:
        scene = dataclasses.replace(small, antialiased=antialiased)
        return float(np.mean([image.color.mean() for image in hushsplat.play(scene, [camera] * 24, drawn_by)]))

    thin, fat = brightness(True, method), brightness(False, method)
    assert thin < 0.6 * fat
    assert thin == pytest.approx(brightness(True, "exact"), rel=0.15)
