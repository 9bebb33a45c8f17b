"""The first camera of scenes: score and time against the guess without looking, and a contact sheet to judge by eye.

python benchmarks/home_camera.py garden.ply bonsai.splat synth:200k demo: --sheet home.png
python benchmarks/home_camera.py flowers/lod-meta.json --lod 0 1 2 3
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw

import hushsplat
from hushsplat.home.search import Search
from hushsplat.scenes import scene_argument
from hushsplat.types.camera import Camera
from hushsplat.types.framing import guess_camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.up import find_up

WIDTH, HEIGHT, PLACES = 480, 320, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+", help="files, synth:200k or demo:")
    parser.add_argument("--lod", nargs="*", type=int, default=[None], help="levels of detail of a streamed SOG")
    parser.add_argument("--sheet", default="home.png", help="contact sheet: the guess, home, places; a row per scene")
    arguments = parser.parse_args()
    rows = []
    print("| scene | Gaussians | up | guess | home | lone | up, CPU s | prepare, CPU s | look, CPU s | wall s |")
    print("| --- | ---: | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for name in arguments.scenes:
        for lod in arguments.lod:
            scene = scene_argument(name, lod=lod)
            label = scene.name if lod is None else f"{scene.name} lod {lod}"
            rows.append(row(label, scene.gaussians))
    sheet = Pillow.new("RGB", (WIDTH * (PLACES + 1), HEIGHT * len(rows)))
    for top, pictures in enumerate(rows):
        for left, picture in enumerate(pictures):
            sheet.paste(picture, (left * WIDTH, top * HEIGHT))
    sheet.save(arguments.sheet)


def row(label: str, gaussians: Gaussians) -> list[Pillow.Image]:
    """Print one line of the table, and draw one row of the sheet."""
    wall, begin = perf_counter(), process_time()
    up = find_up(gaussians)
    found = process_time()
    search = Search.of(gaussians, WIDTH, HEIGHT, up, 50.0, "cpu", None)
    prepared = process_time()
    places = search.places(PLACES)
    looked, wall = process_time(), perf_counter() - wall
    guess = guess_camera(gaussians, WIDTH, HEIGHT, up)
    forward = guess.world_from_camera[:3, 2]
    target = guess.position + forward * ((search.middle - guess.position) @ forward)
    scores = [search.rate(search.look(guess.position, target))]
    scores += [search.rate(search.look(place.camera.position, place.pivot)) for place in places]
    print(
        f"| {label} | {len(gaussians):,} | {np.array2string(up, precision=2, suppress_small=True)} | {scores[0]:.2f} "
        f"| {scores[1]:.2f} | {'yes' if search.is_lone else 'no'} | {found - begin:.2f} | {prepared - found:.2f} "
        f"| {looked - prepared:.2f} | {wall:.2f} |",
        flush=True,
    )
    cameras = [guess, *(place.camera for place in places)]
    names = ["guess", *(place.name for place in places)]
    uploaded = hushsplat.upload(gaussians)
    return [
        drawn(uploaded, camera, f"{label}: {name} {score:.2f}")
        for camera, name, score in zip(cameras, names, scores, strict=True)
    ]


def drawn(scene: hushsplat.Scene, camera: Camera, text: str) -> Pillow.Image:
    color = hushsplat.render(scene, camera).color.clip(0, 1)
    picture = Pillow.fromarray(np.uint8(np.round(255 * color)))
    ImageDraw.Draw(picture).text((4, 4), text, fill=(255, 80, 80))
    return picture


if __name__ == "__main__":
    main()
