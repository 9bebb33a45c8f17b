"""Stage 4's parts: votes, chains of cameras, the payload's decoder, the disocclusion mask, and that it learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hushsplat.engines.cpu.decode import decode_neural_view
from hushsplat.training.stage4_settings import ChainSizes, Stage4
from made_capture import made_scene, tiny_config

from hushsplat.spec.settings import DenoiserSettings
from hushsplat.training.chain_cameras import KINDS, chain_cameras, chain_kind, paced
from hushsplat.training.joint_stage import (
    JointStage,
    Subject,
    clean_state,
    disocclusion,
    first_payload,
    neural_view,
    windowed,
)
from hushsplat.training.settings import PRESETS, checked
from hushsplat.training.trust_loss import trust_votes
from hushsplat.types.camera import Camera
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image

VIEW = Camera.look_at([0.0, -0.3, -2.2], [0.0, 0.0, 0.0], width=48, height=36)


@pytest.mark.parametrize(("frames", "history", "sample"), [(20.0, 0.01, 0.04), (100.0, 0.5, 0.1), (4.0, 0.2, 0.2)])
def test_votes_are_least_at_the_best_weight(frames: float, history: float, sample: float) -> None:
    """n t = s² / e², which makes w² e² + (1 - w)² s² least."""
    trusts = torch.linspace(0.0005, 0.995, 4000, dtype=torch.float64)
    shape = (1, 1)

    def votes(trust: torch.Tensor) -> float:
        values = (torch.full(shape, value, dtype=torch.float64) for value in (frames, float(trust), history, sample))
        return trust_votes(*values, torch.ones(shape, dtype=torch.bool)).item()

    best = trusts[int(np.argmin([votes(trust) for trust in trusts]))].item()
    weights = frames * trusts / (frames * trusts + 1)
    errors = weights**2 * history + (1 - weights) ** 2 * sample
    assert best == pytest.approx(trusts[errors.argmin()].item(), abs=1e-3)


def test_votes_lead_back_from_full_trust() -> None:
    """With n = 100 the mean's own error hardly knows t; the votes' gradient does."""
    logit = torch.full((1, 1), 5.0, requires_grad=True)
    one = torch.ones(1, 1)
    trust_votes(100 * one, torch.sigmoid(logit), 0.5 * one, 0.01 * one, one > 0).backward()
    mean_logit = torch.full((1, 1), 5.0, requires_grad=True)
    weight = 100 * torch.sigmoid(mean_logit) / (100 * torch.sigmoid(mean_logit) + 1)
    (weight**2 * 0.5 + (1 - weight) ** 2 * 0.01).sum().backward()
    assert logit.grad.item() > 100 * mean_logit.grad.item() > 0


def test_nobody_votes_without_history() -> None:
    trust = torch.full((2, 2), 0.5, requires_grad=True)
    one = torch.ones(2, 2)
    trust_votes(one, trust, one, one, one < 0).backward()
    assert (trust.grad == 0).all()


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
        assert 0.5 <= lengths[-1] <= 1.1 and max(turns) < 1e-6
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


def test_the_payload_decodes_as_in_the_renderer() -> None:
    scene, payload = made_scene(), first_payload(60, 1)
    visibility = sample_visibility(scene, VIEW, seed=2)
    found = neural_view(payload, visibility, VIEW)
    np.testing.assert_allclose(found.numpy(), decode_neural_view(visibility, payload.numpy(), VIEW), atol=1e-6)
    payload.requires_grad_()
    neural_view(payload, visibility, VIEW).sum().backward()
    seen = np.unique(visibility.primitive_id[visibility.primitive_id >= 0])
    assert set(np.flatnonzero(payload.grad.abs().sum(1).numpy())) == set(seen)


def flat(depth: float, color: float) -> Image:
    shape = (VIEW.height, VIEW.width)
    return Image(np.full((*shape, 3), color, np.float32), np.ones(shape, np.float32), np.full(shape, depth, np.float32))


def test_disocclusion_needs_depth_and_colour_and_opacity() -> None:
    settings = Stage4()
    assert disocclusion(flat(2, 0.5), VIEW, flat(1, 0.2), VIEW, settings).all()
    assert not disocclusion(flat(2, 0.5), VIEW, flat(2.01, 0.2), VIEW, settings).any()
    assert not disocclusion(flat(2, 0.5), VIEW, flat(1, 0.47), VIEW, settings).any()
    faint = replace(flat(2, 0.5), alpha=np.full((VIEW.height, VIEW.width), 0.5, np.float32))
    assert not disocclusion(faint, VIEW, flat(1, 0.2), VIEW, settings).any()


def test_a_clean_start_is_as_long_as_asked() -> None:
    state = clean_state(flat(2, 0.5), VIEW, 60, DenoiserSettings())
    assert state.accumulated_frames[0, 0] == 60 and state.denoised_frames[0, 0] == 24
    np.testing.assert_allclose(state.accumulated[0, 0], [0.5, 0, 0], atol=1e-6)
    np.testing.assert_allclose(state.squared_luma, 0.25, atol=1e-6)


def test_windows_see_a_part_of_the_view() -> None:
    scene, rng = made_scene(), np.random.default_rng(5)
    part = windowed(VIEW, (20, 10), rng)
    assert (part.width, part.height) == (20, 10)
    left, top = round(VIEW.cx - part.cx), round(VIEW.cy - part.cy)
    whole = render_sorted(scene, VIEW).color[top : top + 10, left : left + 20]
    np.testing.assert_allclose(render_sorted(scene, part).color, whole, atol=1e-4)
    assert windowed(VIEW, (0, 0), rng) == VIEW


def subject(scene: Gaussians) -> Subject:
    return Subject(scene, [VIEW], [VIEW], radius=2.0)


@pytest.mark.parametrize("payload", [True, False])
def test_it_learns(payload: bool) -> None:
    settings = Stage4(steps=150, payload=payload, gate_warmup=5, longest_chain=16, network_rate=1e-2, votes=1.0)
    stage = JointStage(subject(made_scene()), settings, seed=0)
    before, untrained = stage.measure()["held_out_psnr"], stage.payload.detach().clone()
    for index in range(150):
        metrics = stage.step(index)
    assert np.isfinite(metrics["loss"])
    assert stage.measure()["held_out_psnr"] > before + 0.3
    assert payload == bool((stage.payload != untrained).any())
    assert stage.preview().shape == (VIEW.height, 2 * VIEW.width, 3)


def test_settings_are_checked() -> None:
    config = tiny_config()
    for chains, words in (
        (ChainSizes(drift_share=0.8, dolly_share=0.4), "must not be more than 1 together"),
        (ChainSizes(meter=0.0), "meter and pace_px must be more than 0"),
        (ChainSizes(dolly_m=(1.0, 0.5)), "from a number to one that is not smaller"),
        (ChainSizes(pace_share=1.5), "must lie in 0..1"),
    ):
        with pytest.raises(TrainingError, match=words):
            checked(replace(config, stage4=replace(config.stage4, chains=chains)))
    with pytest.raises(TrainingError, match="must not be negative"):
        checked(replace(config, stage4=replace(config.stage4, window=(-1, 0))))
    for preset in PRESETS.values():
        checked(preset)
