"""The trained part of the denoiser as a PyTorch module; its parameters have the names of the weights file."""

from __future__ import annotations

import torch
from torch import nn

from hushsplat.engines.torch.gate import Gate
from hushsplat.engines.torch.trust import AccumulatedTrust, DenoisedTrust
from hushsplat.spec.weights import DenoiserWeights


class DenoiserNetworks(nn.Module):
    """θ and γ: the two trust networks and the gate's scalar. `step` in pipeline.py runs a frame through them."""

    def __init__(self) -> None:
        super().__init__()
        self.accumulated = AccumulatedTrust()
        self.denoised = DenoisedTrust()
        self.gate = Gate()

    @staticmethod
    def from_weights(weights: DenoiserWeights) -> DenoiserNetworks:
        """A module with these weights, float32 on the CPU."""
        denoiser = DenoiserNetworks()
        denoiser.load_state_dict({name: torch.tensor(tensor) for name, tensor in weights.tensors.items()})
        return denoiser

    def to_weights(self) -> DenoiserWeights:
        """The weights as arrays; refused if training left any of them not finite."""
        tensors = {name: tensor.to("cpu", torch.float32).numpy().copy() for name, tensor in self.state_dict().items()}
        tensors["gate.gamma"] = self.gate.scale().detach().to("cpu", torch.float32).numpy().copy()
        return DenoiserWeights(tensors)
