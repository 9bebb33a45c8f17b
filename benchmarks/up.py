"""The up direction of objects: how often it is found when they are turned to each axis or tilted; the fit of its cues.

python benchmarks/up.py                              parts of the procedural scene: a table, a tree, ...
python benchmarks/up.py --scenes biker.spz bonsai.splat --up=-y
python benchmarks/up.py --fit                        weights of the cues, and how often each object left out is right
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from hushsplat.scenes import scene_argument
from hushsplat.synth import room_and_garden
from hushsplat.synth.scene import all_parts
from hushsplat.synth.surfels import share_out
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix
from hushsplat.types.standing import WEIGHTS, StandingObject
from hushsplat.types.surfaces import thinned
from hushsplat.types.up import AXIS_SHARES, UP_AXES, find_up, up_direction

COUNT = 2_000_000  # surfels of the procedural scene
OBJECTS = {
    "table": "table top,table apron,table legs",
    "table and chairs": "table top,table apron,table legs,chair boards,chair rods,chair pads",
    "coffee table": "coffee table,hairpin legs",
    "sideboard": "sideboard,sideboard doors,sideboard knobs,sideboard legs",
    "sofa": "sofa body,sofa seats,sofa backs,sofa throws,sofa legs",
    "shelf": "shelf,shelf back,books",
    "lamp": "lamp foot,lamp stem,lamp shade,lamp ring",
    "bouquet": "vase,bouquet stems,bouquet petals,bouquet leaves",
    "vase": "vase",
    "bowl": "bowl,fruit",
    "teapot": "teapot",
    "bistro": "bistro table,bistro legs,bistro chairs",
    "tree": "trunk,twigs,tree leaves",
    "plant": "plant basket,plant soil,plant stems,plant leaves",
    "pots": "terracotta pots,pot leaves,geraniums",
    "bushes": "bush cores,bushes",
    "house": "house front,window frames,window panes,shutters,eaves,roof,door frame",
    "fence": "picket fence",
}
AZIMUTHS = (0.0, 20.0, 45.0)
TILTS_DEG = (20.0, 30.0, 40.0, 50.0)  # of files whose axes are those of a photograph that looks down
TILT_AXES = ((1, 0, 0.3), (0.3, 0, 1), (-1, 0, 0.3), (0.3, 0, -1))
AXES = np.array([UP_AXES[name] for name in AXIS_SHARES])
PENALTY, STEPS, RATE = 1.5, 4000, 0.05  # of the fit: weight of the squares, steps of gradient descent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="*", default=[], help="more objects: files that have --up up")
    parser.add_argument("--up", default="-y", help="of those files: an axis")
    parser.add_argument("--fit", action="store_true", help="fit the weights instead of measuring")
    arguments = parser.parse_args()
    objects = {name: (scene, np.array(UP_AXES["-y"])) for name, scene in procedural().items()}
    for name in arguments.scenes:
        scene = thinned(scene_argument(name).gaussians)
        objects[name] = (scene, up_direction(scene, arguments.up))
    fit(objects) if arguments.fit else measure(objects)


def procedural() -> dict[str, Gaussians]:
    """Objects cut out of the procedural scene."""
    scene, parts = room_and_garden(COUNT), all_parts(0)
    ends = np.cumsum(share_out([part.demand for part in parts], COUNT))
    owner = np.searchsorted(ends, np.arange(COUNT), side="right")
    names = np.array([part.name for part in parts])
    return {
        title: thinned(scene.take(np.flatnonzero(np.isin(names, wanted.split(","))[owner])))
        for title, wanted in OBJECTS.items()
    }


def measure(objects: dict[str, tuple[Gaussians, np.ndarray]]) -> None:
    """Print a row per object: by which axes up is found within 12 degrees, and how often of four tilts of -y."""
    columns = (*AXIS_SHARES, *(f"{tilt:g}°" for tilt in TILTS_DEG))
    print(f"| object | {' | '.join(columns)} |")
    print("| --- |" + " --- |" * len(columns))
    total = np.zeros(len(columns), dtype=np.int64)
    for name, (scene, up) in objects.items():
        right = [int(found(scene, turning_to(up, axis) @ about(up, 17.0), up)) for axis in AXES]
        upright = turning_to(up, AXES[0])
        for degrees in TILTS_DEG:
            tilts = [about(axis, degrees) @ upright for axis in TILT_AXES]
            right.append(sum(found(scene, tilt @ about(up, 50.0), up) for tilt in tilts))
        total += np.array(right, dtype=np.int64)
        print(f"| {name} | {' | '.join(map(str, right))} |", flush=True)
    print(f"| all {len(objects)} | {' | '.join(map(str, total))} |")


def found(scene: Gaussians, turning: np.ndarray, up: np.ndarray) -> bool:
    return bool(find_up(turned(scene, turning)) @ (turning @ up) > np.cos(np.radians(12.0)))


def fit(objects: dict[str, tuple[Gaussians, np.ndarray]]) -> None:
    """Multinomial regression of the axis on the cues, with the shares of the axes as offsets."""
    cues, truth, owner = [], [], []
    for index, (scene, up) in enumerate(objects.values()):
        for azimuth in AZIMUTHS:
            seen = StandingObject(turned(scene, about(up, azimuth))).cues(AXES)
            table = np.stack([getattr(seen, name) for name in WEIGHTS], axis=1)
            for target, axis in enumerate(AXES):  # the axes of the turned object are those of the object, turned
                order = np.argmax(AXES @ turning_to(up, axis) @ AXES.T, axis=0)
                turned_table = np.empty_like(table)
                turned_table[order] = table
                cues.append(turned_table)
                truth.append(target)
                owner.append(index)
    features, labels, owners = np.array(cues), np.array(truth), np.array(owner)
    features -= features.mean(axis=1, keepdims=True)
    scale = np.sqrt((features**2).mean(axis=(0, 1)))
    features /= scale
    right = np.zeros(len(labels), bool)
    for index in range(len(objects)):
        out = owners == index
        right[out] = scores(features[out], regression(features[~out], labels[~out])).argmax(axis=1) == labels[out]
    for target, name in enumerate(AXIS_SHARES):
        print(f"left out, {name} up: {100 * right[labels == target].mean():.0f} % right")
    weights = regression(features, labels) / scale
    print({name: round(float(weight), 2) for name, weight in zip(WEIGHTS, weights, strict=True)})


def scores(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return features @ weights + np.log(list(AXIS_SHARES.values()))


def regression(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    weights = np.zeros(features.shape[2])
    chosen = features[np.arange(len(labels)), labels].sum(axis=0)
    for _ in range(STEPS):
        exponents = np.exp(scores(features, weights) - scores(features, weights).max(axis=1, keepdims=True))
        shares = exponents / exponents.sum(axis=1, keepdims=True)
        slope = np.einsum("na,naf->f", shares, features) - chosen + 2 * PENALTY * weights
        weights -= RATE / len(labels) * 10 * slope
    return weights


def turned(scene: Gaussians, turning: np.ndarray) -> Gaussians:
    frames = turning @ matrix_from_quaternion(scene.rotations.astype(np.float64))
    return replace(
        scene,
        means=(scene.means @ turning.T).astype(np.float32),
        rotations=quaternion_from_matrix(frames).astype(np.float32),
    )


def about(axis: np.ndarray | tuple[float, ...], degrees: float) -> np.ndarray:
    """The rotation about an axis."""
    unit = np.array(axis, dtype=np.float64) / np.linalg.norm(axis)
    half = np.radians(degrees) / 2
    return matrix_from_quaternion(np.array([np.cos(half), *(np.sin(half) * unit)]))


def turning_to(up: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """A rotation by a quarter or half turn that takes one axis to another."""
    if np.linalg.norm(np.cross(up, axis)) > 1e-9:
        return about(np.cross(up, axis), 90.0)
    return np.eye(3) if up @ axis > 0 else about(np.eye(3)[np.argmin(np.abs(up))], 180.0)


if __name__ == "__main__":
    main()
