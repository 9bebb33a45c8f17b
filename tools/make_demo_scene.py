"""Make the demo scene that comes with the package: photograph the scene made by code, train on it, compress.

    python tools/make_demo_scene.py WORK [--photographs-only]

WORK gets `capture` (a COLMAP model with exact poses, photographs, and points like those a reconstruction finds), which
`hushsplat train` takes like any other, and `run`, which is resumed if it is there. The result goes into the package.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

import hushsplat
from hushsplat.io.scenes.scene import load, save
from hushsplat.scenes import DEMO_FILE
from hushsplat.synth.cameras import home_camera, view_cameras, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import sh_colors
from hushsplat.types.image import to_bytes
from hushsplat.types.rotations import quaternion_from_matrix

SURFELS = 1_000_000  # of the scene that is photographed
WIDTH, HEIGHT = 800, 532
OVERSAMPLING = 2  # per axis: photographs have no jagged edges
STANDING, WALKING = 66, 33  # views: around the place, and along the walk that the demo takes
POINTS, POINT_NOISE_M = 20_000, 0.01
TRAINING = (
    *("--width", "480", "--stage1.steps", "4000", "--stage1.densification.last-step", "2800"),
    *("--stage2.steps", "200", "--stage3.steps", "500"),
)
MOST_BYTES = 10_000_000


def cameras() -> list[Camera]:
    """Where the photographs are taken from; the home view is the second, so that it is not held out."""
    walk = walk_track()
    along = [walk.camera(int(index)).resized(WIDTH, HEIGHT) for index in np.linspace(0, len(walk) - 1, WALKING)]
    return [*view_cameras(STANDING, WIDTH, HEIGHT), home_camera(WIDTH, HEIGHT), *along]


def photograph(scene: Gaussians, camera: Camera) -> Pillow.Image:
    """Drawn larger and averaged."""
    drawn = hushsplat.render(scene, camera.resized(OVERSAMPLING * WIDTH, OVERSAMPLING * HEIGHT), "reference").color
    mean = drawn.reshape(HEIGHT, OVERSAMPLING, WIDTH, OVERSAMPLING, 3).mean(axis=(1, 3))
    return Pillow.fromarray(to_bytes(mean.astype(np.float32)))


def write_capture(folder: Path) -> None:
    """Photographs and a COLMAP model in text form."""
    scene = hushsplat.room_and_garden(SURFELS)
    model = folder / "sparse" / "0"
    model.mkdir(parents=True, exist_ok=True)
    (folder / "images").mkdir(exist_ok=True)
    lenses, images = [], []
    for index, camera in enumerate(cameras(), start=1):
        name = f"view-{index:03d}.png"
        if not (folder / "images" / name).exists():
            photograph(scene, camera).save(folder / "images" / name)
            print(f"photographed {name}", flush=True)
        lenses.append(f"{index} PINHOLE {WIDTH} {HEIGHT} {camera.fx} {camera.fy} {camera.cx} {camera.cy}\n")
        pose = camera.camera_from_world
        numbers = [*quaternion_from_matrix(pose[:3, :3]), *pose[:3, 3]]
        images.append(f"{index} {' '.join(map(repr, map(float, numbers)))} {index} {name}\n\n")
    (model / "cameras.txt").write_text("".join(lenses))
    (model / "images.txt").write_text("".join(images))
    (model / "points3D.txt").write_text("".join(points(scene)))


def points(scene: Gaussians) -> list[str]:
    """Places on surfaces, a centimetre off, as a reconstruction would find them."""
    rng = np.random.default_rng(0)
    solid = np.flatnonzero(scene.opacities > 0.5)
    some = scene.take(np.sort(rng.choice(solid, POINTS, replace=False)))
    places = some.means + rng.normal(0, POINT_NOISE_M, some.means.shape)
    colors = to_bytes(sh_colors(some.sh, some.means, home_camera().position.astype(np.float32))[None])[0]
    return [
        f"{index} {x:.5f} {y:.5f} {z:.5f} {red} {green} {blue} 0\n"
        for index, ((x, y, z), (red, green, blue)) in enumerate(zip(places, colors, strict=True), start=1)
    ]


def main() -> None:
    """Photograph, train, compress."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--photographs-only", action="store_true")
    arguments = parser.parse_args()
    capture, run = arguments.work / "capture", arguments.work / "run"
    write_capture(capture)
    if arguments.photographs_only:
        return
    words = ["--resume"] if (run / "config.json").exists() else TRAINING
    train = [sys.executable, "-m", "hushsplat", "train", str(capture), "-o", str(run), *words]
    subprocess.run(train, check=True)
    DEMO_FILE.parent.mkdir(exist_ok=True)
    save(load(run / "stage3.ply"), DEMO_FILE)
    size = DEMO_FILE.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{DEMO_FILE} has {size} bytes, more than {MOST_BYTES}; train fewer surfels.")
    print(f"{DEMO_FILE}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
