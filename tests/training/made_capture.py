"""A capture small enough to train on in a second: colourful surfels photographed from a ring of cameras."""

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np

from hushsplat.api import render
from hushsplat.io.images import save_image
from hushsplat.training.settings import PRESETS, Densification, Stage1, Stage2, Stage3, Stage4, TrainSettings
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.paths import orbit

WIDTH, HEIGHT = 32, 24
STEPS = (60, 10, 10, 8)


def made_scene(count: int = 60, seed: int = 0) -> Gaussians:
    rng = np.random.default_rng(seed)
    rotations = rng.normal(size=(count, 4))
    return Gaussians(
        means=rng.uniform(-0.6, 0.6, (count, 3)).astype(np.float32),
        scales=rng.uniform(0.1, 0.25, (count, 2)).astype(np.float32),
        rotations=(rotations / np.linalg.norm(rotations, axis=1, keepdims=True)).astype(np.float32),
        opacities=np.full(count, 0.9, np.float32),
        sh=rng.uniform(-1.7, 1.7, (count, 1, 3)).astype(np.float32),
    )


def made_model(count: int = 12, degree: int = 1) -> "SurfelModel":
    """Surfels of the scene as they are trained."""
    from hushsplat.training.surfel_model import SurfelModel

    scene = made_scene(count)
    sh = np.zeros((count, (degree + 1) ** 2, 3), np.float32)
    sh[:, :1] = scene.sh
    return SurfelModel.from_gaussians(replace(scene, sh=sh))


def write_capture(folder: Path, views: int = 12) -> Path:
    """transforms.json, photographs and a few points."""
    scene = made_scene()
    (folder / "images").mkdir(parents=True)
    turn = np.diag([1.0, -1.0, -1.0, 1.0])  # NeRF looks along -z with y up
    frames = []
    track = orbit(np.zeros(3), 2.2, elevation=0.4, seconds=float(views), fps=1.0, width=WIDTH, height=HEIGHT)
    for index in range(views):
        camera = track.camera(index)
        save_image(render(scene, camera), folder / "images" / f"{index:02d}.png")
        pose = (camera.world_from_camera @ turn).tolist()
        frames.append({"file_path": f"images/{index:02d}.png", "transform_matrix": pose})
    lens = {"w": WIDTH, "h": HEIGHT, "fl_x": camera.fx, "fl_y": camera.fy, "cx": camera.cx, "cy": camera.cy}
    (folder / "transforms.json").write_text(json.dumps({**lens, "frames": frames}))
    return folder


def tiny_settings(**changes: object) -> TrainSettings:
    """Settings for a run of a second."""
    densification = Densification(
        first_step=10, last_step=50, every=10, gradient=1e-5, prune_opacity=0.005, most_surfels=220
    )
    values = {
        "stage1": Stage1(steps=STEPS[0], densification=densification, sh_degree=1, sh_every=20, random_points=150),
        "stage2": Stage2(steps=STEPS[1]),
        "stage3": Stage3(steps=STEPS[2], made_up_views=10),
        "stage4": Stage4(steps=STEPS[3], longest_chain=6, suffix_frames=3, gate_warmup=2, trust_loss=1.0),
        "width": WIDTH,
        "checkpoint_every": 7,
        "measure_every": 40,
        "preview_every": 40,
        "log_every": 5,
        "threads": 2,
    }
    return TrainSettings(**{**values, **changes})  # type: ignore[arg-type]


def flags_of(settings: TrainSettings) -> list[str]:
    """The words that make the command use these settings, whatever the preset."""

    def words(part: object, default: object, place: str) -> list[str]:
        found = []
        for each in fields(part):  # type: ignore[arg-type]
            value, usual = getattr(part, each.name), getattr(default, each.name)
            if is_dataclass(value):
                found += words(value, usual, f"{place}{each.name}.")
            elif isinstance(value, bool):
                found += [] if value == usual else [f"--{place}{'' if value else 'no-'}{each.name}".replace("_", "-")]
            elif isinstance(value, tuple):
                found += [] if value == usual else [f"--{place}{each.name}".replace("_", "-"), *map(str, value)]
            elif value != usual:
                found += [f"--{place}{each.name}".replace("_", "-"), str(value)]
        return found

    return words(settings, PRESETS["small"], "")
