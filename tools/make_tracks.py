"""Make the tracks that come with the package, in src/hushsplat/evaluation/tracks/.

    python tools/make_tracks.py

Ours go through `synth:` scenes, whose unit is the metre. Those of bonsai go through the 3DGS reconstruction of that
Mip-NeRF 360 scene in PyPI's gradio_model3dgs 0.1.6 (bonsai-7k.splat): places to stand were chosen by looking at it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hushsplat.evaluation.motions import MOTIONS, SECONDS, Viewpoint
from hushsplat.io.tracks import write_track

FOLDER = Path(__file__).resolve().parent.parent / "src/hushsplat/evaluation/tracks"
DIGITS = 9  # of the poses: a rotation is then one to 1e-8
PLACES = {  # name: up, world units per metre, and for each motion where one stands and what one looks at
    "own": (
        (0.0, -1.0, 0.0),
        1.0,
        {
            "walk": ((0.9, -1.5, -4.6), (-0.7, -1.0, 0.2)),
            "orbit": ((1.6, -1.5, -3.9), (-0.5, -0.8, -1.6)),
            "turn": ((-0.4, -1.55, 0.9), (0.6, -1.0, 5.5)),
            "dolly": ((0.9, -0.9, 2.3), (3.0, -0.6, 6.6)),
            "stop-and-go": ((-0.6, -1.5, 2.0), (0.5, -1.0, 6.5)),
            "head": ((0.2, -1.6, -3.2), (-0.5, -1.1, 0.5)),
        },
    ),
    "bonsai": (
        (0.075, -0.994, 0.074),
        1.5,
        {
            "walk": ((-1.5, -2.0, 3.7), (0.2, -0.3, 0.1)),
            "orbit": ((3.4, -2.2, -1.6), (0.2, -0.1, 0.1)),
            "turn": ((-3.4, -2.0, -1.2), (0.2, -0.1, 0.1)),
            "dolly": ((-0.3, -1.9, 3.7), (0.2, -0.75, 0.1)),
            "stop-and-go": ((2.6, -1.6, 2.8), (0.2, -0.2, 0.1)),
            "head": ((0.4, -2.6, -3.4), (0.2, -0.2, 0.1)),
        },
    ),
}


def main() -> None:
    """Every motion in every place."""
    FOLDER.mkdir(exist_ok=True)
    for place, (up, unit, stands) in PLACES.items():
        upward = np.array(up) / np.linalg.norm(up)
        for name, (eye, target) in stands.items():
            track = MOTIONS[name](Viewpoint(np.array(eye), np.array(target), upward, unit), SECONDS[name])
            poses, times = np.round(track.world_from_camera, DIGITS), np.round(track.times_s, DIGITS)
            write_track(replace(track, world_from_camera=poses, times_s=times), FOLDER / f"{place}-{name}.json")


if __name__ == "__main__":
    main()
