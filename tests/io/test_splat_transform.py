"""Another reader's opinion: PlayCanvas' splat-transform and we read and write the same scenes.

npm install @playcanvas/splat-transform, then set HUSHSPLAT_SPLAT_TRANSFORM to its bin/cli.mjs.
"""

import os
import subprocess

import numpy as np
import pytest
from made_scenes import random_gaussians

from hushsplat.io.scenes.ply import read_ply, write_ply
from hushsplat.io.scenes.sog import read_sog
from hushsplat.io.scenes.sog_stream import read_streamed_sog
from hushsplat.io.scenes.sog_write import write_sog
from hushsplat.io.scenes.spz import read_spz, write_spz
from hushsplat.io.scenes.spz_packing import RUB, flips_to_rdf, quaternion_signs, sh_signs
from hushsplat.types.gaussians import Gaussians

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def convert(tmp_path_factory):
    """Have splat-transform convert a file, and read its result if that is a PLY."""
    script = os.environ.get("HUSHSPLAT_SPLAT_TRANSFORM")
    if not script:
        pytest.skip(
            "splat-transform: set HUSHSPLAT_SPLAT_TRANSFORM to its bin/cli.mjs (npm @playcanvas/splat-transform)"
        )
    folder = tmp_path_factory.mktemp("converted")

    def run(source, name="scene.ply", *options):
        command = ["node", script, "-q", "-w", "-g", "cpu", *options, source, folder / name]
        subprocess.run([str(part) for part in command], check=True, timeout=300)
        return read_ply(folder / name) if name.endswith(".ply") else folder / name

    return run


def assert_same(ours, theirs):
    """Equal but for the last bits, and for opacities, which a PLY holds as logits within 1e-6 of 0 and 1."""
    np.testing.assert_allclose(ours.means, theirs.means, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ours.scales, theirs.scales, rtol=1e-5)
    np.testing.assert_allclose(ours.opacities, theirs.opacities, atol=2e-6)
    np.testing.assert_allclose(ours.sh, theirs.sh, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.abs((ours.rotations * theirs.rotations).sum(axis=1)), 1, atol=1e-6)


def with_y_up(gaussians):
    """As splat-transform 3.7 reads SPZ: it keeps the axes of the file, y up and z back."""
    flips = flips_to_rdf(RUB)
    return Gaussians(
        gaussians.means * flips,
        gaussians.scales,
        gaussians.rotations * quaternion_signs(flips),
        gaussians.opacities,
        gaussians.sh * sh_signs(flips, gaussians.sh_degree)[:, None],
    )


@pytest.mark.parametrize("surfels", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_it_reads_our_sog(convert, tmp_path, degree, surfels):
    write_sog(random_gaussians(500, degree=degree, surfels=surfels), tmp_path / "ours.sog")
    theirs = convert(tmp_path / "ours.sog")
    assert theirs.is_surfels == surfels
    assert_same(read_sog(tmp_path / "ours.sog"), theirs)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_it_reads_our_spz(convert, tmp_path, degree):
    write_spz(random_gaussians(500, degree=degree), tmp_path / "ours.spz")
    assert_same(with_y_up(read_spz(tmp_path / "ours.spz")), convert(tmp_path / "ours.spz"))


@pytest.mark.parametrize("surfels", [False, True])
def test_it_reads_our_ply(convert, tmp_path, surfels):
    made = random_gaussians(500, surfels=surfels)
    write_ply(made, tmp_path / "ours.ply")
    assert_same(made, convert(tmp_path / "ours.ply"))


@pytest.mark.parametrize("version", [3, 4])
def test_we_read_its_spz(convert, tmp_path, version):
    write_ply(random_gaussians(500), tmp_path / "ours.ply")
    theirs = convert(tmp_path / "ours.ply", "theirs.spz", "--spz-version", version)
    assert_same(with_y_up(read_spz(theirs)), convert(theirs))


@pytest.mark.parametrize("surfels", [False, True])
def test_we_read_its_sog(convert, tmp_path, surfels):
    write_ply(random_gaussians(500, degree=2, surfels=surfels), tmp_path / "ours.ply")
    theirs = convert(tmp_path / "ours.ply", "theirs.sog")
    ours = read_sog(theirs)
    assert ours.is_surfels == surfels
    assert_same(ours, convert(theirs))


@pytest.mark.parametrize("scene", ["playbot/2_0", "showroom/3_1", "flowers/3_0"])
def test_real_sog(convert, real_data, scene):
    assert_same(read_sog(real_data / scene), convert(real_data / scene / "meta.json"))


def test_real_levels(convert, real_data):
    path = real_data / "flowers" / "lod-meta.json"
    assert_same(read_streamed_sog(path, 2), convert(path, "scene.ply", "-L", "2"))


def test_real_spz(convert, real_data):
    path = real_data / "biker" / "biker.spz"
    assert_same(with_y_up(read_spz(path)), convert(path))
