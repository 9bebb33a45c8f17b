"""The terrace: slabs, railing, string lights, a bistro set."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import choose, linear, ripples, speckled
from hushsplat.synth.plan import LAWN_HEIGHT, TERRACE_Z, TREE, WALL
from hushsplat.synth.shapes import Blobs, Cones, block, f32, join, lathe, quad, rods, sagging, tube
from hushsplat.synth.surfaces import ground, plain, surface, wall
from hushsplat.synth.surfels import Finish, Part, Spots

STEEL = Finish(gloss=0.2, stretch=4.0, spin=0.05, translucency=0.6)


def parts(rng: Generator) -> list[Part]:
    """Everything between the house and the lawn."""
    return [*_terrace(rng), *_railing(), *_string_lights(), *_bistro()]


def _terrace(rng: Generator) -> list[Part]:
    slabs, seams = [], []
    z0 = WALL
    for _ in range(4):
        depth = (TERRACE_Z - WALL) / 4
        x = -4.75 - rng.uniform(0, 0.4)
        while x < 4.75:
            width = rng.choice([0.56, 0.84, 1.12])
            left, right = max(x, -4.75), min(x + width, 4.75)
            if right - left > 0.1:
                slabs.append(ground((left + 0.005, right - 0.005), (z0 + 0.005, z0 + depth - 0.005), -0.02))
            seams.append(ground((left - 0.006, left + 0.006), (z0, z0 + depth), -0.024))
            x += width
        z0 += depth
        seams.append(quad([4.75, 0.024, z0 - 0.006], [-9.5, 0, 0], [0, 0, -0.012]))
    stone = join(slabs)
    tones = choose(rng, linear("#b3a892", "#a89d88", "#bdb29c", "#9f9786", "#b8a88d"), len(slabs))

    def paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        x, _, z = spots.means.T
        grain = 1 + 0.05 * ripples(x, z, 0.3, 111) + 0.04 * ripples(x, z, 0.06, 112)
        return speckled(rng, tones[spots.owner] * grain[:, None], len(x), 0.05)

    joints = join(seams)
    below = ground((-4.78, 4.78), (WALL - 0.05, TERRACE_Z - 0.02), -0.05)
    step = wall((4.76, TERRACE_Z), (-4.76, TERRACE_Z), (LAWN_HEIGHT, -0.02))
    mat = block((-0.62, 0.42), (-0.02, 0.0), (WALL + 0.16, WALL + 0.72))
    return [
        surface("terrace", stone, 1500, paint, Finish(gloss=0.06, rough=0.04)),
        surface("terrace bed", below, 350, plain("#77705c", 0.08), Finish(rough=0.02)),
        surface("terrace joints", joints, 9000, plain("#5f5a48", 0.15), Finish(stretch=5.0, opacity=(0.4, 0.9))),
        surface("terrace step", step, 1500, plain("#97907f", 0.08), Finish()),
        surface("door mat", mat, 3000, plain("#6a563c", 0.16), Finish(rough=0.2)),
    ]


def _railing() -> list[Part]:
    """Thin steel bars along the left half of the terrace."""
    z, left, right, top = TERRACE_Z - 0.06, -4.7, -1.0, 0.92
    rails = [tube([[left, -h, z], [right, -h, z]], r) for h, r in ((top, 0.018), (0.08, 0.01))]
    posts = [tube([[x, 0.02, z], [x, -top, z]], 0.016) for x in np.linspace(left, right, 4)]
    bars = [tube([[x, -0.08, z], [x, -top, z]], 0.0055) for x in np.arange(left + 0.1, right, 0.115)]
    return [
        surface("rails", join(rails + posts), 5200, plain("#2f3336"), STEEL),
        surface("railing bars", join(bars), 9000, plain("#2f3336"), STEEL),
    ]


def _string_lights() -> list[Part]:
    """Bulbs on a wire from the eaves to the tree and to a post, thin against the sky."""
    post = (4.25, TERRACE_Z - 0.1)
    eave, in_tree, on_post = 2.86, (TREE[0] + 0.12, -2.45, TREE[1] - 0.25), (post[0], -2.55, post[1])
    spans = [
        sagging((-2.4, -eave, WALL + 0.42), in_tree, 0.34),
        sagging((3.0, -eave, WALL + 0.42), on_post, 0.16),
        sagging(in_tree, on_post, 0.5, 36),
    ]
    wires = [tube(path, 0.0045) for path in spans]
    pole = tube([[post[0], 0.02, post[1]], [post[0], -2.6, post[1]]], [0.028, 0.022])
    hooks = np.concatenate([path[2:-1:3] for path in spans])
    sockets = rods(hooks, hooks + f32([0, 0.05, 0]), (0.011, 0.011))
    bulbs = Blobs(hooks + f32([0, 0.085, 0]), np.tile(f32([0.027, 0.036, 0.027]), (len(hooks), 1)))
    return [
        surface("light wires", join(wires), 9000, plain("#26251f"), Finish(stretch=7.0, spin=0.0, translucency=0.6)),
        surface("light sockets", sockets, 7000, plain("#26251f"), Finish(stretch=2.0)),
        surface("light bulbs", bulbs, 8000, plain("#ffdf9e", 0.03), Finish(glow=1.6, gloss=0.3)),
        surface("light post", pole, 1800, plain("#6b5540", 0.08), Finish(stretch=4.0)),
    ]


def _bistro() -> list[Part]:
    """A round metal table and two wire chairs."""
    x, z = 3.05, 1.45
    top = lathe([(0.70, 0.0), (0.70, 0.33), (0.715, 0.335), (0.725, 0.33), (0.725, 0.0)], x, z, -0.02)
    legs = []
    for turn in (0.0, 2 * np.pi / 3, 4 * np.pi / 3):
        c, s = np.cos(turn), np.sin(turn)
        legs.append(tube([[0, -0.68, 0], [0.06 * c, -0.35, 0.06 * s], [0.27 * c, 0.02, 0.27 * s]], 0.011).placed(x, z))
    chair = _wire_chair()
    chairs = join([chair.placed(x - 0.62, z - 0.12, -80), chair.placed(x + 0.3, z + 0.62, 155)])
    green = plain("#5e8078", 0.04)
    return [
        surface("bistro table", top, 3800, green, Finish(gloss=0.35, rough=0.02)),
        surface("bistro legs", join(legs), 5200, green, STEEL),
        surface("bistro chairs", chairs, 6500, green, STEEL),
    ]


def _wire_chair() -> Cones:
    """A chair of bent rods at the origin that faces +z."""

    def bow(across: float) -> list[float]:
        """A point of the arched back; `across` from -0.19 to 0.19."""
        rise = max(1 - (across / 0.19) ** 2, 0.0)
        return [across, -0.45 - 0.43 * rise**0.3, -0.19 - 0.06 * rise**0.5]

    rim = [[0.2 * np.cos(a), -0.45, 0.2 * np.sin(a)] for a in np.linspace(0, 2 * np.pi, 17)]
    rods = [tube([bow(0.19 * np.sin(a)) for a in np.linspace(-np.pi / 2, np.pi / 2, 11)], 0.009), tube(rim, 0.009)]
    rods += [tube([[a, -0.45, -0.19], bow(a)], 0.0045) for a in (-0.12, -0.06, 0.0, 0.06, 0.12)]
    rods += [tube([[x * 0.17, -0.44, z * 0.17], [x * 0.2, 0.02, z * 0.22]], 0.009) for x in (-1, 1) for z in (-1, 1)]
    for across in np.linspace(-0.17, 0.17, 9):
        half = np.sqrt(0.04 - across * across)
        rods.append(tube([[across, -0.45, -half], [across, -0.45, half]], 0.006))
    return join(rods)
