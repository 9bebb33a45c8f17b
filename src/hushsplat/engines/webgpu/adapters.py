"""The GPUs of this machine, and the choice of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import wgpu
from wgpu.backends.wgpu_native.extras import set_instance_extras

from hushsplat.types.errors import RenderError

BACKENDS = ("Vulkan", "Metal", "DX12")  # OpenGL would list each GPU once more, and lacks what the shaders use
PREFERENCE = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")
NO_ADAPTER = (
    "no GPU adapter was found; install the Vulkan driver of your GPU (on Debian and Ubuntu mesa-vulkan-drivers has "
    "those of AMD and Intel and a software one), or use the cpu engine."
)


@dataclass(frozen=True)
class Adapter:
    """A GPU as the system offers it.

    Attributes:
        number: its place in the list.
        name: of the device.
        driver: and its version.
        backend: Vulkan, Metal or D3D12.
        is_software: it runs on the CPU; good for tests, slower than the cpu engine.
        native: of wgpu.
    """

    number: int
    name: str
    driver: str
    backend: str
    is_software: bool
    native: Any = field(repr=False)

    def __str__(self) -> str:
        kind = ", software" if self.is_software else ""
        return f"{self.name} ({self.backend}{kind})"


@lru_cache
def adapters() -> tuple[Adapter, ...]:
    """All adapters, dedicated GPUs first, software last."""
    set_instance_extras(backends=BACKENDS)
    found = sorted(wgpu.gpu.enumerate_adapters_sync(), key=_preference)
    return tuple(
        Adapter(
            number,
            each.info["device"],
            each.info["description"],
            each.info["backend_type"],
            each.info["adapter_type"] == "CPU",
            each,
        )
        for number, each in enumerate(found)
    )


def choose(wanted: str | int | None = None) -> Adapter:
    """The adapter of that number, or whose name has this part; None takes the first."""
    found = adapters()
    if not found:
        raise RenderError(NO_ADAPTER)
    if wanted is None:
        return found[0]
    named = [
        each
        for each in found
        if str(wanted) == str(each.number) or str(wanted).lower() in str(each).lower().split("(")[0]
    ]
    exact = [each for each in named if str(wanted) == str(each.number)]
    if len(exact or named) != 1:
        listed = ", ".join(f"{each.number}: {each}" for each in found)
        problem = "several adapters match" if named else "no adapter matches"
        raise RenderError(f"{problem} '{wanted}'; choose one of {listed}.")
    return (exact or named)[0]


def _preference(native: Any) -> int:
    kind = native.info["adapter_type"]
    return PREFERENCE.index(kind if kind in PREFERENCE else "Unknown")
