"""Pictures, videos and numbered frames, read back with other libraries' readers."""

from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image as Pillow

from hushsplat.io.frames import OutputKind, frame_rate, frame_writer, output_kind
from hushsplat.io.images import save_image
from hushsplat.io.video import video_writer
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Image
from hushsplat.types.paths import orbit
from hushsplat.types.track import Track

COLORS = ((0.9, 0.1, 0.1), (0.1, 0.9, 0.1), (0.2, 0.3, 0.9))  # saturated: a wrong colour matrix shows


def gradient(height: int = 24, width: int = 32) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    return np.stack([x / (width - 1), y / (height - 1), 0.5 + 0 * x], axis=-1)


def ring(frames: int, width: int = 16, height: int = 8) -> Track:
    return orbit((0, 0, 0), 1.0, seconds=frames / 10, fps=10.0, width=width, height=height)


@pytest.mark.parametrize("suffix", [".png", ".webp", ".PNG"])
def test_lossless_pictures_keep_every_8_bit_value(tmp_path: Path, suffix: str) -> None:
    save_image(gradient(), tmp_path / f"a{suffix}")
    pixels = np.asarray(Pillow.open(tmp_path / f"a{suffix}"))
    np.testing.assert_array_equal(pixels, np.floor(gradient() * 255 + 0.5).astype(np.uint8))


def test_jpeg_is_close(tmp_path: Path) -> None:
    save_image(gradient(), tmp_path / "a.jpg")
    assert np.abs(np.asarray(Pillow.open(tmp_path / "a.jpg")) / 255 - gradient()).max() < 0.03


def test_npy_keeps_floats_beyond_one_and_8_bits_clamp(tmp_path: Path) -> None:
    bright = gradient() * 3 - 1
    picture = Image(bright, bright[..., 0], bright[..., 0])
    save_image(picture, tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), bright)
    save_image(picture, tmp_path / "a.png")
    pixels = np.asarray(Pillow.open(tmp_path / "a.png"))
    assert (pixels.min(), pixels.max()) == (0, 255)


def test_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HushsplatError, match=r"a\.gif: cannot write a picture as '\.gif'; end the name in \.png"):
        save_image(gradient(), tmp_path / "a.gif")


def test_webp_ends_at_16383_px(tmp_path: Path) -> None:
    with pytest.raises(HushsplatError, match=r"WebP ends at 16383 px a side, got 16384×1; use \.png"):
        save_image(np.zeros((1, 16384, 3), dtype=np.float32), tmp_path / "a.webp")


@pytest.mark.parametrize(("width", "height"), [(32, 24), (31, 23), (1, 1)])
def test_video_has_all_frames_in_even_size_and_right_colours(tmp_path: Path, width: int, height: int) -> None:
    with video_writer(tmp_path / "a.mp4", width, height, 12.5, crf=10) as video:
        for color in COLORS:
            video.write(np.tile(np.float32(color), (height, width, 1)))
    with av.open(str(tmp_path / "a.mp4")) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        assert (stream.codec_context.name, stream.pix_fmt, float(stream.average_rate)) == ("h264", "yuv420p", 12.5)
    assert [frame.shape for frame in frames] == [(height + height % 2, width + width % 2, 3)] * 3
    for frame, color in zip(frames, COLORS, strict=True):
        assert np.abs(frame / 255 - color).max() < 0.03


def test_video_that_fails_is_not_there_and_spares_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), video_writer(tmp_path / "a.mp4", 16, 16, 30.0) as video:
        video.write(np.zeros((16, 16, 3), dtype=np.float32))
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]
    assert (tmp_path / "a.mp4").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "fps", "crf", "message"),
    [
        ("a.avi", 30.0, 18, r"cannot write a video as '\.avi'; give a name that ends in \.mp4"),
        ("a.mp4", 0.0, 18, "a video needs more than 0 and at most 1000 frames a second, got 0"),
        ("a.mp4", float("nan"), 18, "a video needs more than 0"),
        ("a.mp4", 30.0, 52, r"crf must lie in 0 \(lossless\) \.\. 51 \(worst\), got 52"),
    ],
)
def test_wrong_video_settings_are_refused(tmp_path: Path, name: str, fps: float, crf: int, message: str) -> None:
    with pytest.raises(HushsplatError, match=message), video_writer(tmp_path / name, 16, 16, fps, crf):
        pass
    assert not list(tmp_path.iterdir())


def test_frame_of_another_size_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(HushsplatError, match=r"a frame of \(8, 8, 3\) came into a video of \(16, 16, 3\)"),
        video_writer(tmp_path / "a.mp4", 16, 16, 30.0) as video,
    ):
        video.write(np.zeros((8, 8, 3), dtype=np.float32))


def test_names_say_what_is_written(tmp_path: Path) -> None:
    kinds = {
        "a.png": OutputKind.PICTURE,
        "a%03d.jpg": OutputKind.NUMBERED,
        "a.MP4": OutputKind.VIDEO,
        ".": OutputKind.FOLDER,
    }
    assert {name: output_kind(tmp_path / name) for name in kinds} == kinds


@pytest.mark.parametrize("name", ["a%s.png", "a%d%d.png", "a%.png", "a%%04d.png"])
def test_wrong_patterns_are_refused(name: str) -> None:
    with pytest.raises(HushsplatError, match="numbered pictures have one number in their name"):
        output_kind(Path(name))


def test_unknown_output_is_refused() -> None:
    with pytest.raises(HushsplatError, match=r"frames: has no ending and is no folder; end the name in \.png"):
        output_kind(Path("frames"))
    with pytest.raises(HushsplatError, match=r"a\.gif: cannot write '\.gif'; end the name in \.png, .*\.mp4"):
        output_kind(Path("a.gif"))


def test_numbered_frames_make_their_folder(tmp_path: Path) -> None:
    with frame_writer(tmp_path / "new" / "f%02d.png", ring(3)) as write:
        for _ in range(3):
            write(gradient())
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["f00.png", "f01.png", "f02.png"]
    with frame_writer(tmp_path / "new", ring(3)) as write:
        write(gradient())
    assert (tmp_path / "new" / "00000.png").is_file()


def test_output_and_camera_must_fit(tmp_path: Path) -> None:
    still = Camera.look_at(np.array([0, 0, -1]), np.zeros(3), np.array([0, -1, 0]))
    with pytest.raises(HushsplatError, match="a video needs a moving camera"), frame_writer(tmp_path / "a.mp4", still):
        pass
    with pytest.raises(HushsplatError, match="3 frames need a video"), frame_writer(tmp_path / "a.png", ring(3)):
        pass
    assert frame_rate(ring(3)) == pytest.approx(10)
    assert frame_rate(ring(1)) == 30
