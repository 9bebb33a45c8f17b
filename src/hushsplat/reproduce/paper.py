"""The paper's own numbers, by method and by scene; ours are printed beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Numbers = Mapping[str, float]  # metric: value

MIPNERF360 = ("bicycle", "bonsai", "counter", "garden", "kitchen", "room", "stump")
TANKS = ("Barn", "Caterpillar", "Church", "Courthouse", "Ignatius", "Meetingroom", "Truck")


def _by_metric(metrics: str, rows: Mapping[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    return {method: dict(zip(metrics.split(), values, strict=True)) for method, values in rows.items()}


# Tables "Static quality", the means of each dataset.
STATIC = {
    MIPNERF360: _by_metric(
        "psnr ssim lpips",
        {
            "2dgs": (29.45, 0.875, 0.199),
            "mean": (28.25, 0.851, 0.202),
            "st-taa (128)": (27.92, 0.822, 0.219),
            "paper (16)": (26.89, 0.741, 0.330),
            "paper (equal time)": (27.94, 0.822, 0.226),
            "paper (128)": (28.02, 0.829, 0.217),
            "paper-zero-shot (16)": (27.00, 0.746, 0.332),
            "paper-zero-shot (128)": (28.03, 0.829, 0.217),
        },
    ),
    TANKS: _by_metric(
        "psnr ssim lpips",
        {
            "2dgs": (21.50, 0.700, 0.379),
            "mean": (20.69, 0.675, 0.388),
            "st-taa (128)": (20.61, 0.635, 0.431),
            "paper (16)": (20.33, 0.548, 0.496),
            "paper (equal time)": (20.60, 0.631, 0.436),
            "paper (128)": (20.63, 0.640, 0.428),
            "paper-zero-shot (16)": (20.29, 0.539, 0.501),
            "paper-zero-shot (128)": (20.62, 0.639, 0.428),
        },
    ),
}
# The same by scene: PSNR, in the order of the scenes.
STATIC_PSNR = {
    MIPNERF360: {
        "2dgs": (24.71, 32.12, 28.82, 26.73, 32.49, 31.53, 29.74),
        "mean": (24.20, 30.65, 28.14, 26.15, 30.24, 30.51, 27.88),
        "st-taa (128)": (24.08, 30.10, 27.83, 25.86, 29.76, 30.14, 27.63),
        "paper (16)": (23.58, 28.80, 26.90, 24.69, 28.40, 29.34, 26.54),
        "paper (equal time)": (24.09, 30.20, 27.84, 25.82, 29.80, 30.22, 27.58),
        "paper (128)": (24.13, 30.32, 27.91, 25.90, 29.91, 30.30, 27.65),
        "paper-zero-shot (16)": (23.66, 28.96, 26.99, 24.83, 28.56, 29.33, 26.67),
        "paper-zero-shot (128)": (24.14, 30.33, 27.92, 25.92, 29.93, 30.29, 27.66),
    },
    TANKS: {
        "2dgs": (22.82, 20.33, 21.52, 21.73, 19.78, 22.68, 21.65),
        "mean": (22.39, 19.84, 19.87, 21.17, 19.11, 21.42, 21.04),
        "st-taa (128)": (22.35, 19.75, 19.75, 21.11, 19.05, 21.30, 20.96),
        "paper (16)": (22.07, 19.46, 19.42, 20.83, 18.79, 21.01, 20.72),
        "paper (equal time)": (22.32, 19.74, 19.75, 21.09, 19.03, 21.32, 20.98),
        "paper (128)": (22.34, 19.77, 19.78, 21.11, 19.05, 21.34, 21.00),
        "paper-zero-shot (16)": (22.04, 19.40, 19.37, 20.80, 18.74, 20.97, 20.71),
        "paper-zero-shot (128)": (22.34, 19.76, 19.77, 21.10, 19.05, 21.34, 20.99),
    },
}
# Tables "Quality under free camera navigation" and "zero-shot transfer", by scene of MIPNERF360.
NAVIGATION = {
    "psnr": {
        "raw": (16.81, 19.28, 18.05, 16.08, 19.24, 20.79, 17.54),
        "ss-1": (15.70, 18.84, 18.13, 15.90, 18.83, 21.05, 16.59),
        "ss-4": (20.08, 23.68, 22.60, 20.78, 24.48, 25.50, 20.64),
        "st-taa": (19.82, 23.00, 20.97, 19.61, 22.33, 24.00, 20.61),
        "svgf": (22.05, 28.17, 23.98, 23.37, 27.98, 28.82, 24.59),
        "mean": (29.87, 34.54, 33.76, 31.34, 33.67, 34.70, 32.89),
        "paper": (26.39, 31.98, 30.35, 26.63, 30.95, 33.64, 28.66),
        "paper-zero-shot": (25.86, 30.91, 29.68, 26.82, 30.61, 33.59, 27.91),
    },
    "ssim": {
        "raw": (0.289, 0.313, 0.257, 0.244, 0.306, 0.334, 0.229),
        "ss-1": (0.275, 0.314, 0.273, 0.273, 0.313, 0.365, 0.229),
        "ss-4": (0.483, 0.557, 0.475, 0.528, 0.594, 0.605, 0.441),
        "st-taa": (0.407, 0.486, 0.367, 0.394, 0.450, 0.476, 0.347),
        "svgf": (0.709, 0.868, 0.766, 0.720, 0.854, 0.884, 0.692),
        "mean": (0.925, 0.967, 0.956, 0.944, 0.955, 0.968, 0.936),
        "paper": (0.807, 0.914, 0.880, 0.794, 0.906, 0.950, 0.815),
        "paper-zero-shot": (0.817, 0.914, 0.891, 0.808, 0.914, 0.948, 0.817),
    },
    "lpips": {
        "raw": (0.639, 0.690, 0.717, 0.606, 0.643, 0.697, 0.705),
        "ss-1": (0.634, 0.689, 0.702, 0.590, 0.641, 0.668, 0.690),
        "ss-4": (0.523, 0.580, 0.597, 0.449, 0.488, 0.560, 0.581),
        "st-taa": (0.588, 0.629, 0.677, 0.531, 0.579, 0.647, 0.656),
        "svgf": (0.346, 0.241, 0.339, 0.308, 0.240, 0.232, 0.376),
        "mean": (0.088, 0.060, 0.099, 0.067, 0.066, 0.089, 0.093),
        "paper": (0.284, 0.253, 0.271, 0.238, 0.192, 0.171, 0.300),
        "paper-zero-shot": (0.255, 0.205, 0.248, 0.235, 0.162, 0.179, 0.275),
    },
    "cvvdp": {
        "raw": (4.28, 5.57, 4.52, 4.60, 5.69, 5.46, 4.48),
        "ss-1": (3.65, 5.21, 4.31, 4.54, 5.62, 5.35, 3.98),
        "ss-4": (6.18, 7.36, 6.47, 6.84, 7.71, 7.21, 6.30),
        "st-taa": (5.29, 6.66, 5.42, 5.81, 6.58, 6.52, 5.37),
        "svgf": (5.23, 7.23, 5.71, 6.11, 7.40, 7.24, 5.11),
        "mean": (8.34, 8.96, 8.82, 8.80, 8.93, 8.80, 8.46),
        "paper": (6.84, 8.25, 7.50, 7.15, 8.07, 8.29, 6.89),
        "paper-zero-shot": (6.56, 7.83, 7.32, 7.12, 8.07, 8.25, 6.51),
    },
}
# Tables "Ablations" and "Variance-gate ablation", on the track of garden.
ABLATION = _by_metric(
    "psnr ssim lpips",
    {
        "full": (26.63, 0.794, 0.238),
        "trust 1": (22.51, 0.695, 0.323),
        "trust heuristic": (25.82, 0.755, 0.268),
        "no spatial filter": (23.52, 0.676, 0.359),
        "no stabilisation": (25.94, 0.736, 0.311),
        "gate 0": (25.14, 0.751, 0.298),
        "gate 1": (25.95, 0.752, 0.247),
    },
)
# Table "Per-scene rendering time", milliseconds on an RTX 3090; `reference` is its hardware-rasterized 2DGS.
TIME_MS = {
    "reference": (13.73, 8.14, 6.33, 6.57, 4.49, 6.18, 10.47),
    "raw": (2.86, 2.49, 2.74, 2.79, 2.84, 2.89, 2.38),
    "st-taa": (3.03, 2.66, 2.89, 2.97, 3.01, 3.04, 2.53),
    "svgf": (2.94, 2.63, 2.91, 2.97, 3.00, 3.04, 2.56),
    "paper": (3.95, 3.52, 3.75, 3.85, 3.86, 3.88, 3.44),
    "paper-zero-shot": (3.76, 3.44, 3.66, 3.75, 3.76, 3.79, 3.35),
}


def static_numbers(scenes: Sequence[str]) -> tuple[str, dict[str, Numbers]]:
    """Of these scenes, where all are the paper's (then PSNR only), else of all Mip-NeRF 360; and which in words."""
    for dataset, by_method in STATIC_PSNR.items():
        if set(scenes) == set(dataset):
            return "all of the dataset", dict(STATIC[dataset])
        if scenes and set(scenes) <= set(dataset):
            return "the same scenes", {name: {"psnr": _of(dataset, v, scenes)} for name, v in by_method.items()}
    return "Mip-NeRF 360", dict(STATIC[MIPNERF360])


def navigation_numbers(scenes: Sequence[str]) -> tuple[str, dict[str, Numbers]]:
    """Of these scenes, where all are the paper's, else of all."""
    which, chosen = _chosen(scenes)
    methods = NAVIGATION["psnr"]
    return which, {
        name: {metric: _of(MIPNERF360, values[name], chosen) for metric, values in NAVIGATION.items()}
        for name in methods
    }


def time_numbers(scenes: Sequence[str]) -> tuple[str, dict[str, Numbers]]:
    """Of these scenes, where all are the paper's, else of all."""
    which, chosen = _chosen(scenes)
    return which, {name: {"time_ms": _of(MIPNERF360, values, chosen)} for name, values in TIME_MS.items()}


def _chosen(scenes: Sequence[str]) -> tuple[str, Sequence[str]]:
    same = bool(scenes) and set(scenes) <= set(MIPNERF360)
    return ("the same scenes", scenes) if same else ("Mip-NeRF 360", MIPNERF360)


def _of(dataset: Sequence[str], values: Sequence[float], scenes: Sequence[str]) -> float:
    return float(np.mean([values[dataset.index(scene)] for scene in scenes]))
