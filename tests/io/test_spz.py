"""SPZ: the bytes of every version by hand, round trips, axes, and files of strangers."""

import gzip
import importlib
import struct
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from made_scenes import assert_close, assert_usable, random_gaussians, read_hostile, with_values

from hushsplat.io.scenes import spz, spz_packing
from hushsplat.io.scenes.ply import read_ply
from hushsplat.io.scenes.spz import read_spz, write_spz
from hushsplat.types.errors import HushsplatError, SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import sh_colors

RUB, RDF = 4, 6
pytestmark = pytest.mark.filterwarnings("error")
quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def zstd_module():
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def header(version, count, degree=0, bits=12, flags=0, streams=0):
    return struct.pack("<4sIIBBBB", b"NGSP", version, count, degree, bits, flags, streams)


def version_4(attributes, count, degree=0, extensions=b"", bits=12, table=None, **changed):
    """A version 4 file of these attribute bytes; what is given beyond them replaces what would be right."""
    attributes = [attribute for attribute in attributes if attribute]
    packed = [zstd_module().compress(attribute) for attribute in attributes]
    if table is None:
        table = [size for pair in zip(packed, attributes, strict=True) for size in map(len, pair)]
    start = header(
        4, count, degree, bits, changed.get("flags", 2 * bool(extensions)), changed.get("streams", len(packed))
    )
    start += struct.pack("<I12x", changed.get("offset", 32 + len(extensions)))
    return start + extensions + struct.pack(f"<{len(table)}Q", *table) + b"".join(packed)


def content_of(path):
    """The header and the attributes of a written file."""
    content = gzip.decompress(path.read_bytes())
    _, version, count, degree, bits, _, _ = struct.unpack_from("<4sIIBBBB", content)
    sizes = np.cumsum([16] + [count * size for size in (9, 1, 3, 3, 4, 3 * ((degree + 1) ** 2 - 1))])
    assert version == 3 and sizes[-1] == len(content)
    attributes = [content[first:end] for first, end in pairwise(sizes)]
    return count, degree, bits, attributes


def in_range(gaussians):
    """The same scene with harmonics that SPZ can hold."""
    gaussians = with_values(gaussians, "sh", np.s_[:, 1:], gaussians.sh[:, 1:].clip(-0.99, 0.99))
    return gaussians


def assert_quantised(read, made, bits):
    """Equal but for SPZ's steps: half a step each."""
    np.testing.assert_allclose(read.means, made.means, atol=2.0**-bits / 2, rtol=1e-6)
    np.testing.assert_allclose(np.log(read.scales), np.log(made.scales), atol=1 / 32 + 1e-5)
    np.testing.assert_allclose(read.opacities, made.opacities, atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(read.sh[:, 0], made.sh[:, 0], atol=0.5 / (0.15 * 255) + 1e-5)
    np.testing.assert_allclose(read.sh[:, 1:], made.sh[:, 1:], atol=0.5 / 128 + 1e-6)
    # Three components are off by half a step of sqrt(1/2)/511, the largest one by at most as much as all of them.
    difference = np.minimum(*(np.linalg.norm(read.rotations - sign * made.rotations, axis=1) for sign in (1, -1)))
    assert difference.max() < 2.5e-3


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_round_trip(tmp_path, degree):
    made = in_range(random_gaussians(300, degree=degree))
    write_spz(made, tmp_path / "scene.spz")
    _, _, bits, _ = content_of(tmp_path / "scene.spz")
    read = read_spz(tmp_path / "scene.spz")
    assert_usable(read)
    assert read.sh_degree == degree and not read.is_surfels and read.payload is None
    assert_quantised(read, made, bits)


def test_a_second_round_trip_changes_nothing(tmp_path):
    write_spz(random_gaussians(300), tmp_path / "first.spz")
    read = read_spz(tmp_path / "first.spz")
    write_spz(read, tmp_path / "second.spz")
    again = read_spz(tmp_path / "second.spz")
    assert_close(again, Gaussians(again.means, read.scales, again.rotations, read.opacities, read.sh))
    np.testing.assert_array_equal(again.means, read.means)


def test_the_same_scene_makes_the_same_file(tmp_path):
    for name in "ab":
        write_spz(random_gaussians(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_surfels_become_the_thinnest_ellipsoids(tmp_path):
    made = random_gaussians(surfels=True)
    write_spz(made, tmp_path / "scene.spz")
    read = read_spz(tmp_path / "scene.spz")
    np.testing.assert_allclose(np.log(read.scales[:, :2]), np.log(made.scales), atol=1 / 32 + 1e-5)
    np.testing.assert_allclose(read.scales[:, 2], np.exp(-10), rtol=1e-6)


@pytest.mark.parametrize("degree", [0, 3])
def test_an_empty_scene(tmp_path, degree):
    write_spz(random_gaussians(0, degree=degree), tmp_path / "scene.spz")
    read = read_spz(tmp_path / "scene.spz")
    assert len(read) == 0 and read.sh_degree == degree


@pytest.mark.parametrize(
    ("farthest", "bits"), [(0.01, 23), (0.9999, 23), (1, 22), (3.9, 21), (1000, 13), (8_388_607, 0)]
)
def test_positions_get_the_bits_that_fit(tmp_path, farthest, bits):
    made = random_gaussians(20)
    made = replace(made, means=made.means * np.float32(farthest / np.abs(made.means).max()))
    made = with_values(made, "means", (3, 1), -farthest)
    write_spz(made, tmp_path / "scene.spz")
    assert content_of(tmp_path / "scene.spz")[2] == bits
    np.testing.assert_allclose(read_spz(tmp_path / "scene.spz").means, made.means, atol=2.0**-bits / 2, rtol=1e-7)


def test_values_beyond_the_range_are_clamped(tmp_path):
    made = random_gaussians(2, degree=1)
    made = with_values(made, "scales", ..., [[1e-9, 1e9, 1]] * 2)
    made = with_values(made, "sh", ..., 50)
    made = with_values(made, "sh", 1, -50)
    write_spz(made, tmp_path / "scene.spz")
    read = read_spz(tmp_path / "scene.spz")
    np.testing.assert_allclose(read.scales[0], np.exp([-10, 255 / 16 - 10, 0]), rtol=1e-5)
    np.testing.assert_allclose(np.abs(read.sh[:, 0]), 0.5 / 0.15, rtol=1e-5)
    assert set(np.abs(read.sh[:, 1:]).ravel()) <= {1, np.float32(127 / 128)}


def test_version_1_by_hand(tmp_path):
    positions = np.array([[1.5, -2, 0.25]], "<f2").tobytes()
    content = (
        header(1, 1) + positions + bytes([51]) + bytes([255, 0, 128]) + bytes([160, 0, 255]) + bytes([255, 127, 127])
    )
    (tmp_path / "scene.spz").write_bytes(gzip.compress(content))
    read = read_spz(tmp_path / "scene.spz")
    np.testing.assert_allclose(read.means, [[1.5, 2, -0.25]])  # y and z turn
    np.testing.assert_allclose(read.opacities, [0.2])
    np.testing.assert_allclose(read.sh, [[[0.5 / 0.15, -0.5 / 0.15, (128 / 255 - 0.5) / 0.15]]], rtol=1e-4)
    np.testing.assert_allclose(read.scales, [np.exp([0, -10, 255 / 16 - 10])], rtol=1e-6)
    np.testing.assert_allclose(np.abs(read.rotations), [[0, 1, 0, 0]], atol=0.005)


def test_version_2_by_hand(tmp_path):
    positions = (
        (-4096).to_bytes(3, "little", signed=True) + (1).to_bytes(3, "little") + (8_388_607).to_bytes(3, "little")
    )
    sh = bytes([0, 64, 128, 129, 192, 255, 128, 128, 128])
    content = header(2, 1, degree=1) + positions + bytes(1 + 3 + 3) + bytes([128, 128, 204]) + sh
    (tmp_path / "scene.spz").write_bytes(gzip.compress(content))
    read = read_spz(tmp_path / "scene.spz")
    np.testing.assert_allclose(read.means, [[-1, -1 / 4096, -8_388_607 / 4096]], rtol=1e-7)
    np.testing.assert_allclose(read.rotations, [[0.8, 0, 0, -0.6]], atol=0.005)
    # Bands along y and z change sign with their axes, the one along x does not.
    np.testing.assert_allclose(read.sh[0, 1:], [[1, 0.5, 0], [-1 / 128, -0.5, -127 / 128], [0, 0, 0]])


def test_version_3_rotations_by_hand():
    # w is left out: x = sqrt(1/2), y = -sqrt(1/2) * 256/511, z = 0
    packed = 3 << 30 | 511 << 20 | (512 | 256) << 10 | 0
    w, x, y, z = spz_packing.unpack_smallest_three(struct.pack("<I", packed))[0]
    np.testing.assert_allclose([x, y, z], [np.sqrt(0.5), -np.sqrt(0.5) * 256 / 511, 0], rtol=1e-6)
    np.testing.assert_allclose(w, np.sqrt(0.5 - 0.5 * (256 / 511) ** 2), rtol=1e-6)
    too_long = spz_packing.unpack_smallest_three(struct.pack("<I", 511 << 20 | 511 << 10 | 511))
    np.testing.assert_allclose(too_long, [[np.sqrt(0.5), 0, np.sqrt(0.5), np.sqrt(0.5)]], rtol=1e-6)


@pytest.mark.parametrize("degree", [0, 2])
def test_version_4_holds_the_attributes_of_version_3(tmp_path, degree):
    write_spz(random_gaussians(100, degree=degree), tmp_path / "three.spz")
    count, _, bits, attributes = content_of(tmp_path / "three.spz")
    (tmp_path / "four.spz").write_bytes(version_4(attributes, count, degree, bits=bits))
    assert_close(read_spz(tmp_path / "four.spz"), read_spz(tmp_path / "three.spz"), rtol=0, atol=0)


def test_an_empty_version_4(tmp_path):
    (tmp_path / "four.spz").write_bytes(version_4([], 0, 2))
    assert len(read_spz(tmp_path / "four.spz")) == 0


def extension(kind, content):
    return struct.pack("<II", kind, len(content)) + content


def with_axes(folder, system, seed=0):
    """The same bytes read without and with an extension that names their axes."""
    write_spz(random_gaussians(20, seed=seed), folder / "three.spz")
    count, degree, bits, attributes = content_of(folder / "three.spz")
    other = extension(0xADBE0002, bytes(12))  # one that we do not know comes first
    (folder / "four.spz").write_bytes(
        version_4(attributes, count, degree, other + extension(0xADBE0003, struct.pack("<I", system)), bits)
    )
    return read_spz(folder / "four.spz")


@pytest.mark.parametrize("system", range(1, 9))
def test_axes_of_an_extension(tmp_path, system):
    """Positions, shapes and colours turn together, whatever the axes were."""
    right_down_front = with_axes(tmp_path, RDF)  # as stored
    read = with_axes(tmp_path, system)
    flips = np.array([1, 1, 1], np.float32)
    for axis, (name, letter) in enumerate(zip("RDF", ("LRLRLRLR", "DDUUDDUU", "BBBBFFFF"), strict=True)):
        flips[axis] = 1 if letter[system - 1] == name else -1
    np.testing.assert_array_equal(read.means, right_down_front.means * flips)
    np.testing.assert_allclose(covariances(read), covariances(right_down_front) * np.outer(flips, flips), atol=1e-6)
    eye = np.array([0.3, 5, -2], np.float32)
    np.testing.assert_allclose(
        sh_colors(read.sh, read.means, eye * flips),
        sh_colors(right_down_front.sh, right_down_front.means, eye),
        atol=1e-5,
    )


def covariances(gaussians):
    w, x, y, z = gaussians.rotations.T.astype(np.float64)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    local = np.array(rows).transpose(2, 0, 1) * gaussians.scales[:, None, :]
    return local @ local.transpose(0, 2, 1)


def test_axes_are_y_up_without_an_extension(tmp_path):
    assert_close(with_axes(tmp_path, 0), with_axes(tmp_path, RUB), rtol=0, atol=0)
    assert_close(read_spz(tmp_path / "three.spz"), with_axes(tmp_path, RUB), rtol=0, atol=0)


def test_axes_behind_a_gzip_stream(tmp_path):
    write_spz(random_gaussians(20), tmp_path / "scene.spz")
    content = bytearray(gzip.decompress((tmp_path / "scene.spz").read_bytes()))
    content[14] = 2
    content += extension(0xADBE0003, struct.pack("<I", RDF))
    (tmp_path / "turned.spz").write_bytes(gzip.compress(content))
    turned, plain = read_spz(tmp_path / "turned.spz"), read_spz(tmp_path / "scene.spz")
    np.testing.assert_array_equal(turned.means, plain.means * [1, -1, -1])


def test_unsupported_axes_are_refused(tmp_path):
    with pytest.raises(SceneError, match=r"four\.spz: stored with axis system 12, .* only 1 to 8 .* with y up or down"):
        with_axes(tmp_path, 12)


ONE = [bytes(9), bytes(1), bytes(3), bytes(3), bytes(4)]
WRONG = [
    (b"", r"starts with b''; an SPZ file starts with"),
    (b"ply\n", r"starts with b'ply\\n'; an SPZ"),
    (gzip.compress(b"NGSP"), r"ends inside the SPZ header of 16 bytes"),
    (gzip.compress(b"PSGN" + bytes(12)), r"the gzip stream holds b'PSGN'"),
    (gzip.compress(header(5, 1)), r"SPZ version 5 is not known, only 1 to 4"),
    (gzip.compress(header(0, 1)), r"SPZ version 0 is not known"),
    (gzip.compress(header(4, 1)), r"SPZ version 4 inside gzip"),
    (gzip.compress(header(3, 1, degree=4)), r"SH degree 4 is not supported; export with degree 0 to 3"),
    (gzip.compress(header(3, 1, bits=31)), r"31 fractional bits of 24 make no sense"),
    (gzip.compress(header(3, 1)), r"ends 9 bytes too early"),
    (gzip.compress(header(3, 1) + bytes(18)), r"ends 2 bytes too early"),
    (gzip.compress(header(3, 2**32 - 1)), r"announces 4294967295 Gaussians, which files of \d+ bytes cannot hold"),
    (gzip.compress(header(3, 10_000_000)), r"announces 10000000 Gaussians"),
    (gzip.compress(header(3, 1) + bytes(range(20)))[:30], r"the gzip stream is truncated or damaged"),
    (b"\x1f\x8b\x09" + bytes(20), r"cannot be read: Unknown compression method"),
    (header(3, 1) + bytes(16), r"SPZ version 3 must be gzipped, this file is plain"),
    (header(4, 1)[:12], r"ends inside the SPZ header"),
    (header(4, 1) + bytes(3), r"0 streams with their table at byte 0 of 19, expected 5"),
    (version_4(ONE, 1, streams=6), r"6 streams with"),
    (version_4(ONE, 1, offset=31), r"table at byte 31 of"),
    (version_4(ONE, 1, offset=10**6), r"table at byte 1000000 of"),
    (version_4(ONE, 1, table=[1, 9, 1, 1, 1, 3, 1, 3, 1, 5]), r"table of streams says \(9, 1, 3, 3, 5\) bytes"),
    (version_4(ONE, 1, table=[2**60, 9, 1, 1, 1, 3, 1, 3, 1, 4]), r"the file is truncated or damaged"),
    (
        version_4([bytes(8), *ONE[1:]], 1, table=[17, 9, 10, 1, 12, 3, 12, 3, 13, 4]),
        r"zstd stream holds 8 bytes, expected 9",
    ),
    (version_4(ONE, 1, table=[3, 9, 1, 1, 1, 3, 1, 3, 1, 4]), r"zstd stream holds 0 bytes, expected 9"),
    (version_4(ONE, 1).replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"), r"a zstd stream is damaged"),
]


@pytest.mark.parametrize(("content", "message"), WRONG, ids=[message for _, message in WRONG])
def test_damaged_spz_is_refused(tmp_path, content, message):
    (tmp_path / "bad.spz").write_bytes(content)
    with pytest.raises(SceneError, match=rf"bad\.spz: .*{message}"):
        read_spz(tmp_path / "bad.spz")


def test_a_missing_file(tmp_path):
    with pytest.raises(SceneError, match=r"nowhere\.spz: cannot be read: No such file"):
        read_spz(tmp_path / "nowhere.spz")


def test_version_4_without_zstd(tmp_path, monkeypatch):
    content = version_4(ONE, 1)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    (tmp_path / "four.spz").write_bytes(content)
    with pytest.raises(SceneError, match=r"four\.spz: SPZ version 4 needs zstd; .*: pip install backports\.zstd"):
        read_spz(tmp_path / "four.spz")


def test_positions_too_far_away_are_not_written(tmp_path):
    made = random_gaussians(3)
    made = with_values(made, "means", (1, 2), 1e7)
    with pytest.raises(
        SceneError, match=r"far\.spz: a position of 1e\+07 does not fit .* within ±8388607 or write a PLY"
    ):
        write_spz(made, tmp_path / "far.spz")
    assert not list(tmp_path.iterdir())


def test_nan_is_not_written(tmp_path):
    made = random_gaussians(3)
    made = with_values(made, "sh", (1, 2), np.nan)
    with pytest.raises(HushsplatError, match=r"nan\.spz: .*Gaussian 1 is nan"):
        write_spz(made, tmp_path / "nan.spz")
    assert not list(tmp_path.iterdir())


def test_a_gzip_bomb_is_read_no_further_than_needed(tmp_path):
    content = header(3, 1) + bytes(20) + bytes(50_000_000)
    read = read_hostile(read_spz, tmp_path / "bomb.spz", gzip.compress(content), bytes_per_byte=8)
    assert len(read) == 1


def test_memory_comes_with_the_bytes_and_not_with_the_count(tmp_path):
    content = gzip.compress(header(3, 700_000) + bytes(100))
    assert read_hostile(read_spz, tmp_path / "bad.spz", content) is None


def test_a_zstd_bomb_is_read_no_further_than_needed(tmp_path):
    positions = zstd_module().compress(bytes(100_000_000))
    packed = [positions, *map(zstd_module().compress, ONE[1:])]
    table = [size for pair in zip(packed, ONE, strict=True) for size in map(len, pair)]
    content = header(4, 1, streams=5) + struct.pack("<I12x10Q", 32, *table) + b"".join(packed)
    assert len(read_hostile(read_spz, tmp_path / "bomb.spz", content)) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def good(folder):
    """A small file of version 3 as it is inside gzip, and one of version 4."""
    write_spz(random_gaussians(20, degree=1), folder / "good.spz")
    count, degree, bits, attributes = content_of(folder / "good.spz")
    axes = extension(0xADBE0003, struct.pack("<I", RDF))
    return gzip.decompress((folder / "good.spz").read_bytes()), version_4(attributes, count, degree, axes, bits)


@quick
@given(content=st.binary(max_size=2000), start=st.sampled_from([b"", b"\x1f\x8b\x08", b"NGSP", b"NGSP\x04\0\0\0"]))
@example(content=b"", start=b"")
def test_random_bytes(folder, content, start):
    assert read_hostile(read_spz, folder / "bad.spz", start + content) is None


@quick
@given(content=st.binary(max_size=2000), version=st.integers(1, 4), count=st.integers(0, 60), degree=st.integers(0, 4))
def test_random_attributes(folder, content, version, count, degree):
    read_hostile(read_spz, folder / "bad.spz", gzip.compress(header(version, count, degree) + content))


@quick
@given(share=st.floats(0, 1, exclude_max=True), which=st.sampled_from(["gzip", "inside gzip", "zstd"]))
def test_cut_anywhere(folder, good, share, which):
    content = good[1] if which == "zstd" else good[0] if which == "inside gzip" else gzip.compress(good[0])
    content = content[: int(share * len(content))]
    read = read_hostile(read_spz, folder / "bad.spz", gzip.compress(content) if which == "inside gzip" else content)
    assert read is None or which == "gzip"  # all attributes may be there without the end of the gzip stream


@quick
@given(
    which=st.integers(0, 1), changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6)
)
def test_changed_bytes(folder, good, which, changes):
    content = bytearray(good[which])
    for where, value in changes:
        content[int(where**3 * (len(content) - 1))] = value  # more of them in the header
    read_hostile(read_spz, folder / "bad.spz", bytes(content) if which else gzip.compress(content))


@quick
@given(fields=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), *[st.integers(0, 255)] * 4))
def test_changed_headers(folder, good, fields):
    start = struct.pack("<4sIIBBBB", b"NGSP", *fields)
    read_hostile(read_spz, folder / "bad.spz", gzip.compress(start + good[0][16:]))
    read_hostile(read_spz, folder / "bad.spz", start + good[1][16:])


@pytest.mark.real_data
def test_axes_agree_with_the_ply_of_the_same_scene(real_data):
    """One scene in both formats: its axes, rotations and colours agree within the steps of SPZ."""
    from_spz = read_spz(real_data / "biker" / "biker.spz")
    from_ply = read_ply(real_data / "biker" / "biker.compressed.ply")
    assert len(from_spz) == len(from_ply) == 152_746
    np.testing.assert_allclose(from_spz.means, from_ply.means, atol=2.0**-12)
    np.testing.assert_allclose(from_spz.opacities, from_ply.opacities, atol=1e-6)
    np.testing.assert_allclose(from_spz.sh, from_ply.sh, atol=0.0135)
    assert np.abs((from_spz.rotations * from_ply.rotations).sum(axis=1)).min() > 1 - 1e-5
    held = from_ply.scales > np.exp(-10)
    assert held.mean() > 0.99
    np.testing.assert_allclose(np.log(from_spz.scales[held]), np.log(from_ply.scales[held]), atol=0.0325)


def test_the_constants_of_this_file():
    assert spz_packing.RUB == RUB and spz.HEADER.size == 16
