"""Smooth curves through given points: non-uniform Catmull-Rom with limited tangents."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

# ours: a tangent is at most this many times the slower of its two neighbouring slopes. An even motion is untouched;
# a fast step beside a slow one cannot overshoot, and a quaternion curve keeps a length > 0.07 (see `tangents`).
TANGENT_LIMIT = 1.5
SAMPLES_PER_SEGMENT = 128  # ours: the pace is then even to a percent, with 32 it is to six


def curve(
    knots: Float64[Array, " n"],  # strictly increasing
    values: Float64[Array, "n k"],
    at: Float64[Array, " m"],  # within the knots
) -> Float64[Array, "m k"]:
    """A once continuously differentiable curve, exactly `values` at `knots`; a straight even motion stays one."""
    if len(knots) == 1:
        return np.repeat(values, len(at), axis=0)
    slopes = tangents(knots, values)
    segment = segment_of(knots, at)
    length = (knots[segment + 1] - knots[segment])[:, None]
    u = (at - knots[segment])[:, None] / length
    start, end = values[segment], values[segment + 1]
    # Hermite basis, written so that u = 0 and u = 1 give the values themselves without rounding.
    blend = u * u * (3 - 2 * u)
    tangent_part = length * u * (1 - u) * ((1 - u) * slopes[segment] - u * slopes[segment + 1])
    return (1 - blend) * start + blend * end + tangent_part


def segment_of(knots: Float64[Array, " n"], at: Float64[Array, " m"]) -> Array:
    """For each place the index of the knot before it, at most n - 2."""
    return np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)


def tangents(knots: Float64[Array, " n"], values: Float64[Array, "n k"]) -> Float64[Array, "n k"]:
    """The derivative at each knot: of the parabola through it and its neighbours, limited in length.

    With the limit, the curve leaves its chord by at most 2 · 4/27 · 1.5 = 0.44 chords. The chord between unit
    quaternions on one side is at most sqrt(2) long and stays at least 0.7 from zero, so the curve stays 0.07 away.
    """
    steps = np.diff(knots)[:, None]
    slopes = np.diff(values, axis=0) / steps
    if len(slopes) == 1:
        return np.repeat(slopes, 2, axis=0)
    before, after = steps[:-1], steps[1:]
    inner = (slopes[:-1] * after + slopes[1:] * before) / (before + after)
    first = slopes[:1] + (slopes[:1] - slopes[1:2]) * steps[0] / (steps[0] + steps[1])
    last = slopes[-1:] + (slopes[-1:] - slopes[-2:-1]) * steps[-1] / (steps[-1] + steps[-2])
    result = np.concatenate([first, inner, last])
    speeds = np.linalg.norm(slopes, axis=1)
    slower = np.minimum(np.concatenate([speeds[:1], speeds]), np.concatenate([speeds, speeds[-1:]]))
    allowed = TANGENT_LIMIT * slower
    wanted = np.linalg.norm(result, axis=1)
    return result * np.where(wanted > allowed, allowed / np.maximum(wanted, 1e-300), 1.0)[:, None]


class EvenPace:
    """A centripetal curve through points, followed at constant weighted speed; `at(0)` is the first, `at(1)` the last.

    Centripetal: knots apart by the square root of the distance, which makes no loops at sharp corners.
    """

    def __init__(self, points: Float64[Array, "n k"], weights: Float64[Array, " k"] | None = None) -> None:
        weights = np.ones(points.shape[1]) if weights is None else weights
        distances = np.linalg.norm(np.diff(points, axis=0) * weights, axis=1)
        moved = distances > 1e-9 * distances.max(initial=0.0)  # a point twice is a point once
        self._points = points[np.concatenate([[True], moved])]
        self._knots = np.concatenate([[0.0], np.cumsum(np.sqrt(distances[moved]))])
        segments = len(self._knots) - 1
        fine = np.arange(segments * SAMPLES_PER_SEGMENT + 1) / SAMPLES_PER_SEGMENT
        self._fine = np.interp(fine, np.arange(segments + 1), self._knots)
        steps = np.diff(curve(self._knots, self._points, self._fine), axis=0)
        self._travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(steps * weights, axis=1))])

    @property
    def length(self) -> float:
        """Weighted length of the whole curve; 0 if all points are the same."""
        return float(self._travelled[-1])

    def at(self, progress: Float64[Array, " m"]) -> Float64[Array, "m k"]:
        """The places after these shares (0..1) of the length."""
        knots = np.interp(progress * self.length, self._travelled, self._fine)
        return curve(self._knots, self._points, knots)
