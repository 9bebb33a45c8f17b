"""The roofline of a step of the denoiser: its arithmetic and its bytes beside the measured peaks of the machine.

Counted per pixel, on a moving camera with history, as native/ computes it. An addition, multiplication, division, root,
minimum, maximum or absolute value is one operation, a multiply-add two; comparisons, choices, conversions and moves are
none, nor is what the halos of blocks compute twice. Bytes are those that must come from memory or go there: rows that
stay in cache count once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hushsplat.engines.cpu.machine import peak_bytes_per_second, peak_flops_per_second
from hushsplat.evaluation.bench import Row
from hushsplat.methods import LEARNED
from hushsplat.spec.state import TEMPORAL
from hushsplat.spec.weights import SHAPES

CHANNELS = TEMPORAL.floats
FLOAT = 4  # bytes
EXP2 = 17  # operations: native/vec.h, exp2_negative
LOG2 = 13  # native/functions.h
SIGMOID = 19  # limits 2, 1 + exp(-x) 14, its reciprocal 3
SILU = 20  # the same times x
PYRAMID_TEXELS = 1 + 1 / 4 + 1 / 16 + 1 / 64  # a pixel
TEXEL = 4 * FLOAT  # Y, Co, Cg, depth


@dataclass(frozen=True)
class Pass:
    """The work of one pass per pixel."""

    name: str
    flops: float | int
    bytes: float | int  # from and to memory


@dataclass(frozen=True)
class Peak:
    """Measured peaks of the machine."""

    flops_per_second: float
    bytes_per_second: float


@dataclass(frozen=True)
class Roofline:
    """A timed step of a denoiser and the time of its work at the machine's peak."""

    scene: str
    width: int  # px
    height: int  # px
    method: str
    threads: int
    flops_per_pixel: float
    bytes_per_pixel: float
    compute_ms: float  # all arithmetic at the peak of multiply-adds
    memory_ms: float  # all bytes at the peak of a copy
    measured_ms: float
    peak_gflops: float
    peak_gbytes: float

    @property
    def bound_ms(self) -> float:
        """The roofline: arithmetic and memory side by side, the longer counts."""
        return max(self.compute_ms, self.memory_ms)

    @property
    def ratio(self) -> float:
        """How many times longer than the roofline the step took."""
        return self.measured_ms / self.bound_ms


def network_flops() -> float:
    """Both trust predictors: two operations per weight, biases are where sums begin; 32 + 8 SiLU, two sigmoids."""
    weights = sum(math.prod(shape) for name, shape in SHAPES.items() if name.endswith(".weight"))
    return 2.0 * weights + (32 + 8) * SILU + 2 * SIGMOID


def passes(zero_shot: bool) -> list[Pass]:
    """The passes of docs/denoiser.md and the pyramid before them."""
    halved = (PYRAMID_TEXELS - 1) * 3 * 4  # three sums and a factor for each of three colours
    place = 2 + 1 + 3 * 6 + 2 + 1 + 2 * 7  # ray, 1/z, e, z', its reciprocal, motion
    weights = 2 * (1 + 2 + 3 + 4 + 5 + 2)  # of Catmull-Rom in both directions
    taps = CHANNELS * (4 * (4 + 3) + 4 + 3)  # four rows of four, then four
    limits = CHANNELS * 8
    extras = 5 + 6  # depth difference, compressed motion
    features = 5 + 11
    if zero_shot:
        spatial, view = 0.5 * 3 * 3 + 5 * 3 * 2, 0  # a texel between two rows for two pixels; five of them weighed
    else:
        blur = 4 * (3 * 2 + 3 + 4)  # limits, three rows, three columns
        kernel = (EXP2 + LOG2 + 6) + (EXP2 + 5) + 2 * (EXP2 + 1) + LOG2 + 49  # softplus, tanh, weights, level; the rest
        probes = 8 * (6 + 1 + 3 + 4 + 3) + 32 * 3 * 2 + 9  # places and weights of eight bilinear samples; 32 texels
        spatial, view = blur + kernel + probes, 4 * FLOAT
    accumulate = 2 * 4 + 7 * 3 + 1
    smooth = 7 + 8 * (2 + 3 + 3 + 1 + 2 + 2 * 3) + 7  # error; eight neighbours; their mean
    gate = (EXP2 + 2) + 5 + 3 * 3 + 5  # exponential, gate; mixture, RGB
    stabilised = 3 * (16 + 3 + 2 + 2 + 3 + 3 + 1) + 6  # range of 3×3, tolerance, limits, largest change, blend; fading
    return [
        Pass("pyramid", 7 + halved, 4 * FLOAT + PYRAMID_TEXELS * TEXEL),  # reads colour and depth, writes texels
        Pass("reproject", place + weights + taps + limits + extras, CHANNELS * FLOAT + TEXEL),
        Pass("trust", features + network_flops(), view),
        Pass("filter", spatial, (PYRAMID_TEXELS - 1) * TEXEL),  # level 0 came with reprojection
        Pass("accumulate", accumulate, 0),
        Pass("smooth", smooth, 0),
        Pass("gate", gate, 0),
        Pass("stabilise", stabilised, CHANNELS * FLOAT + 3 * FLOAT),  # writes the state and the picture
    ]


def measure_peak(threads: int) -> Peak:
    """The peak of multiply-adds and of a copy with this many threads, measured now."""
    return Peak(peak_flops_per_second(threads), peak_bytes_per_second(threads))


def rooflines(rows: Sequence[Row], peaks: dict[int, Peak]) -> list[Roofline]:
    """The roofline of every row of a learned denoiser alone; peaks by number of threads."""
    found = []
    for row in rows:
        if row.method not in LEARNED:
            continue
        work, peak, pixels = passes(row.method == "temporal-zero-shot"), peaks[row.threads], row.width * row.height
        flops, moved = sum(part.flops for part in work), sum(part.bytes for part in work)
        found.append(
            Roofline(
                scene=row.scene,
                width=row.width,
                height=row.height,
                method=row.method,
                threads=row.threads,
                flops_per_pixel=flops,
                bytes_per_pixel=moved,
                compute_ms=1e3 * flops * pixels / peak.flops_per_second,
                memory_ms=1e3 * moved * pixels / peak.bytes_per_second,
                measured_ms=row.median_ms,
                peak_gflops=peak.flops_per_second / 1e9,
                peak_gbytes=peak.bytes_per_second / 1e9,
            )
        )
    return found
