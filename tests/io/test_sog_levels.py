"""Streamed SOG as it is written: levels, leaves and files."""

import json

import numpy as np
import pytest
from made_scenes import random_gaussians

from hushsplat.io.content import levels_of_detail
from hushsplat.io.scenes import sog_levels
from hushsplat.io.scenes.scene import load, save
from hushsplat.io.scenes.sog_stream import StreamedSog
from hushsplat.types.errors import SceneError


@pytest.fixture
def small(monkeypatch):
    """Leaves, files and levels of a few Gaussians."""
    for name, value in {"LEAF_GAUSSIANS": 100, "FILE_GAUSSIANS": 250, "COARSEST_GAUSSIANS": 60}.items():
        monkeypatch.setattr(sog_levels, name, value)


@pytest.mark.parametrize("surfels", [False, True])
def test_levels_and_leaves_hold_the_whole_scene(tmp_path, small, surfels):
    made = random_gaussians(1000, surfels=surfels, degree=1)
    save(made, tmp_path / "new" / "lod-meta.json")
    levels = levels_of_detail(tmp_path / "new")
    assert levels[0] == 1000 and list(levels.values()) == sorted(levels.values(), reverse=True)
    assert len(levels) >= 3 and 60 <= levels[max(levels)] < 300
    finest = load(tmp_path / "new", lod=0)
    assert finest.is_surfels == surfels and finest.sh_degree == 1
    np.testing.assert_allclose(np.sort(finest.means, axis=0), np.sort(made.means, axis=0), atol=2e-3)
    streamed = StreamedSog(tmp_path / "new" / "lod-meta.json")
    for leaf in streamed.leaves:
        part = streamed.read([0 if one is leaf else max(one.runs) for one in streamed.leaves])
        others = sum(one.runs[max(one.runs)][2] for one in streamed.leaves if one is not leaf)
        inside = ((part.means >= leaf.low - 0.01) & (part.means <= leaf.high + 0.01)).all(axis=1)
        assert leaf.runs[0][2] <= 100 and len(part) == others + leaf.runs[0][2] and inside.sum() >= leaf.runs[0][2]
    files = json.loads((tmp_path / "new" / "lod-meta.json").read_text())["filenames"]
    assert len(files) > len(levels) and all((tmp_path / "new" / name).is_file() for name in files)


def test_a_scene_of_one_leaf_and_level(tmp_path):
    save(random_gaussians(50, degree=0), tmp_path / "lod-meta.json")
    assert levels_of_detail(tmp_path) == {0: 50}
    assert len(load(tmp_path)) == 50


def test_an_empty_scene_is_refused(tmp_path):
    with pytest.raises(SceneError, match=r"an empty scene has no levels of detail; write a \.ply or \.sog"):
        save(random_gaussians(0), tmp_path / "lod-meta.json")


def test_a_writer_that_ends_early_leaves_no_description_of_mixed_files(tmp_path, small, monkeypatch):
    path = tmp_path / "lod-meta.json"
    save(random_gaussians(1000, degree=0), path)
    packed, calls = sog_levels.packed_sog, []

    def killed(gaussians):
        calls.append(len(gaussians))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return packed(gaussians)

    monkeypatch.setattr(sog_levels, "packed_sog", killed)
    with pytest.raises(KeyboardInterrupt):
        save(random_gaussians(1000, degree=0, seed=3), path)
    assert not path.exists() and (tmp_path / "0_0" / "meta.json").exists()


def test_a_file_in_the_way_is_refused_in_one_line(tmp_path, small):
    (tmp_path / "0_0").write_text("")
    with pytest.raises(SceneError, match=r"lod-meta\.json: cannot be written: File exists\."):
        save(random_gaussians(200, degree=0), tmp_path / "lod-meta.json")
