"""The command as a user runs it, and a few small files to run it on."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command import COMMAND, ENVIRONMENT, Run

from hushsplat.io.scenes.scene import save
from hushsplat.io.tracks import write_track
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.paths import orbit


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `hushsplat` with the given words in a process of its own, in an empty folder."""

    def run_command(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, words)],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return run_command


@pytest.fixture(scope="session")
def ply(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cloud of 300 ellipsoids about the origin, as a 3DGS PLY."""
    rng = np.random.default_rng(0)
    rotations = rng.normal(size=(300, 4))
    cloud = Gaussians(
        means=rng.normal(0, 0.5, (300, 3)).astype(np.float32),
        scales=rng.uniform(0.02, 0.1, (300, 3)).astype(np.float32),
        rotations=(rotations / np.linalg.norm(rotations, axis=1, keepdims=True)).astype(np.float32),
        opacities=np.linspace(0.01, 0.99, 300, dtype=np.float32),
        sh=rng.normal(0, 0.3, (300, 9, 3)).astype(np.float32),
    )
    path = tmp_path_factory.mktemp("scene") / "cloud.ply"
    save(cloud, path)
    return path


@pytest.fixture(scope="session")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four frames around the origin, 24×16 px, as our JSON."""
    path = tmp_path_factory.mktemp("track") / "ring.json"
    write_track(orbit(np.zeros(3), 3.0, seconds=0.4, fps=10.0, width=24, height=16), path)
    return path


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cameras around the origin, 40×30 px, as transforms.json without photographs."""
    path = tmp_path_factory.mktemp("capture") / "transforms.json"
    turn = np.diag([1.0, -1.0, -1.0, 1.0])  # NeRF looks along -z with y up
    frames = [
        {"file_path": f"images/{name}.png", "transform_matrix": (pose @ turn).tolist()}
        for name, pose in zip("abc", orbit(np.zeros(3), 3.0, seconds=3.0, fps=1.0).world_from_camera, strict=True)
    ]
    lens = {"w": 40, "h": 30, "fl_x": 30.0, "fl_y": 30.0, "cx": 20.0, "cy": 15.0}
    path.write_text(json.dumps({**lens, "frames": frames}))
    return path
