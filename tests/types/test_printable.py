"""Errors are one printable line, whatever a file put into them."""

import pytest

from hushsplat.types.errors import HushsplatError, SceneError, printable


@pytest.mark.parametrize("kind", [HushsplatError, SceneError])
def test_control_characters_of_files_do_not_reach_the_terminal(kind: type[HushsplatError]) -> None:
    error = kind("a\x1b]0;title\x07b\nc\u202ed×")
    assert str(error) == r"a\x1b]0;title\x07b\nc\u202ed×" and str(error).isprintable()


def test_plain_text_stays() -> None:
    assert printable("garden é × 木.ply: 3 Gaussians") == "garden é × 木.ply: 3 Gaussians"
