"""The torch engine: the slow, differentiable definition of what every engine has to compute."""

from hushsplat.types.errors import HushsplatError

try:
    import torch  # noqa: F401  (asked for here, so that every module of this package may simply import it)
except ImportError as error:
    raise HushsplatError("this needs PyTorch; install it with: pip install 'hushsplat[learn]'") from error
