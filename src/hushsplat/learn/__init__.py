"""Everything that needs PyTorch: the differentiable twin of the denoiser, which defines what is right."""

from hushsplat.core.errors import HushsplatError

try:
    import torch  # noqa: F401  (asked for here, so that every module of this package may simply import it)
except ImportError as error:
    raise HushsplatError("hushsplat.learn needs PyTorch; install it with: pip install 'hushsplat[learn]'") from error

from hushsplat.learn.denoiser import Denoiser
from hushsplat.learn.pipeline import step
from hushsplat.learn.tensors import TensorFrame, TensorObservation, TensorState

__all__ = ["Denoiser", "TensorFrame", "TensorObservation", "TensorState", "step"]
