"""The module and its weights."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.io.weights import read_weights, write_weights
from hushsplat.spec.weights import SHAPES
from hushsplat.types.errors import WeightsError


def test_parameters_have_the_names_and_shapes_of_the_file():
    assert {name: tuple(p.shape) for name, p in DenoiserNetworks().named_parameters()} == SHAPES
    assert sum(p.numel() for p in DenoiserNetworks().parameters()) == 547


def test_weights_make_the_round_trip_through_a_file(tmp_path):
    torch.manual_seed(0)
    denoiser = DenoiserNetworks()
    write_weights(denoiser.to_weights(), tmp_path / "w.safetensors")
    again = DenoiserNetworks.from_weights(read_weights(tmp_path / "w.safetensors"))
    for name, tensor in denoiser.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
    features = torch.rand(4, 5, 8)
    assert torch.equal(denoiser.accumulated(features), again.accumulated(features))


def test_weights_are_copies():
    denoiser = DenoiserNetworks()
    weights = denoiser.to_weights()
    before = weights["accumulated.0.bias"].copy()
    with torch.no_grad():
        denoiser.accumulated[0].bias.add_(1)
    np.testing.assert_array_equal(weights["accumulated.0.bias"], before)


def test_gamma_below_its_minimum_is_written_as_the_minimum():
    denoiser = DenoiserNetworks()
    with torch.no_grad():
        denoiser.gate.gamma.fill_(-1.0)
    assert denoiser.to_weights().gamma == pytest.approx(1e-4)


def test_weights_that_training_broke_are_refused():
    denoiser = DenoiserNetworks().double()
    with torch.no_grad():
        denoiser.denoised.head.weight[0, 3] = torch.nan
    with pytest.raises(WeightsError, match=r"'denoised\.head\.weight' holds values that are not finite"):
        denoiser.to_weights()


def test_without_torch_the_error_says_how_to_install_it():
    code = """
import sys
sys.modules["torch"] = None
from hushsplat.types.errors import HushsplatError
try:
    import hushsplat.engines.torch
except HushsplatError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'hushsplat[learn]'" in done.stdout
