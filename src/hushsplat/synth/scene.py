"""The scene as a whole: parts in, Gaussians out."""

from __future__ import annotations

import numpy as np
from numpy.random import PCG64, Generator

from hushsplat.synth import (
    backdrop,
    decor,
    dining,
    floaters,
    flowers,
    garden,
    house,
    lamps,
    pond,
    pot_plants,
    room,
    shelf,
    sofa,
    tableware,
    terrace,
    trees,
)
from hushsplat.synth.gloss import write_sh
from hushsplat.synth.light import displayed, lit, measure_daylight
from hushsplat.synth.surfels import Part, quaternions, share_out
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import MAX_SH_DEGREE, Gaussians

MIN_COUNT, MAX_COUNT = 1_000, 20_000_000


def all_parts(seed: int) -> list[Part]:
    """Every part of the scene; the seed decides what is left to chance, such as the books and the branches."""
    indoors = (room, dining, sofa, shelf, decor, lamps, tableware)
    outdoors = (house, terrace, garden, pond, trees, flowers, pot_plants, backdrop)
    places = (*indoors, *outdoors, floaters)
    return [part for index, place in enumerate(places) for part in place.parts(Generator(PCG64([seed, index])))]


def room_and_garden(count: int = 500_000, *, seed: int = 0, sh_degree: int = 2) -> Gaussians:
    """A furnished room that opens onto a garden, as exactly `count` surfels with baked light.

    The same arguments give the same bytes. Surfels shrink with the root of the count, so that surfaces stay closed.
    World: metres, up is -y, the floor is y = 0, the garden lies towards +z.

    Args:
        count: number of surfels.
        seed: of foliage, textures and placement.
        sh_degree: of the colours, 0 to 3.
    """
    if not MIN_COUNT <= count <= MAX_COUNT:
        raise SceneError(f"count must lie between {MIN_COUNT} and {MAX_COUNT} surfels, got {count}.")
    if not 0 <= sh_degree <= MAX_SH_DEGREE:
        raise SceneError(f"sh_degree must be 0 to {MAX_SH_DEGREE}, got {sh_degree}.")
    if not 0 <= seed < 2**63:
        raise SceneError(f"seed must lie between 0 and 2^63 - 1, got {seed}.")
    parts = all_parts(seed)
    shares = share_out([part.demand for part in parts], count)
    batches = [
        part.make(Generator(PCG64([seed, 1000 + index])), share)
        for index, (part, share) in enumerate(zip(parts, shares, strict=True))
    ]
    light = measure_daylight(batches)
    means = np.concatenate([batch.means for batch in batches])
    scales = np.concatenate([batch.scales for batch in batches])
    opacities = np.concatenate([batch.opacities for batch in batches])
    rotations = np.empty((count, 4), dtype=np.float32)
    sh = np.empty((count, (sh_degree + 1) ** 2, 3), dtype=np.float32)
    start = 0
    for index, batch in enumerate(batches):
        rows = slice(start, start + len(batch))
        rng = Generator(PCG64([seed, 2000 + index]))
        rotations[rows] = quaternions(batch.normals, batch.tangents)
        write_sh(rng, batch, displayed(lit(rng, light, batch)), sh[rows], sh_degree)
        start = rows.stop
    return Gaussians(means, scales, rotations, opacities, sh)
