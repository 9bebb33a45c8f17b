"""A denoiser ready to execute: what an engine needs to know of a method, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushsplat.spec.state import StateLayout
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.settings import Settings


@dataclass(frozen=True)
class ConfiguredDenoiser:
    """A streaming method with its settings and weights.

    Attributes:
        name: of the method; states carry it.
        layout: of the state; it also names the algorithm that an engine runs.
        settings: of that algorithm.
        weights: of the learned ones.
    """

    name: str
    layout: StateLayout
    settings: Settings
    weights: DenoiserWeights | None = field(default=None, repr=False)
