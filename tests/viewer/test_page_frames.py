"""How the page shows frames: scaled, with numbers that can be read, and at rest only when nothing is to come."""

from __future__ import annotations

import base64
import io

import numpy as np
from client import pixels
from PIL import Image
from playwright.sync_api import Page
from watch import wait_for_frame

FINISHED = "frame.still_frames === frame.still_limit"
# Shows a frame that no server has sent; gives the canvas.
SHOW = """async ([text, moving]) => {
  const { stage } = hushsplat;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  await stage.show({ ...stage.header, moving, frame: -1 }, [bytes]);
  return stage.canvas.toDataURL("image/png").split(",")[1];
}"""
SHOWN = """() => {
  const { stage } = hushsplat;
  stage.dispatchEvent(new CustomEvent("shown", { detail: stage.header }));
}"""
# Frames 20 ms apart by a clock of our own; gives the texts that were shown one after the other.
TELL = """(moving) => {
  const { panel, stage } = hushsplat, seen = [], real = performance.now, begin = real.call(performance) + 1e6;
  for (let k = 0; k < 50; k += 1) {
    performance.now = () => begin + 20 * k;
    panel.showFrameInfo({ ...stage.header, moving, passes_ms: { hush: k } }, null);
    const text = document.getElementById("stat-fps").textContent;
    if (text !== seen.at(-1)) seen.push(text);
  }
  performance.now = real;
  return seen;
}"""


def encoded(picture: np.ndarray) -> str:
    body = io.BytesIO()
    Image.fromarray(picture).save(body, "JPEG", quality=100, subsampling=0)
    return base64.b64encode(body.getvalue()).decode()


def shown(page: Page, picture: np.ndarray, moving: bool) -> np.ndarray:
    return pixels(base64.b64decode(page.evaluate(SHOW, [encoded(picture), moving])))


def test_small_moving_frames_are_scaled_bilinearly(page: Page) -> None:
    wait_for_frame(page, FINISHED)
    halves = np.full((16, 24, 3), 60, np.uint8)  # blocks of a JPEG keep their colours exactly
    halves[:, 16:] = 200
    row = shown(page, halves, moving=True)[120, :, 0].astype(float)
    centres = (np.arange(360) + 0.5) / 360 * 24 - 0.5
    expected = np.interp(centres, [15, 16], [60, 200])
    assert np.abs(row - expected).max() < 12  # weights are in 1/16 without a GPU; whole pixels would be 70 off
    assert row.min() == 60 and row.max() == 200
    still = shown(page, halves, moving=False)[120, :, 0]
    assert still.min() < 58 and still.max() > 202  # the better filter, which overshoots a little


def test_numbers_of_moving_frames_change_five_times_a_second(page: Page) -> None:
    wait_for_frame(page, FINISHED)
    assert len(page.evaluate(TELL, True)) == 5  # in a second of 50 frames
    assert len(page.evaluate(TELL, False)) == 50  # a still one is the last that is told


def test_resting_is_not_shown_while_something_is_to_be_drawn(page: Page) -> None:
    wait_for_frame(page, FINISHED)
    page.evaluate("() => { hushsplat.stage.show = () => {}; }")  # the next frames are late
    page.evaluate(SHOWN)
    page.evaluate("() => hushsplat.camera.orbit(0.1, 0)")
    page.wait_for_timeout(1800)  # resting is shown after 1.5 s
    assert "fps" in page.inner_text("#stat-fps")


def test_held_picture_does_not_rest(page: Page) -> None:
    wait_for_frame(page, FINISHED)
    told = "(text) => document.getElementById('stat-fps').textContent === text"
    page.wait_for_function(told, arg="resting")
    page.mouse.move(100, 90)
    page.mouse.down()
    page.wait_for_function(told, arg="held")
    page.mouse.up()
    page.wait_for_function(told, arg="resting")


def test_frame_that_cannot_be_decoded_does_not_end_the_others(page: Page, console_errors: list[str]) -> None:
    wait_for_frame(page, FINISHED)
    text = base64.b64encode(b"no picture").decode()
    page.evaluate(SHOW, [text, False])
    assert console_errors and "decoded" in console_errors.pop()
    page.evaluate("() => hushsplat.camera.orbit(0.1, 0)")
    wait_for_frame(page, "frame.sequence === hushsplat.sequence()")


def test_picture_is_not_stretched_while_the_window_changes(page: Page) -> None:
    wait_for_frame(page, FINISHED)
    canvas = "() => document.getElementById('picture').toDataURL('image/png').split(',')[1]"

    def middle() -> np.ndarray:
        seen = pixels(base64.b64decode(page.evaluate(canvas)))
        return seen[:, seen.shape[1] // 2 - 60 : seen.shape[1] // 2 + 60]

    before = middle()
    page.evaluate("() => { hushsplat.stage.show = () => {}; }")  # the next frames are late
    for width in (240, 500):
        page.set_viewport_size({"width": width, "height": 240})
        page.wait_for_function(f"() => hushsplat.stage.canvas.width === {width}")
        assert (middle() == before).all()


def test_legend_is_beside_the_settings(page: Page) -> None:
    page.set_viewport_size({"width": 900, "height": 300})
    page.evaluate(
        "() => hushsplat.panel.setSides([{ method: 'raw', show: 'picture' }, { method: 'temporal', show: 'variance' }])"
    )
    page.wait_for_selector(".legend")
    page.keyboard.press("g")
    legend, panel = (page.locator(name).bounding_box() for name in (".legend", "#panel"))
    assert legend and panel and legend["x"] + legend["width"] < panel["x"]


def test_legend_is_above_the_track(page: Page) -> None:
    page.keyboard.press("v")
    page.wait_for_selector(".legend")
    page.keyboard.press("t")
    page.wait_for_function(
        "() => document.querySelector('.legend').getBoundingClientRect().bottom"
        " < document.getElementById('timeline').getBoundingClientRect().top"
    )
