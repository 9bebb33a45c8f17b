"""Everything that needs PyTorch: the differentiable twin of the denoiser, which defines what is right."""

from hushsplat.types.errors import HushsplatError

try:
    import torch  # noqa: F401  (asked for here, so that every module of this package may simply import it)
except ImportError as error:
    raise HushsplatError(
        "hushsplat.engines.torch needs PyTorch; install it with: pip install 'hushsplat[learn]'"
    ) from error

from hushsplat.engines.torch.networks import Denoiser
from hushsplat.engines.torch.pipeline import step
from hushsplat.engines.torch.tensors import TensorFrame, TensorObservation, TensorState

__all__ = ["Denoiser", "TensorFrame", "TensorObservation", "TensorState", "step"]
