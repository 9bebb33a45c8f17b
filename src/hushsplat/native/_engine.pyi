# What module.cpp offers; arrays are C-contiguous, outputs are written in place.
import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]

class Camera:
    def __init__(
        self, rotation: _Floats, eye: _Floats, intrinsics: _Floats, width: int, height: int, near: float
    ) -> None: ...

class Scene:
    def __init__(
        self, means: _Floats, scales: _Floats, rotations: _Floats, opacities: _Floats, threads: int
    ) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def stochastic(
        self,
        camera: Camera,
        levels: _Floats,
        sequence: NDArray[np.uint32],
        threads: int,
        id: NDArray[np.int32],
        depth: _Floats,
    ) -> None: ...
    def sorted(
        self,
        camera: Camera,
        sh: _Floats,
        means: _Floats,
        background: _Floats,
        threads: int,
        color: _Floats,
        alpha: _Floats,
        depth: _Floats | None,
    ) -> None: ...
    def ordered(
        self,
        camera: Camera,
        sh: _Floats,
        means: _Floats,
        background: _Floats,
        threads: int,
        color: _Floats,
        alpha: _Floats,
        depth: _Floats | None,
        variance: _Floats | None,
    ) -> None: ...

def decode(
    id: NDArray[np.int32],
    camera: Camera,
    sh: _Floats,
    means: _Floats,
    background: _Floats,
    threads: int,
    color: _Floats,
) -> None: ...
def default_threads() -> int: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def choose_instruction_set(name: str) -> None: ...
