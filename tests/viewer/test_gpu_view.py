"""The viewer on the gpu engine: its threads draw, and what the engine lacks is an answer, not an end."""

from __future__ import annotations

from typing import Any

from client import page, pixels, psnr, run

import hushsplat
from hushsplat.types.image import to_bytes

SMALL = hushsplat.home_camera(96, 64)


def test_the_viewer_draws_on_the_gpu_engine(gpu) -> None:
    scene = hushsplat.room_and_garden(5_000)

    async def visit(url: str) -> tuple[list[bytes], dict[str, Any], list[bytes]]:
        async with page(url) as one:
            await one.draw("reference", "temporal-zero-shot")
            await one.look(SMALL)
            _, first = await one.sharp_frame(at_least=4)
            await one.draw("exact")
            error, _ = await one.next("error")
            await one.draw("hush")
            await one.look(SMALL, sequence=1)
            _, last = await one.sharp_frame(at_least=4)
            return first, error, last

    with hushsplat.view(scene, name="room", cameras=[SMALL], port=0, on=gpu) as viewer:
        (reference, denoised), error, (hush,) = run(visit(viewer.url))
    expected = to_bytes(hushsplat.render(scene, SMALL, "reference").color)
    assert psnr(pixels(reference), expected) > 30 and psnr(pixels(hush), expected) > 25
    assert psnr(pixels(denoised), expected) > 18
    assert "the gpu engine blends reference, not 'exact'" in str(error)
