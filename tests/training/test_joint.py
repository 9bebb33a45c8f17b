"""Stage 4: chains of cameras, the curriculum, the schedule, every term of the loss, and that it learns."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_capture import made_scene
from torch import Tensor

from hushsplat.api import render
from hushsplat.engines.base import engine
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.engines.torch import ops
from hushsplat.engines.torch.decode import neural_view
from hushsplat.engines.torch.lpips import Lpips
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.tensors import TensorImage, TensorObservation
from hushsplat.io.weights import default_weights
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.training import joint_stage
from hushsplat.training.chain_cameras import KINDS, chain_cameras, chain_kind, paced
from hushsplat.training.joint_loss import CleanPicture, JointLoss, both_trust_losses, disocclusion
from hushsplat.training.joint_stage import (
    Chain,
    JointStage,
    Subject,
    chain_length,
    clean_state,
    first_payload,
    rate_share,
    windowed,
)
from hushsplat.training.settings import ChainSizes, Stage4, TrainSettings
from hushsplat.training.trust_loss import trust_loss
from hushsplat.types.camera import Camera
from hushsplat.types.errors import TrainingError
from hushsplat.types.image import Image
from hushsplat.types.options import Noise, RenderOptions

VIEW = Camera.look_at([0.0, -0.3, -2.2], [0.0, 0.0, 0.0], width=48, height=36)
SMALL = Camera.look_at([0.0, -0.3, -2.2], [0.0, 0.0, 0.0], width=16, height=12)


def joint(view: Camera = SMALL, background: tuple[float, float, float] = (0.0, 0.0, 0.0), threads: int = 1, **changes):
    """Stage 4 on the made scene."""
    usual = {"steps": 100, "gate_warmup": 5, "longest_chain": 16}
    stage4 = Stage4(**{**usual, **changes})
    settings = TrainSettings(stage4=stage4, background=background, threads=threads)
    return JointStage(Subject(made_scene(), [view], [view], radius=2.0), settings)


def first_index(stage: JointStage, wanted: Callable[[Chain], bool]) -> int:
    """The first step whose chain is as wanted."""
    return next(index for index in range(200) if wanted(stage.play(index)))


# Trust loss


@pytest.mark.parametrize(("frames", "history", "sample"), [(20.0, 0.01, 0.04), (100.0, 0.5, 0.1), (4.0, 0.2, 0.2)])
def test_trust_loss_is_least_at_the_inverse_variance_weight(frames: float, history: float, sample: float) -> None:
    """n t = s² / e², which makes w² e² + (1 - w)² s² least."""
    trusts = torch.linspace(0.0005, 0.995, 1000, dtype=torch.float64)
    shape = (1, 1)

    def loss(trust: Tensor) -> float:
        values = (torch.full(shape, value, dtype=torch.float64) for value in (frames, float(trust), history, sample))
        return trust_loss(*values, torch.ones(shape, dtype=torch.bool), "share").item()

    best = trusts[int(np.argmin([loss(trust) for trust in trusts]))].item()
    weights = frames * trusts / (frames * trusts + 1)
    errors = weights**2 * history + (1 - weights) ** 2 * sample
    assert best == pytest.approx(trusts[errors.argmin()].item(), abs=3e-3)


def test_trust_loss_has_a_gradient_at_full_trust() -> None:
    """With n = 100 the mean's own error hardly depends on t; the trust loss does."""
    logit = torch.full((1, 1), 5.0, requires_grad=True)
    one = torch.ones(1, 1)
    trust_loss(100 * one, torch.sigmoid(logit), 0.5 * one, 0.01 * one, one > 0, "share").backward()
    mean_logit = torch.full((1, 1), 5.0, requires_grad=True)
    weight = 100 * torch.sigmoid(mean_logit) / (100 * torch.sigmoid(mean_logit) + 1)
    (weight**2 * 0.5 + (1 - weight) ** 2 * 0.01).sum().backward()
    assert logit.grad.item() > 100 * mean_logit.grad.item() > 0


def test_trust_loss_is_zero_without_history() -> None:
    trust = torch.full((2, 2), 0.5, requires_grad=True)
    one = torch.ones(2, 2)
    loss = trust_loss(one, trust, one, one, one < 0, "share")
    loss.backward()
    assert loss == 0 and (trust.grad == 0).all()


@pytest.mark.parametrize(("history", "sample", "best"), [(0.01, 0.05, 5.0), (0.1, 0.05, 0.5), (0.001, 0.1, 20.0)])
def test_trust_loss_of_a_length_is_least_at_that_length(history: float, sample: float, best: float) -> None:
    """min(n, N) = s² / e², of 20 frames; a length beyond them has the gradient of the last of them."""
    logit = torch.linspace(-4, 6, 1001, dtype=torch.float64)[None].requires_grad_()
    one = torch.ones_like(logit)
    trust_loss(20 * one, torch.sigmoid(logit), history * one, sample * one, one > 0, "length").backward()
    falls = logit.grad[0] < 0
    turn = logit[0][falls].max().exp().item() if falls.any() else 0.0
    assert turn > 50 if best == 20.0 else turn == pytest.approx(best, rel=0.03)


# Chains


@pytest.mark.parametrize("kind", KINDS)
def test_chains_keep_to_their_sizes(kind: str) -> None:
    sizes, radius = ChainSizes(), 4.0
    cameras = chain_cameras(VIEW, kind, 32, sizes, radius, np.random.default_rng(3))
    shifts = np.array([camera.position - VIEW.position for camera in cameras])
    turns = [
        np.degrees(np.arccos(min(1.0, c.world_from_camera[:3, 2] @ VIEW.world_from_camera[:3, 2]))) for c in cameras
    ]
    lengths = np.linalg.norm(shifts, axis=1)
    if kind == "dolly":
        assert 0.5 <= lengths[-1] * 127 / 31 <= 1.1 and max(turns) < 1e-6  # all of it takes 128 frames
        across = shifts[-1] / lengths[-1] @ VIEW.world_from_camera[:3, 0]
        assert abs(across) == pytest.approx(1)
    elif kind == "drift":
        assert np.allclose(np.diff(lengths), lengths[1]) and lengths[-1] > 0
    else:
        scale = {"large": 1, "small": 0.25, "near-static": 1 / 15}[kind]
        assert 0.1 * scale < lengths.max() / (0.003 * radius) <= scale * 3**0.5
        assert 0 < max(turns) <= 3.0 * scale * 2**0.5 + 1e-3


def test_kinds_come_by_their_shares() -> None:
    rng = np.random.default_rng(0)
    drawn = [chain_kind(ChainSizes(), rng) for _ in range(3000)]
    for kind, share in (("dolly", 1 / 4), ("drift", 1 / 4), ("large", 1 / 6), ("near-static", 1 / 6)):
        assert drawn.count(kind) / 3000 == pytest.approx(share, abs=0.03)


def test_paced_cameras_move_at_their_pace() -> None:
    paces = []
    for seed in range(40):
        first, second = paced(VIEW, 24, 3.0, 2.0, np.random.default_rng(seed))[:2]
        point = first.world_from_camera @ [0.1, 0.1, 2.0, 1.0]
        seen = second.camera_from_world @ point
        place = np.array([VIEW.fx * seen[0], VIEW.fy * seen[1]]) / seen[2]
        paces.append(np.linalg.norm(place - np.array([VIEW.fx, VIEW.fy]) * 0.05))
    assert 1.0 < np.median(paces) < 6.0


def test_windows_see_a_part_of_the_view() -> None:
    scene, rng = made_scene(), np.random.default_rng(5)
    part = windowed(VIEW, (20, 10), rng)
    assert (part.width, part.height) == (20, 10)
    left, top = round(VIEW.cx - part.cx), round(VIEW.cy - part.cy)
    whole = render(scene, VIEW).color[top : top + 10, left : left + 20]
    np.testing.assert_allclose(render(scene, part).color, whole, atol=1e-4)
    assert windowed(VIEW, (0, 0), rng) == VIEW


@pytest.mark.parametrize(("index", "longest"), [(0, 2), (400, 16), (800, 128), (1000, 128)])
def test_the_curriculum_lengthens_chains_exponentially(index: int, longest: int) -> None:
    """2 · 64^(progress), full after 0.8 of the steps."""
    settings, rng = Stage4(steps=1000, temporal_share=1.0), np.random.default_rng(0)
    lengths = [chain_length(index, settings, rng) for _ in range(2000)]
    assert min(lengths) == 2 and max(lengths) == longest
    later = replace(settings, curriculum_share=1.0)
    assert index in (0, 1000) or max(chain_length(index, later, rng) for _ in range(500)) < longest


def test_a_share_of_the_steps_has_a_history() -> None:
    settings, rng = Stage4(steps=1000, temporal_share=0.7), np.random.default_rng(0)
    assert np.mean([chain_length(500, settings, rng) > 1 for _ in range(2000)]) == pytest.approx(0.7, abs=0.03)


def test_a_short_dolly_does_not_jump() -> None:
    first, second = chain_cameras(VIEW, "dolly", 2, ChainSizes(), 4.0, np.random.default_rng(1))
    assert np.linalg.norm(second.position - first.position) < 0.01


# The stream of a step


class Recorder(CpuEngine):
    """The CPU engine, with everything it was asked for."""

    def __init__(self) -> None:
        self.noises: list[Noise] = []
        self.options: list[tuple[str, RenderOptions | None]] = []
        self.rendered: list[str] = []

    def upload(self, gaussians, options=None):
        self.options.append(("upload", options))
        return super().upload(gaussians, options)

    def sample(self, scene, camera, noise, options):
        self.noises.append(noise)
        self.options.append(("sample", options))
        return super().sample(scene, camera, noise, options)

    def decode(self, visibility, scene, camera, options):
        self.options.append(("decode", options))
        return super().decode(visibility, scene, camera, options)

    def denoise(self, denoiser, observation, camera, state, options, with_views=False):
        self.options.append(("denoise", options))
        return super().denoise(denoiser, observation, camera, state, options, with_views)

    def render(self, scene, camera, method, options, with_depth=True):
        self.rendered.append(method)
        self.options.append(("render", options))
        return super().render(scene, camera, method, options, with_depth)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setattr(joint_stage, "engine", lambda name: found)
    return found


def test_every_frame_of_every_step_has_its_own_noise(recorder: Recorder) -> None:
    stage = joint(temporal_share=1.0, suffix_frames=4, curriculum_share=0.01)
    for index in (50, 51):
        stage.play(index)
    seen = [(noise.seed, noise.frame) for noise in recorder.noises]
    assert len(set(seen)) == len(seen) and len({seed for seed, _ in seen}) == 2
    first = [frame for seed, frame in seen if seed == seen[0][0]]
    assert first == list(range(len(first))) and len(first) > 1


def test_background_and_threads_reach_every_part_of_stage_4(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, native = [], ops._engine.ssim
    monkeypatch.setattr(ops._engine, "ssim", lambda *args: asked.append(args[2]) or native(*args))
    stage = joint(background=(0.1, 0.5, 0.9), threads=3, temporal_share=1.0, suffix_frames=3, curriculum_share=0.01)
    stage.step(50)
    stage.measure()
    stage.preview()
    assert {name for name, _ in recorder.options} == {"upload", "sample", "decode", "denoise", "render"}
    assert {options for _, options in recorder.options} == {RenderOptions((0.1, 0.5, 0.9), threads=3)}
    assert asked == [3]


def test_the_background_is_seen_in_targets_and_noise() -> None:
    away = replace(SMALL, world_from_camera=SMALL.world_from_camera @ np.diag([-1.0, 1.0, -1.0, 1.0]))  # nothing there
    chain = joint(away, background=(0.1, 0.5, 0.9), temporal_share=0.0).play(0)
    for color in (chain.target.color, chain.frames[-1].observation.color):
        np.testing.assert_allclose(color, np.broadcast_to(np.float32([0.1, 0.5, 0.9]), color.shape))


@pytest.mark.parametrize("target", ["reference", "exact"])
def test_the_target_is_drawn_as_set(target: str, recorder: Recorder) -> None:
    joint(target=target).play(0)
    assert set(recorder.rendered) == {target}


def test_clean_frames_come_first_and_noisy_ones_last(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of n frames has min(n, suffix) noisy ones, which begin with the state that the others would leave."""
    begun = []
    monkeypatch.setattr(joint_stage, "clean_state", lambda *args: begun.append(args[2]) or clean_state(*args))
    stage = joint(temporal_share=1.0, suffix_frames=3, curriculum_share=0.01, longest_chain=40)
    lengths = []
    for index in range(20, 26):
        length = chain_length(index, stage.settings, np.random.default_rng([0, index]))
        before = len(recorder.noises)
        stage.play(index)
        assert len(recorder.noises) - before == min(3, length)
        lengths.append(length)
    assert begun == [length - 3 for length in lengths if length > 3] and len(begun) > 1


def test_a_flight_takes_off_from_rest_and_is_noisy_all_the_way(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any length from the first step on; the state at its start is that of a long rest at its first camera."""
    begun = []
    monkeypatch.setattr(joint_stage, "clean_state", lambda *args: begun.append(args[1:3]) or clean_state(*args))
    stage = joint(temporal_share=1.0, flight_share=1.0, longest_chain=40, gradient_frames=3, steps=1000)
    lengths = []
    for index in range(6):
        before = len(recorder.noises)
        chain = stage.play(index)
        lengths.append(len(recorder.noises) - before)
        assert len(chain.frames) == min(3, lengths[-1])
    assert [frames for _, frames in begun] == [40] * 6 and max(lengths) > 20 and min(lengths) >= 2
    assert not np.array_equal(begun[-1][0].world_from_camera, chain.frames[0].camera.world_from_camera)
    assert joint(flight_share=1.0, temporal_share=0.0).play(0).state is None


def test_the_loss_of_the_last_frame_reaches_the_payload_of_the_frames_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Surfels that only earlier frames show have a gradient, unless the state is detached."""

    def touched(gradient_frames: int) -> set[int]:
        stage = joint(temporal_share=1.0, flight_share=1.0, gradient_frames=gradient_frames, gate_warmup=0)
        index = first_index(stage, lambda chain: len(chain.frames) == gradient_frames and chain.state is not None)
        chain = stage.play(index)
        _, terms = stage.forward(chain, index)
        torch.stack(list(terms.values())).sum().backward()
        seen = np.unique(chain.frames[-1].visibility.primitive_id)
        return set(np.flatnonzero(stage.payload.grad.abs().sum(1).numpy())) - set(seen.tolist())

    assert touched(4) and not touched(1)


def test_a_chain_of_one_frame_has_no_history() -> None:
    chain = joint(temporal_share=0.0).play(3)
    assert chain.state is None and len(chain.frames) == 1 and chain.frames[0].disoccluded is None


def test_a_clean_start_is_as_long_as_asked() -> None:
    state = clean_state(flat(2, 0.5), VIEW, 60, "temporal", DenoiserSettings())
    assert state.accumulated_frames[0, 0] == 60 and state.denoised_frames[0, 0] == 24
    np.testing.assert_allclose(state.accumulated[0, 0], [0.5, 0, 0], atol=1e-6)
    np.testing.assert_allclose(state.squared_luma, 0.25, atol=1e-6)
    assert state.method == "temporal" and (state.depth == 2).all() and (state.accumulated_trust == 1).all()


def test_the_payload_decodes_as_in_the_renderer() -> None:
    scene, payload, cpu = made_scene(), first_payload(60, Stage4(), 1), engine("cpu")
    uploaded, options = cpu.upload(replace(scene, payload=payload.numpy())), RenderOptions()
    visibility = cpu.sample(uploaded, VIEW, Noise(seed=2), options)
    expected = cpu.decode(visibility, uploaded, VIEW, options).neural_view
    np.testing.assert_allclose(neural_view(payload, visibility, VIEW).numpy(), expected, atol=1e-6)
    payload.requires_grad_()
    neural_view(payload, visibility, VIEW).sum().backward()
    seen = np.unique(visibility.primitive_id[visibility.primitive_id >= 0])
    assert set(np.flatnonzero(payload.grad.abs().sum(1).numpy())) == set(seen)


# Disocclusion


def flat(depth: float, color: float) -> CleanPicture:
    shape = (VIEW.height, VIEW.width)
    color_, alpha, depth_ = (np.full(s, v, np.float32) for s, v in (((*shape, 3), color), (shape, 1), (shape, depth)))
    return CleanPicture(color_, alpha, depth_)


def test_disocclusion_needs_depth_and_colour_and_opacity() -> None:
    settings = Stage4()
    assert disocclusion(flat(2, 0.5), VIEW, flat(1, 0.2), VIEW, settings).all()
    assert not disocclusion(flat(2, 0.5), VIEW, flat(2.01, 0.2), VIEW, settings).any()
    assert not disocclusion(flat(2, 0.5), VIEW, flat(1, 0.47), VIEW, settings).any()
    faint = flat(2, 0.5)._replace(alpha=np.full((VIEW.height, VIEW.width), 0.5, np.float32))
    assert not disocclusion(faint, VIEW, flat(1, 0.2), VIEW, settings).any()


def test_a_picture_without_depth_is_no_target() -> None:
    with pytest.raises(TrainingError, match="a clean picture needs alpha and depth"):
        CleanPicture.of(Image(flat(2, 0.5).color))


def test_disoccluded_pixels_use_no_history_and_pay_for_trust() -> None:
    """The upper half of the last frame was not seen before."""
    stage = joint(temporal_share=1.0, gate_warmup=0, curriculum_share=0.01)
    index = first_index(stage, lambda chain: chain.state is not None)
    chain = stage.play(index)
    mask = torch.zeros(SMALL.height, SMALL.width, dtype=torch.bool)
    mask[:6] = True

    def hidden(pixels: Tensor | None) -> Chain:
        return replace(chain, frames=(*chain.frames[:-1], replace(chain.frames[-1], disoccluded=pixels)))

    frame, terms = stage.forward(hidden(mask), index)
    assert (frame.views["accumulated_frames"][mask] == 1).all() and (frame.views["denoised_frames"][mask] == 1).all()
    trusts = frame.trusts[0] + frame.trusts[1]
    assert (frame.views["accumulated_trust"][mask] == 0).all() and trusts[mask].min() > 0
    assert terms["disocclusion"].item() == pytest.approx(0.03 * (trusts * mask).mean().item())
    assert "disocclusion" not in stage.forward(hidden(None), index)[1]


# The terms of the loss


def learned(stage: JointStage) -> tuple[TensorImage, TensorObservation, Tensor]:
    """A frame with history, its observation and its target."""
    index = first_index(stage, lambda chain: chain.state is not None)
    chain = stage.play(index)
    frame, _ = stage.forward(chain, index)
    observation = replace(TensorObservation.from_numpy(chain.frames[-1].observation), neural_view=None)
    return frame, observation, torch.tensor(chain.target.color)


@pytest.fixture(scope="module")
def denoised() -> tuple[TensorImage, TensorObservation, Tensor]:
    stage = joint(temporal_share=1.0, gate_warmup=0, curriculum_share=0.01)
    with torch.no_grad():
        return learned(stage)


def terms_of(denoised, settings: Stage4, near_static: bool = False, disoccluded=None, lpips=None):
    frame, observation, target = denoised
    with torch.no_grad():
        found = JointLoss(settings, PAPER, lpips).terms(frame, observation, target, disoccluded, near_static)
    return {name: term.item() for name, term in found.items()}


NOTHING = Stage4(ssim=0.0, lpips=0.0, accumulated=0.0, symmetry=0.0, near_static=0.0, disocclusion=0.0)


def test_the_photometric_terms_have_their_weights(denoised) -> None:
    frame, _, target = denoised
    composite, accumulated = frame.views["composite"], frame.views["accumulated"]
    l1 = (composite - target).abs().mean().item()
    assert terms_of(denoised, NOTHING) == {"l1": pytest.approx(l1)}
    found = terms_of(denoised, replace(NOTHING, ssim=0.3, accumulated=0.7))
    assert found == {
        "l1": pytest.approx(l1),
        "ssim": pytest.approx(0.3 * (1 - ops.ssim(composite, target).item())),
        "accumulated": pytest.approx(0.7 * (accumulated - target).abs().mean().item()),
    }


def test_lpips_counts_where_its_weights_are_given(denoised) -> None:
    class Distance(Lpips):
        def __call__(self, first: Tensor, second: Tensor) -> Tensor:
            assert first.shape == second.shape == (1, 3, SMALL.height, SMALL.width)
            return (first - second).square().mean(dim=(1, 2, 3))

    frame, _, target = denoised
    expected = 0.4 * (frame.views["composite"] - target).square().mean().item()
    assert terms_of(denoised, replace(NOTHING, lpips=0.4), lpips=Distance({}))["lpips"] == pytest.approx(expected)
    assert "lpips" not in terms_of(denoised, replace(NOTHING, lpips=0.4))


@pytest.mark.parametrize(("view", "difference"), [((0.0, 2.0), 2.0), ((2.0, 0.0), 2.0), ((3.0, 3.0), 0.0)])
def test_symmetry_pulls_the_scales_of_the_filter_together(
    denoised, view: tuple[float, float], difference: float
) -> None:
    """|a_x - a_y| is |V1 - V0| where both are positive, whatever their correlation."""
    frame, observation, target = denoised
    payload = torch.tensor([*view, 5.0, 0.3]).expand(SMALL.height, SMALL.width, 4)
    seen = frame, replace(observation, neural_view=payload), target
    settings = replace(NOTHING, symmetry=0.1)
    assert terms_of(seen, settings)["symmetry"] == pytest.approx(0.1 * difference, abs=1e-6)
    assert "symmetry" not in terms_of(denoised, settings)  # no payload


@pytest.mark.parametrize(("transfer", "weight"), [(False, 0.2), (True, 0.1)])
def test_near_static_chains_pull_both_trusts_to_one(denoised, transfer: bool, weight: float) -> None:
    settings = replace(NOTHING, near_static=0.2, transfer_near_static=0.1, transfer=transfer)
    trust_s, trust_h = denoised[0].trusts
    missing = (1 - trust_s.mean()) + (1 - trust_h.mean())
    found = terms_of(denoised, settings, near_static=True)["near_static"]
    assert found == pytest.approx(weight * missing.item()) and found > 0
    assert "near_static" not in terms_of(denoised, settings, near_static=False)


@pytest.mark.parametrize(("transfer", "weight"), [(False, 0.2), (True, 0.25)])
def test_disocclusion_pulls_both_trusts_to_zero(denoised, transfer: bool, weight: float) -> None:
    settings = replace(NOTHING, disocclusion=0.2, transfer_disocclusion=0.25, transfer=transfer)
    trust_s, trust_h = denoised[0].trusts
    mask = torch.zeros(SMALL.height, SMALL.width, dtype=torch.bool)
    mask[:6] = True
    trusts = (trust_s + trust_h)[:6].sum() / mask.numel()
    found = terms_of(denoised, settings, disoccluded=mask)["disocclusion"]
    assert found == pytest.approx(weight * trusts.item()) and found > 0
    assert "disocclusion" not in terms_of(denoised, settings, disoccluded=mask & False)


def test_the_trust_loss_counts_with_its_weight(denoised) -> None:
    expected = both_trust_losses(*denoised, PAPER).item()
    assert terms_of(denoised, replace(NOTHING, trust_loss=2.0))["trust_loss"] == pytest.approx(2 * expected)
    still = replace(denoised[0], history=replace(denoised[0].history, static=True))
    alone = both_trust_losses(still, *denoised[1:], PAPER).item()  # of the denoised path only
    assert 0 < alone < expected


def test_near_static_is_said_of_near_static_chains_only(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = joint(temporal_share=1.0)
    for kind in KINDS:
        monkeypatch.setattr(joint_stage, "chain_kind", lambda sizes, rng, kind=kind: kind)
        assert stage.play(10).near_static == (kind == "near-static")


# Steps


def test_rates_fall_along_a_cosine() -> None:
    stage = joint(steps=100, network_rate=1e-3, gamma_rate=1e-2, payload_rate=2e-2)
    for index, share in ((0, 1.0), (50, 0.505), (100, 0.01)):
        assert rate_share(index, stage.settings) == pytest.approx(share)
        stage.step(index)
        rates = [group["lr"] for group in stage.optimiser.param_groups]
        assert rates == pytest.approx([1e-3 * share, 1e-2 * share, 2e-2 * share])
    assert rate_share(100, Stage4(steps=100, end_share=0.3)) == pytest.approx(0.3)


def test_gradients_of_the_networks_are_clipped_those_of_the_payload_are_not() -> None:
    def norms(clip: float) -> tuple[float, float]:
        stage = joint(clip_gradient=clip, gate_warmup=0)
        stage.step(0)
        networks = torch.cat([parameter.grad.flatten() for parameter in stage.networks.parameters()]).norm()
        return networks.item(), stage.payload.grad.norm().item()

    free, payload = norms(1e6)
    assert free > 1e-3 and payload > 0
    assert norms(free / 10) == (pytest.approx(free / 10, rel=1e-3), pytest.approx(payload))


def test_the_gate_is_open_while_it_warms_up() -> None:
    stage = joint(gate_warmup=5)
    assert [stage.denoiser_settings(index).gate for index in (0, 4, 5, 100)] == [1, 1, "learned", "learned"]
    frame, _ = stage.forward(stage.play(0), 0)
    torch.testing.assert_close(frame.views["composite"], frame.views["denoised"])
    later, _ = stage.forward(stage.play(5), 5)
    assert not torch.allclose(later.views["composite"], later.views["denoised"])
    assert joint(gate_warmup=5, transfer=True).denoiser_settings(0).gate == "learned"
    assert stage.denoiser_settings(joint_stage.HELD_OUT_STEP).gate == "learned"


def test_training_begins_with_given_weights() -> None:
    given = DenoiserNetworks().to_weights()
    stage = JointStage(Subject(made_scene(), [SMALL], [SMALL], 2.0), TrainSettings(), start=given)
    assert all(np.array_equal(stage.networks.to_weights()[name], given[name]) for name in given.tensors)


@pytest.mark.parametrize(("method", "settings"), [("paper", PAPER), ("temporal", DenoiserSettings())])
def test_the_passes_of_the_method_are_trained(method: str, settings: DenoiserSettings) -> None:
    stage = joint(method=method, gate_warmup=0)
    assert stage.denoiser_settings(0) == stage.loss.denoiser == settings
    assert joint(method=method, payload=False).denoiser_settings(50) == replace(settings, zero_shot=True)


def test_the_target_is_the_vanilla_scene() -> None:
    scene, other = made_scene(), replace(made_scene(), sh=made_scene().sh + 0.5)
    chain = JointStage(Subject(scene, [SMALL], [SMALL], 2.0, other), TrainSettings(threads=1)).play(0)
    camera = chain.frames[-1].camera
    np.testing.assert_allclose(chain.target.color, render(other, camera, "reference").color, atol=1e-6)
    assert np.abs(chain.target.color - render(scene, camera, "reference").color).max() > 0.05


def test_disoccluded_pixels_of_every_noisy_frame_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left of a column nothing was seen before, in any frame: histories there are one frame long."""

    def left(picture, camera, before, camera_before, settings):
        mask = torch.zeros(camera.height, camera.width, dtype=torch.bool)
        mask[:, :5] = True
        return mask

    monkeypatch.setattr(joint_stage, "disocclusion", left)
    monkeypatch.setattr(joint_stage, "chain_kind", lambda sizes, rng: "near-static")
    stage = joint(temporal_share=1.0, suffix_frames=4, curriculum_share=0.01, longest_chain=12)
    index = next(i for i in range(20, 60) if chain_length(i, stage.settings, np.random.default_rng([0, i])) > 5)
    state = stage.play(index).state
    assert (state.accumulated_frames[:, :5] == 1).all() and (state.denoised_frames[:, :5] == 1).all()
    assert (state.accumulated_trust[:, :5] == 0).all() and (state.accumulated_frames[:, 6:] > 1).any()


def test_transfer_begins_with_the_weights_of_the_package() -> None:
    given, fresh = default_weights("paper").tensors, joint().networks.to_weights().tensors
    found = joint(transfer=True).networks.to_weights().tensors
    assert all(np.allclose(found[name], given[name], atol=1e-6) for name in given)
    assert not all(np.allclose(fresh[name], given[name], atol=1e-6) for name in given)


def test_a_step_takes_the_gradient_of_the_sum_of_its_terms() -> None:
    stage = joint(trust_loss=1.0, temporal_share=1.0)
    found = stage.step(20)
    parts = [value for name, value in found.items() if name not in ("loss", "psnr", "trust")]
    assert found["loss"] == pytest.approx(sum(parts)) and len(parts) >= 5


def test_the_state_of_the_stage_survives_a_checkpoint() -> None:
    whole, resumed = joint(), joint()
    for index in range(2):
        whole.step(index)
    resumed.load({name: tensor.clone() for name, tensor in whole.state().items()})
    assert whole.step(2) == pytest.approx(resumed.step(2), rel=1e-5)


@pytest.mark.parametrize(("payload", "steps"), [(True, 60), (False, 100)])
def test_it_learns(payload: bool, steps: int) -> None:
    stage = joint(VIEW, steps=steps, payload=payload, network_rate=2e-2, gamma_rate=5e-2, trust_loss=1.0)
    before, untrained = stage.measure()["held_out_psnr"], stage.payload.detach().clone()
    for index in range(steps):
        metrics = stage.step(index)
    assert np.isfinite(metrics["loss"])
    assert stage.measure()["held_out_psnr"] > before + 0.3
    assert payload == bool((stage.payload != untrained).any())
    assert stage.preview().shape == (VIEW.height, 2 * VIEW.width, 3)


def test_untrained_networks_are_those_of_the_seed() -> None:
    torch.manual_seed(0)
    expected = DenoiserNetworks().to_weights().tensors
    assert all(np.array_equal(expected[name], tensor) for name, tensor in joint().networks.to_weights().tensors.items())
