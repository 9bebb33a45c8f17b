"""Settings of the joint training of payload and denoiser: the paper's table "Stage-4 training configuration"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class ChainSizes:
    """How far chains of cameras go."""

    angle_deg: float = 3.0  # >= 0: largest perturbation; paper
    position_share: float = 0.003  # >= 0, of the scene's radius; paper
    meter: float = 1.0  # world units, > 0: captures do not know how large they are
    dolly_m: tuple[float, float] = (0.5, 1.1)  # metres, > 0: length of a lateral dolly, from and to; paper
    drift_share: float = 0.25  # 0..1 of the chains; paper
    dolly_share: float = 0.25  # 0..1 of the chains, the other three classes share the rest; paper
    pace_share: float = 0.0  # 0..1 of all chains: ours, at `pace_px` in place of the paper's classes
    pace_px: tuple[float, float] = (0.05, 12.0)  # px a frame, > 0: slowest and fastest, even in the logarithm


@dataclass(frozen=True)
class Stage4:
    """Payload and denoiser, the scene frozen."""

    steps: int = 15_000  # >= 0: paper; 4000 as transfer from trained weights
    transfer: bool = False  # begin with the weights that ship with the package, and the paper's "fast transfer" weights
    payload: bool = True  # False trains the networks alone, zero-shot
    target: Literal["reference", "exact"] = "reference"  # what is clean: sorted (paper) or in per-pixel order
    network_rate: float = 1e-3  # > 0: Adam's, ours; falls along a cosine to a hundredth
    payload_rate: float = 2e-2  # > 0: Adam's, ours
    gamma_rate: float = 1e-2  # > 0: Adam's, ours; gamma is about 10 where weights are about 1

    ssim: float = 0.05  # >= 0: weight of 1 - SSIM beside L1; paper
    lpips: float = 0.01  # >= 0: weight of LPIPS, where its weights are given; paper
    accumulated: float = 0.2  # >= 0: weight of the accumulated path's own L1; paper
    votes: float = 0.0  # >= 0: weight of learn/votes.py, ours; the paper has none

    temporal_share: float = 0.7  # 0..1: steps with a history; paper
    suffix_frames: int = 8  # >= 1: the last frames of a chain are drawn stochastically; paper: K
    longest_chain: int = 128  # frames, >= 2: at the end of the curriculum, which begins with 2; paper
    chains: ChainSizes = field(default_factory=ChainSizes)
    window: tuple[int, int] = (0, 0)  # px: only this much of a view is drawn in a step; 0: all of it

    near_static: float = 0.01  # >= 0: pulls both trusts to 1 on near-static chains; paper, 0.005 in transfer
    disocclusion: float = 0.03  # >= 0: pulls the trusts to 0 where nothing was seen before; paper, + 0.05 in transfer
    disocclusion_depth: float = 0.02  # relative, > 0; paper
    disocclusion_opacity: float = 0.6  # 0..1: only where the scene is this opaque; paper
    disocclusion_color: float = 0.05  # >= 0: and differs by more than this; paper
    symmetry: float = 0.01  # >= 0: pulls the filter's axes together; paper
    gate_warmup: int = 2_000  # steps, >= 0: only the denoised path is shown; paper
