"""The GPU engine: WGSL shaders, run by wgpu on Vulkan, Metal or Direct3D 12."""

from hushsplat.types.errors import HushsplatError

try:
    import wgpu  # noqa: F401  (asked for here, so that every module of this package may simply import it)
except ImportError as error:
    raise HushsplatError("the gpu engine needs wgpu; install it with: pip install 'hushsplat[gpu]'") from error
