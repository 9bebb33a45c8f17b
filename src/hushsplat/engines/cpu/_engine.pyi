# What module.cpp and the bind_*.cpp offer. Arrays have these types and are C-contiguous, or they are refused with a
# TypeError; outputs are written in place.
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]

class Camera:
    def __init__(
        self, rotation: _Floats, eye: _Floats, intrinsics: _Floats, width: int, height: int, near: float
    ) -> None: ...

class Cancelled(Exception): ...

class Cancel:
    def __init__(self) -> None: ...
    def set(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...

class Scene:
    def __init__(
        self,
        means: _Floats,
        scales: _Floats,
        rotations: _Floats,
        opacities: _Floats,
        threads: int,
        group: NDArray[np.int32] | None = None,
    ) -> None: ...
    antialiased: bool
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def groups(self) -> int: ...
    def stochastic(
        self,
        camera: Camera,
        levels: _Floats,
        sequence: NDArray[np.uint32],
        by_center: bool,
        threads: int,
        id: NDArray[np.int32],
        depth: _Floats,
        shown: NDArray[np.uint8] | None = None,
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
        shown: NDArray[np.uint8] | None = None,
    ) -> None: ...
    def exact(
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
        shown: NDArray[np.uint8] | None = None,
    ) -> None: ...

class ActiveSet:
    @property
    def frame(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def members(self) -> int: ...
    @property
    def fresh(self) -> int: ...
    @property
    def entries(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    @property
    def rays(self) -> int: ...
    @property
    def searched(self) -> int: ...
    @property
    def stage_ms(self) -> dict[str, float]: ...
    def is_member(self, scene: Scene, out: NDArray[np.bool_]) -> None: ...

def draw_active_set(
    scene: Scene,
    camera: Camera,
    sh: _Floats,
    means: _Floats,
    background: _Floats,
    settings: ActiveSetSettings,
    levels: _Floats,
    sequence: NDArray[np.uint32],
    previous: ActiveSet | None,
    by_center: bool,
    threads: int,
    color: _Floats,
    alpha: _Floats,
    depth: _Floats | None,
    shown: NDArray[np.uint8] | None = None,
) -> ActiveSet: ...

class Surfels:
    def __init__(
        self, means: _Floats, scales: _Floats, rotations: _Floats, opacities: _Floats, sh: _Floats
    ) -> None: ...

class SurfelGradients(Surfels): ...

class Drawing:
    def __init__(self, color: _Floats, alpha: _Floats, geometry: _Floats | None) -> None: ...

class Drawn:
    def __init__(self, color: _Floats, alpha: _Floats, geometry: _Floats | None) -> None: ...

class FragmentTape:
    def __init__(self) -> None: ...
    @property
    def fragments(self) -> int: ...

class TrainedScene:
    def __init__(self, surfels: Surfels, threads: int) -> None: ...
    @property
    def count(self) -> int: ...
    def refresh(self, surfels: Surfels, threads: int) -> None: ...
    def draw(
        self,
        camera: Camera,
        surfels: Surfels,
        background: _Floats,
        threads: int,
        drawing: Drawing,
        tape: FragmentTape | None,
        stop: float,
    ) -> None: ...
    def gradient(
        self,
        camera: Camera,
        surfels: Surfels,
        threads: int,
        drawn: Drawn,
        by_drawn: Drawn,
        tape: FragmentTape | None,
        gradients: SurfelGradients,
        by_center: _Floats,
        seen: NDArray[np.uint8],
    ) -> None: ...

def adam(
    values: _Floats,
    gradient: _Floats,
    first: _Floats,
    second: _Floats,
    sizes: _Floats,
    beta1: float,
    beta2: float,
    second_scale: float,
    epsilon: float,
    threads: int,
) -> None: ...
def ssim(first: _Floats, second: _Floats, threads: int, by_first: _Floats) -> float: ...
def require_finite(values: _Floats, name: str, threads: int) -> None: ...
def decode(
    id: NDArray[np.int32],
    camera: Camera,
    sh: _Floats,
    means: _Floats,
    background: _Floats,
    threads: int,
    color: _Floats,
) -> None: ...
def decode_view(
    id: NDArray[np.int32],
    depth: _Floats,
    payload: _Floats,
    axes: _Floats,
    threads: int,
    view: _Floats,
) -> None: ...

# generated: spec
class DenoiserSettings:
    accumulated_cap_frames: float
    denoised_cap_frames: float
    tau_frames: float
    motion_scale_px: float
    far_depth: float
    static_tolerance: float
    trust: int
    sigma: float
    constant_trust: float
    history: int
    history_px: float
    resample_sharpness: float
    resample_clamp: bool
    filter_lean: float
    spatial_filter: bool
    smooth: bool
    smooth_errors: float
    error_floor: float
    pooled_frames: float
    gate: int
    zero_shot: bool
    stabilise: bool
    stabilise_weight: float
    stabilise_motion_px: float
    stabilise_slack: float
    stabilise_depth: float
    stabilise_rescue: float
    def __init__(self) -> None: ...

class MeanSettings:
    static_tolerance: float
    def __init__(self) -> None: ...

class TaaSettings:
    cap_frames: float
    gamma: float
    far_depth: float
    static_tolerance: float
    def __init__(self) -> None: ...

class StTaaSettings:
    cap_frames: float
    reach: float
    far_depth: float
    static_tolerance: float
    def __init__(self) -> None: ...

class SvgfSettings:
    alpha: float
    moments_alpha: float
    running_mean: bool
    depth_threshold: float
    sigma_depth: float
    sigma_luma: float
    passes: int
    kernel: int
    feedback: bool
    far_depth: float
    static_tolerance: float
    def __init__(self) -> None: ...

class ActiveSetSettings:
    prune: float
    stop: float
    reach_px: float
    ellipse_error: float
    discovery: int
    period: int
    parallax_px: float
    color_deg: float
    first_samples: int
    def __init__(self) -> None: ...

VIEW_FLOATS: int
DENOISER_FLOATS: int
# end of spec

def denoise(
    color: _Floats,
    depth: _Floats,
    neural_view: _Floats | None,
    previous: _Floats | None,
    is_static: bool,
    intrinsics: _Floats,
    previous_intrinsics: _Floats,
    motion: _Floats,
    weights: _Floats,
    settings: DenoiserSettings,
    threads: int,
    state: _Floats,
    shown: _Floats,
    views: _Floats | None,
) -> None: ...

class CameraMotion:
    def __init__(self, is_static: bool, lens: _Floats, other_lens: _Floats, change: _Floats) -> None: ...

def baseline_mean(
    color: _Floats,
    depth: _Floats,
    previous: _Floats | None,
    frames: int,
    threads: int,
    history: _Floats,
    shown: _Floats,
) -> None: ...
def baseline_st_taa(
    color: _Floats,
    depth: _Floats,
    previous: _Floats | None,
    motion: CameraMotion,
    settings: StTaaSettings,
    threads: int,
    history: _Floats,
    shown: _Floats,
) -> None: ...
def baseline_taa(
    color: _Floats,
    depth: _Floats,
    previous: _Floats | None,
    motion: CameraMotion,
    settings: TaaSettings,
    threads: int,
    history: _Floats,
    shown: _Floats,
) -> None: ...
def baseline_svgf(
    color: _Floats,
    depth: _Floats,
    previous: _Floats | None,
    motion: CameraMotion,
    settings: SvgfSettings,
    threads: int,
    history: _Floats,
    shown: _Floats,
) -> None: ...
def empty_float32(shape: Sequence[int]) -> _Floats: ...
def empty_int32(shape: Sequence[int]) -> NDArray[np.int32]: ...
def peak_flops(threads: int) -> float: ...
def peak_bytes(threads: int) -> float: ...
def release_memory() -> None: ...
def default_threads() -> int: ...
def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def choose_instruction_set(name: str) -> None: ...
