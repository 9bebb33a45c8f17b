"""The Python examples of the README run as they are, one after the other."""

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

import hushsplat
from hushsplat.io.tracks import write_track

README = Path(__file__).resolve().parents[2] / "README.md"


def test_python_examples_of_the_readme_run(tmp_path: Path) -> None:
    hushsplat.save(hushsplat.room_and_garden(2000), tmp_path / "garden.ply")
    write_track(hushsplat.walk_track(seconds=0.1, fps=30, width=64, height=48), tmp_path / "walk.json")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    script = "\n".join([*blocks, "print(image.color.shape)"])
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "(48, 64, 3)"
    with Image.open(tmp_path / "garden.png") as picture:
        assert picture.size == (800, 532)
