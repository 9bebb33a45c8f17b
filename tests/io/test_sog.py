"""SOG: the pixels by hand, round trips, levels of detail, and bundles of strangers."""

import copy
import json
import struct
import tracemalloc
import zipfile
from io import BytesIO

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from made_scenes import assert_close, assert_usable, random_gaussians, read_hostile, with_values
from PIL import Image

from hushsplat.io.scenes import sog, sog_write
from hushsplat.io.scenes.sog import read_sog
from hushsplat.io.scenes.sog_stream import read_streamed_sog
from hushsplat.io.scenes.sog_write import write_sog
from hushsplat.types.errors import HushsplatError, SceneError
from hushsplat.types.gaussians import Gaussians

pytestmark = pytest.mark.filterwarnings("error")
quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def webp(pixels, **options):
    """A picture of rows of RGB or RGBA pixels."""
    content = BytesIO()
    options = {"lossless": True, "exact": True, **options}
    Image.fromarray(np.asarray(pixels, np.uint8)).save(content, "WEBP", **options)
    return content.getvalue()


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def bundle(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def unpack(members, folder):
    folder.mkdir(parents=True)
    for name, content in members.items():
        (folder / name).write_bytes(content)


def in_written_order(gaussians):
    return gaussians.take(sog_write.morton_order(gaussians.means))


def assert_quantised(read, made):
    """Equal but for SOG's steps; with few Gaussians each has its own palette entry."""
    extent = np.ptp(np.sign(made.means) * np.log1p(np.abs(made.means)), axis=0)
    step = extent / 65535 * (1 + np.abs(made.means))  # the slope of the logarithm
    assert (np.abs(read.means - made.means) <= 0.5001 * step + 1e-6).all()
    assert_codebook(np.log(read.scales), np.log(made.scales))
    assert_codebook(read.sh[:, 0], made.sh[:, 0])
    if made.sh_degree:
        assert_codebook(read.sh[:, 1:], made.sh[:, 1:])
    np.testing.assert_allclose(read.opacities, made.opacities, atol=0.5 / 255 + 1e-6)
    # Three components are off by half a step of sqrt(2)/255, the largest one by at most as much as all of them.
    difference = np.minimum(*(np.linalg.norm(read.rotations - sign * made.rotations, axis=1) for sign in (1, -1)))
    assert difference.max() < 0.01


def assert_codebook(read, made):
    """256 values for all: the mean error of the best even codebook, and no outlier far from it."""
    assert len(np.unique(read)) <= 256
    error = np.abs(read - made)
    assert error.max() < np.ptp(made) / 50 and np.sqrt((error**2).mean()) < np.ptp(made) / 256 / np.sqrt(12) * 1.05


@pytest.mark.parametrize("surfels", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_round_trip(tmp_path, degree, surfels):
    made = random_gaussians(400, degree=degree, surfels=surfels)
    write_sog(made, tmp_path / "scene.sog")
    read = read_sog(tmp_path / "scene.sog")
    assert_usable(read)
    assert read.sh_degree == degree and read.is_surfels == surfels and read.payload is None
    assert_quantised(read, in_written_order(made))


def test_surfels_are_thin_ellipsoids_for_other_readers(tmp_path):
    made = random_gaussians(100, surfels=True)
    write_sog(made, tmp_path / "scene.sog")
    members = members_of(tmp_path / "scene.sog")
    meta = json.loads(members["meta.json"])
    assert meta.pop("model") == "2dgs"
    read = read_sog(bundle(tmp_path / "untagged.sog", {**members, "meta.json": meta}))
    assert not read.is_surfels
    np.testing.assert_allclose(read.scales[:, 2], 1e-6, rtol=1e-5)
    np.testing.assert_array_equal(read.scales[:, :2], read_sog(tmp_path / "scene.sog").scales)


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65])
@pytest.mark.parametrize("degree", [0, 2])
def test_small_counts(tmp_path, count, degree):
    made = random_gaussians(count, degree=degree)
    write_sog(made, tmp_path / "scene.sog")
    read = read_sog(tmp_path / "scene.sog")
    assert len(read) == count and read.sh_degree == degree
    if count:
        np.testing.assert_allclose(read.means, in_written_order(made).means, atol=2e-3)


def test_a_constant_scene_is_exact(tmp_path):
    """Few different values have an entry each."""
    one = random_gaussians(1, degree=1)
    made = one.take(np.zeros(300, np.int64))
    write_sog(made, tmp_path / "scene.sog")
    read = read_sog(tmp_path / "scene.sog")
    np.testing.assert_allclose(read.means, made.means, rtol=1e-6)
    np.testing.assert_allclose(read.scales, made.scales, rtol=1e-6)
    np.testing.assert_array_equal(read.sh, made.sh)


def test_extreme_values(tmp_path):
    made = random_gaussians(50, degree=0)
    made = with_values(made, "means", 0, [1e30, -1e30, 1e-30])
    made = with_values(made, "scales", 1, [1e-30, 1e30, 0])
    made = with_values(made, "opacities", np.s_[:2], [0, 1])
    write_sog(made, tmp_path / "scene.sog")
    read = read_sog(tmp_path / "scene.sog")
    assert_usable(read)
    np.testing.assert_allclose(np.abs(read.means).max(axis=0)[:2], [1e30, 1e30], rtol=1e-3)
    np.testing.assert_allclose([read.scales.min(), read.scales.max()], [1e-12, 1e30], rtol=1e-4)


def test_the_same_scene_makes_the_same_file(tmp_path):
    for name in "ab":
        write_sog(random_gaussians(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}  # not the time of day


def test_neighbours_in_space_become_neighbours():
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
    random = np.random.default_rng(0)
    points = np.repeat(corners, 20, axis=0) * 10 + random.uniform(size=(160, 3)).astype(np.float32)
    ordered = points[random.permutation(160)]
    ordered = ordered[sog_write.morton_order(ordered)]
    octants = ordered > 5
    assert (octants.reshape(8, 20, 3) == octants.reshape(8, 20, 3)[:, :1]).all()


def codebook(start, step):
    return [start + step * index for index in range(256)]


def by_hand():
    """Two Gaussians with SH of degree 1, written out from the specification."""
    labels = np.zeros((1, 4, 3))
    labels[0, :2] = [[1, 0, 9], [64, 0, 9]]
    centroids = np.zeros((2, 192, 3))
    centroids[0, 3:6] = [[10, 20, 30], [11, 21, 31], [12, 22, 32]]  # entry 1
    centroids[1, :3] = [[40, 50, 60], [41, 51, 61], [42, 52, 62]]  # entry 64
    meta = {
        "version": 2,
        "count": 2,
        "means": {"mins": [-1, 0, 0], "maxs": [1, 2, 0.5], "files": ["low", "high"]},
        "scales": {"codebook": codebook(-10, 0.05), "files": ["scales"]},
        "quats": {"files": ["quats"]},
        "sh0": {"codebook": codebook(-1, 0.01), "files": ["sh0"]},
        "shN": {"count": 65, "bands": 1, "codebook": codebook(-0.5, 0.005), "files": ["centroids", "labels"]},
    }
    return {
        "meta.json": meta,
        "low": webp([[[0, 255, 0xFF], [255, 0, 0]]]),
        "high": webp([[[0, 255, 0x7F], [255, 0, 0]]]),
        "scales": webp([[[0, 100, 200], [255, 1, 2]]]),
        "quats": webp([[[128, 255, 127, 252], [0, 128, 128, 254]]]),
        "sh0": webp([[[0, 100, 200, 51], [1, 2, 3, 0]]]),
        "centroids": webp(centroids),
        "labels": webp(labels),
    }


def test_pixels_by_hand(tmp_path):
    read = read_sog(bundle(tmp_path / "scene.sog", by_hand()))
    half = np.expm1(0.5 * 0x7FFF / 65535)
    np.testing.assert_allclose(read.means, [[-np.expm1(1), np.expm1(2), half], [np.expm1(1), 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(read.scales, np.exp([[-10, -5, 0], [2.75, -9.95, -9.9]]), rtol=1e-5)
    np.testing.assert_allclose(read.rotations[0], [np.sqrt(0.5), 0, np.sqrt(0.5), 0], atol=0.005)  # w is left out
    np.testing.assert_allclose(read.rotations[1], [-np.sqrt(0.5), 0, np.sqrt(0.5), 0], atol=0.005)  # y is left out
    np.testing.assert_allclose(read.opacities, [0.2, 0])
    np.testing.assert_allclose(read.sh[:, 0], [[-1, 0, 1], [-0.99, -0.98, -0.97]], atol=1e-6)
    first = [[-0.45, -0.4, -0.35], [-0.445, -0.395, -0.345], [-0.44, -0.39, -0.34]]
    np.testing.assert_allclose(read.sh[:, 1:], [first, np.add(first, 0.15)], atol=1e-6)


def test_a_quaternion_that_is_too_long(tmp_path):
    members = {**by_hand(), "quats": webp([[[255, 255, 0, 253], [128, 128, 128, 252]]])}
    read = read_sog(bundle(tmp_path / "scene.sog", members))
    np.testing.assert_allclose(read.rotations[0], np.array([1, 0, 1, -1]) / np.sqrt(3), rtol=1e-6)


def test_a_folder_its_meta_and_its_bundle_are_the_same(tmp_path):
    write_sog(random_gaussians(100), tmp_path / "scene.sog")
    members = members_of(tmp_path / "scene.sog")
    unpack(members, tmp_path / "folder")
    read = read_sog(str(tmp_path / "scene.sog"))
    assert_close(read_sog(tmp_path / "folder"), read, rtol=0, atol=0)
    assert_close(read_sog(tmp_path / "folder" / "meta.json"), read, rtol=0, atol=0)
    assert_close(read_sog(bundle(tmp_path / "deflated", members, zipfile.ZIP_DEFLATED)), read, rtol=0, atol=0)


def test_a_codebook_that_starts_with_null(tmp_path):
    members = by_hand()
    members["meta.json"]["sh0"]["codebook"][0] = None
    read = read_sog(bundle(tmp_path / "scene.sog", members))
    np.testing.assert_allclose(read.sh[0, 0], [-0.99 - 2.54 / 255, 0, 1], atol=1e-6)


def changed(path, value):
    """A change of meta.json: the value at a path of keys; `...` deletes it."""

    def change(members):
        *parents, last = path
        record = members["meta.json"]
        for key in parents:
            record = record[key]
        if value is ...:
            del record[last]
        else:
            record[last] = value

    return change


def picture(name, content):
    def change(members):
        members[name] = content

    return change


LOSSY = webp(np.zeros((1, 2, 3)), lossless=False, exact=False)
TWO_IN_ONE = LOSSY + webp(np.zeros((1, 2, 3)))[12:]  # a decoder takes the first, its size is not that of the second
HUGE = b"RIFF\x1e\0\0\0WEBPVP8L\x11\0\0\0\x2f" + struct.pack("<I", 16382 | 16382 << 14) + bytes(20)
WRONG = [
    (changed(["version"], ...), r"meta\.json: version is missing: SOG version 1 is not read; convert it with splat-tr"),
    (changed(["version"], 3), r"meta\.json: version is 3, expected 2"),
    (changed(["count"], ...), r"meta\.json: count is missing"),
    (changed(["count"], -1), r"count is -1, expected an integer from 0 to 80000000"),
    (changed(["count"], 2.0), r"count is 2\.0, expected an integer"),
    (changed(["count"], True), r"count is True, expected an integer"),
    (changed(["count"], 10**400), r"count is a huge integer, expected"),
    (changed(["count"], "x" * 500), r"count is 'x{56}\.\.\., expected"),
    (changed(["count"], 80_000_000), r"announces 80000000 Gaussians, which files of \d+ bytes cannot hold"),
    (changed(["count"], 3), r"low: has 2×1 pixels, expected 3 to 4102"),
    (changed(["means"], [1]), r"means is a list of 1, expected an object"),
    (changed(["means", "mins"], [0, 1]), r"means: mins is a list of 2, expected a list of 3 numbers"),
    (changed(["means", "mins"], [0, 1, 2, 3]), r"means: mins is a list of 4, expected a list of 3 numbers"),
    (changed(["means", "mins"], [0, 1, 1e300]), r"mins is 1e\+300, expected only numbers within ±80"),
    (changed(["means", "mins"], [0, 1, 10**400]), r"mins is a huge integer, expected only numbers within ±80"),
    (changed(["means", "maxs"], [0, 1, float("nan")]), r"maxs is nan, expected only"),
    (changed(["means", "files"], ["low"]), r"means: files is a list of 1, expected a list of 2 names"),
    (changed(["means", "files"], ["low", {}]), r"means: files is an object, expected only names"),
    (changed(["scales", "codebook"], codebook(0, 1)[:255]), r"codebook is a list of 255, expected a list of 256"),
    (changed(["scales", "codebook"], None), r"scales: codebook is missing, expected a list of 256 numbers"),
    (changed(["sh0", "codebook", 7], None), r"sh0: codebook is null, expected only numbers within ±1e\+06"),
    (changed(["quats", "files"], ["../quats"]), r"quats: the file name '\.\./quats' is no path inside"),
    (changed(["quats", "files"], ["/etc/passwd"]), r"the file name '/etc/passwd' is no path inside"),
    (changed(["quats", "files"], ["a\\..\\b"]), r"the file name .* is no path inside"),
    (changed(["quats", "files"], ["C:quats"]), r"the file name 'C:quats' is no path inside"),
    (changed(["quats", "files"], ["a\nb"]), r"the file name 'a\\nb' is no path inside"),
    (changed(["quats", "files"], [""]), r"the file name '' is no path inside"),
    (changed(["quats", "files"], ["q" * 201]), r"the file name 'q{60}' is no path inside"),
    (changed(["quats", "files"], ["other"]), r"has no other; the bundle is incomplete"),
    (changed(["shN", "bands"], 4), r"shN: bands is 4, expected an integer from 1 to 3"),
    (changed(["shN", "bands"], 2), r"centroids: is 192 pixels wide, expected 512 for 2 SH bands"),
    (changed(["shN", "count"], 64), r"labels: the label of Gaussian 1 is 64, but the palette has 64 entries"),
    (changed(["shN", "count"], 65537), r"shN: count is 65537, expected an integer from 1 to 65536"),
    (picture("low", b""), r"low: is not a WebP picture"),
    (picture("low", webp(np.zeros((1, 2, 3)))[:-9]), r"low: the WebP picture is damaged"),
    (picture("low", LOSSY), r"low: is not a lossless still WebP picture; SOG needs exact pixels"),
    (picture("low", TWO_IN_ONE), r"low: is not a lossless still"),
    (picture("low", HUGE), r"low: has 16383×16383 pixels, expected 2 to 4100; the picture is damaged"),
    (picture("low", bytes(100_000)), r"low has 100000 bytes, expected at most 81936"),
    (picture("quats", webp(np.full((1, 2, 4), 251))), r"quats: alpha of Gaussian 0 is 251, expected 252 to 255"),
    (picture("meta.json", b"{"), r"meta\.json: is not JSON: Expecting"),
    (picture("meta.json", b"\xff\xfe"), r"meta\.json: is not JSON"),
    (picture("meta.json", b"[" * 200_000), r"meta\.json: is not JSON: maximum recursion"),
    (picture("meta.json", b"9" * 10_000), r"meta\.json: is not JSON: Exceeds the limit"),
    (picture("meta.json", b"[]"), r"meta\.json: holds a list of 0, expected a JSON object"),
    (picture("meta.json", b" " * (4 << 20) + b"{}"), r"meta\.json has 4194306 bytes, expected at most 4194304"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_damaged_sog_is_refused(tmp_path, change, message):
    members = by_hand()
    change(members)
    with pytest.raises(SceneError, match=rf"bad\.sog.*: {message}") as raised:
        read_sog(bundle(tmp_path / "bad.sog", members))
    assert "\n" not in str(raised.value)


def test_animations_are_refused(tmp_path):
    frames = [Image.fromarray(np.full((1, 2, 3), level, np.uint8)) for level in (0, 255)]
    content = BytesIO()
    frames[0].save(content, "WEBP", lossless=True, save_all=True, append_images=frames[1:])
    with pytest.raises(SceneError, match=r"sh0: is not a lossless still WebP picture"):
        read_sog(bundle(tmp_path / "bad.sog", {**by_hand(), "sh0": content.getvalue()}))


def test_a_picture_with_metadata_is_read(tmp_path):
    plain = read_sog(bundle(tmp_path / "plain.sog", by_hand()))
    low = webp([[[0, 255, 0xFF], [255, 0, 0]]], xmp=b"<x/>")
    assert low[12:16] == b"VP8X"
    assert_close(read_sog(bundle(tmp_path / "scene.sog", {**by_hand(), "low": low})), plain, rtol=0, atol=0)


def test_missing_files(tmp_path):
    with pytest.raises(SceneError, match=r"nowhere\.sog: cannot be read: No such file"):
        read_sog(tmp_path / "nowhere.sog")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SceneError, match=r"folder.meta\.json: no such file; a SOG scene needs its meta\.json and all"):
        read_sog(tmp_path / "folder")
    (tmp_path / "folder" / "meta.json").write_text(json.dumps(by_hand()["meta.json"]))
    with pytest.raises(SceneError, match=r"folder.\w+: no such file"):
        read_sog(tmp_path / "folder")


def test_a_file_that_is_too_large_in_a_folder(tmp_path):
    members = by_hand()
    unpack({**members, "meta.json": json.dumps(members["meta.json"]).encode(), "sh0": bytes(100_000)}, tmp_path / "a")
    with pytest.raises(SceneError, match=r"a.sh0 has 100000 bytes, expected at most 81936"):
        read_sog(tmp_path / "a")


def test_not_a_zip(tmp_path):
    (tmp_path / "bad.sog").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(SceneError, match=r"bad\.sog: is not a SOG bundle \(a zip file\): File is not a zip file"):
        read_sog(tmp_path / "bad.sog")


def test_unknown_compression(tmp_path):
    bundle(tmp_path / "bad.sog", by_hand(), zipfile.ZIP_LZMA)
    with pytest.raises(SceneError, match=r"bad\.sog: meta\.json is encrypted or compressed in an unknown way"):
        read_sog(tmp_path / "bad.sog")


def test_a_damaged_member(tmp_path):
    content = bytearray(bundle(tmp_path / "bad.sog", by_hand()).read_bytes())
    content[content.index(b"RIFF") + 9] ^= 1
    (tmp_path / "bad.sog").write_bytes(content)
    with pytest.raises(SceneError, match=r"bad\.sog: low is damaged: Bad CRC-32"):
        read_sog(tmp_path / "bad.sog")


def test_zip_bomb_with_its_true_size_is_refused(tmp_path):
    members = {**by_hand(), "low": bytes(30_000_000)}
    content = bundle(tmp_path / "bomb.sog", members, zipfile.ZIP_DEFLATED).read_bytes()
    assert read_hostile(read_sog, tmp_path / "bomb.sog", content) is None


def test_zip_bomb_with_a_false_size_is_refused(tmp_path):
    bundle(tmp_path / "bomb.sog", {**by_hand(), "low": bytes(30_000_000)}, zipfile.ZIP_DEFLATED)
    content = (tmp_path / "bomb.sog").read_bytes().replace(struct.pack("<I", 30_000_000), struct.pack("<I", 1000))
    assert read_hostile(read_sog, tmp_path / "bomb.sog", content) is None


def test_a_picture_bomb(tmp_path):
    """A count that goes with pictures of millions of equal pixels in a few bytes."""
    members = by_hand()
    members["meta.json"]["count"] = 4_000_000
    for name in ("low", "high", "scales", "sh0", "labels"):
        members[name] = webp(np.zeros((2000, 2000, 3)))
    content = bundle(tmp_path / "bomb.sog", members).read_bytes()
    assert len(content) < 50_000 and read_hostile(read_sog, tmp_path / "bomb.sog", content) is None


@pytest.mark.parametrize("padding", [0, 1 << 20])
def test_a_picture_bomb_below_the_free_count_and_with_padding(tmp_path, padding):
    """Equal pixels in a few bytes: neither a low count nor zeros behind the pictures make them a scene."""
    members = by_hand()
    members["meta.json"]["count"] = count = 500 * 480
    for name in ("low", "high", "scales", "sh0", "labels"):
        members[name] = webp(np.zeros((480, 500, 3))) + bytes(padding)
    members["quats"] = webp(np.full((480, 500, 4), 252))
    path = bundle(tmp_path / "bomb.sog", members)
    tracemalloc.start()
    try:
        with pytest.raises(SceneError, match=rf"announces {count} Gaussians, which files of \d+ bytes cannot hold"):
            read_sog(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * path.stat().st_size + 1_000_000  # what was read, nothing decoded


def test_many_small_files_make_no_bomb_together(streamed):
    """Files of a streamed scene that are no bombs each."""
    path = streamed[0]
    members = by_hand()
    count = members["meta.json"]["count"] = 300 * 200
    for name in ("low", "high", "scales", "sh0", "labels"):
        members[name] = webp(np.zeros((200, 300, 3)))
    members["quats"] = webp(np.full((200, 300, 4), 252))
    members["meta.json"] = json.dumps(members["meta.json"]).encode()
    leaves = []
    for index in range(6):
        unpack(members, path.parent / f"part{index}")
        leaves.append({"lods": {"0": {"file": index, "offset": 0, "count": count}}})
    names = [f"part{index}/meta.json" for index in range(6)]
    with pytest.raises(SceneError, match=r"announces \d+ Gaussians, which files of"):
        read_level(streamed, 0, filenames=names, tree={"children": leaves})
    assert len(read_level(streamed, 0, filenames=names, tree={"children": leaves[:1]})) == count


def test_values_that_sog_cannot_hold_are_not_written(tmp_path, monkeypatch):
    made = random_gaussians(3)
    made = with_values(made, "means", (1, 2), np.inf)
    with pytest.raises(HushsplatError, match=r"bad\.sog: .*Gaussian 1 is inf"):
        write_sog(made, tmp_path / "bad.sog")
    made = with_values(made, "means", (1, 2), 1e38)
    with pytest.raises(SceneError, match=r"bad\.sog: a position of 1e\+38 is too far away for a SOG"):
        write_sog(made, tmp_path / "bad.sog")
    monkeypatch.setattr(sog_write, "MAX_COUNT", 2)
    with pytest.raises(SceneError, match=r"bad\.sog: a SOG bundle of 3 Gaussians is too large; write a PLY"):
        write_sog(made, tmp_path / "bad.sog")
    assert not list(tmp_path.iterdir())


# Levels of detail


@pytest.fixture
def streamed(tmp_path):
    """Level 0 in two files, level 1 in one, of which the tree leaves out some; and an environment."""
    parts = {}
    for seed, (name, count, degree) in enumerate([("0_0", 40, 1), ("0_1", 30, 1), ("1_0", 20, 1), ("sky", 5, 0)]):
        write_sog(random_gaussians(count, degree=degree, seed=seed), tmp_path / "part.sog")
        unpack(members_of(tmp_path / "part.sog"), tmp_path / "scene" / name)
        parts[name] = read_sog(tmp_path / "part.sog")
    leaves = [
        {"lods": {"0": {"file": 1, "offset": 25, "count": 15}, "1": {"file": 0, "offset": 12, "count": 8}}},
        {"lods": {"0": {"file": 1, "offset": 0, "count": 25}, "1": {"file": 0, "offset": 2, "count": 4}}},
        {"lods": {"0": {"file": 2, "offset": 0, "count": 30}}},
    ]
    meta = {
        "lodLevels": 3,
        "filenames": ["1_0/meta.json", "0_0/meta.json", "0_1/meta.json"],
        "tree": {"bound": {}, "children": [{"children": leaves[:2]}, leaves[2]]},
    }
    return tmp_path / "scene" / "lod-meta.json", meta, parts


def read_level(streamed, lod, **changes):
    path, meta, _ = streamed
    path.write_text(json.dumps({**meta, **changes}))
    return read_streamed_sog(path, lod)


def joined(*parts):
    arrays = ("means", "scales", "rotations", "opacities", "sh")
    return Gaussians(*(np.concatenate([getattr(part, name) for part in parts]) for name in arrays))


def test_levels_of_detail(streamed):
    parts = streamed[2]
    assert_close(read_level(streamed, 0), joined(parts["0_0"], parts["0_1"]), rtol=0, atol=0)
    some = np.r_[2:6, 12:20]
    assert_close(read_level(streamed, 1, version=1, environment=None), parts["1_0"].take(some), rtol=0, atol=0)


def test_the_environment_comes_with_every_level(streamed):
    read = read_level(streamed, 0, environment="sky/meta.json")
    assert len(read) == 75 and read.sh_degree == 1
    np.testing.assert_array_equal(read.means[70:], streamed[2]["sky"].means)
    assert not read.sh[70:, 1:].any()  # its harmonics end earlier


def leaf(key="0", **changes):
    return {"tree": {"lods": {key: {"file": 0, "offset": 0, "count": 20, **changes}}}}


WRONG_LEVELS = [
    ({}, 2, r"has no level of detail 2; choose one of 0 \(70 Gaussians\), 1 \(12 Gaussians\)\."),
    ({}, -1, r"has no level of detail -1; choose"),
    ({"tree": {}}, 0, r"has no level of detail 0; choose one of none: the scene is empty"),
    ({"version": 2}, 0, r"version is 2, expected 1 or none"),
    ({"lodLevels": 0}, 0, r"lodLevels is 0, expected an integer from 1 to 64"),
    ({"filenames": "x"}, 0, r"filenames is 'x', expected a list of names"),
    ({"filenames": ["1_0/meta.json", 3]}, 0, r"filenames is 3, expected only names"),
    ({"filenames": ["../meta.json"]}, 0, r"the file name '\.\./meta\.json' is no path inside the scene's folder"),
    ({"filenames": ["1_0/meta.json", "0_0/meta.json", "0_0/./meta.json"]}, 0, r"filenames names a file twice"),
    ({"tree": []}, 0, r"tree is a list of 0, expected an object"),
    ({"tree": {"children": [3]}}, 0, r"tree: children is a list of 1, expected a list of objects"),
    ({"tree": {"children": {}}}, 0, r"tree: children is an object, expected a list of objects"),
    ({"tree": {"lods": 3}}, 0, r"tree: lods is 3, expected an object"),
    (leaf("3"), 0, r"lods: names a level '3', expected 0 to 2"),
    (leaf("-1"), 0, r"lods: names a level '-1', expected 0 to 2"),
    (leaf("²"), 0, r"lods: names a level '²', expected 0 to 2"),
    (leaf("a\nb"), 0, r"lods: names a level 'a\\nb', expected 0 to 2"),
    (leaf(file=3), 0, r"lods: 0: file is 3, expected an integer from 0 to 2"),
    (leaf(offset=-1), 0, r"lods: 0: offset is -1, expected"),
    (leaf(count=21), 0, r"a run leaves its file 1_0/meta\.json"),
    (leaf(offset=10**7), 0, r"a run leaves its file 1_0/meta\.json"),
    (
        {"tree": {"children": [leaf()["tree"], leaf(offset=19, count=1)["tree"]]}},
        0,
        r"two runs of 1_0/meta\.json overlap at Gaussian 19",
    ),
    ({"environment": 3}, 0, r"environment is 3, expected the name of a file"),
    ({"environment": "/sky"}, 0, r"the file name '/sky' is no path"),
]


@pytest.mark.parametrize(("changes", "lod", "message"), WRONG_LEVELS, ids=[message for *_, message in WRONG_LEVELS])
def test_which_levels_are_refused(streamed, changes, lod, message):
    with pytest.raises(SceneError, match=rf"lod-meta\.json: .*{message}") as raised:
        read_level(streamed, lod, **changes)
    assert "\n" not in str(raised.value)


def test_levels_of_surfels_and_ellipsoids(streamed, tmp_path):
    write_sog(random_gaussians(5, surfels=True), tmp_path / "part.sog")
    unpack(members_of(tmp_path / "part.sog"), tmp_path / "scene" / "flat")
    with pytest.raises(SceneError, match=r"lod-meta\.json: some of its files hold surfels and some ellipsoids"):
        read_level(streamed, 0, environment="flat/meta.json")


# Bundles of strangers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def good(folder):
    write_sog(random_gaussians(20, degree=1), folder / "good.sog")
    return (folder / "good.sog").read_bytes()


@quick
@given(content=st.binary(max_size=2000), start=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06"]))
@example(content=b"", start=b"")
@example(content=bytes(18), start=b"PK\x05\x06")  # an empty archive
def test_random_bytes(folder, content, start):
    assert read_hostile(read_sog, folder / "bad.sog", start + content) is None


@quick
@given(share=st.floats(0, 1, exclude_max=True))
def test_cut_anywhere(folder, good, share):
    assert read_hostile(read_sog, folder / "bad.sog", good[: int(share * len(good))]) is None


changes_of_bytes = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6)


@quick
@given(changes=changes_of_bytes)
def test_changed_bytes(folder, good, changes):
    content = bytearray(good)
    for where, value in changes:
        content[int(where * (len(content) - 1))] = value
    read_hostile(read_sog, folder / "bad.sog", bytes(content))


@quick
@given(share=st.floats(0, 1), value=st.integers(0, 255), distance=st.integers(0, 1200))
def test_changed_directories(folder, good, share, value, distance):
    """The last kilobyte of a zip file says where everything is."""
    content = bytearray(good)
    content[max(0, len(content) - 1 - distance)] = value
    read_hostile(read_sog, folder / "bad.sog", bytes(content))


@quick
@given(name=st.integers(0, 6), changes=changes_of_bytes, share=st.floats(0, 1))
def test_changed_pictures(folder, good, name, changes, share):
    """Good archives of bad pictures: their checksums are right."""
    members = members_of(BytesIO(good))
    name = sorted(set(members) - {"meta.json"})[name]
    content = bytearray(members[name])
    for where, value in changes:
        content[int(where**2 * (len(content) - 1))] = value
    members[name] = bytes(content[: int((1 - share**4) * len(content))])
    read_hostile(read_sog, folder / "bad.sog", bundle(folder / "bad.sog", members).read_bytes())


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-2, 300)
    | st.floats()
    | st.sampled_from(["", "../x", "meta.json", "quats.webp", "sh0.webp", "shN_labels.webp", "\n", "\0", "2dgs"]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(["files", "0"]), children),
    max_leaves=4,
)


def mutated(data, record):
    """A copy of a JSON value with one of its parts replaced by anything or taken away."""
    record = copy.deepcopy(record)
    part = record
    while True:
        key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        if isinstance(part[key], (dict, list)) and part[key] and data.draw(st.booleans()):
            part = part[key]
            continue
        if data.draw(st.integers(0, 4)):
            part[key] = data.draw(anything)
        else:
            del part[key]
        return record


@quick
@given(data=st.data())
def test_changed_meta(folder, good, data):
    members = members_of(BytesIO(good))
    meta = json.loads(members["meta.json"])
    for _ in range(data.draw(st.integers(1, 2))):
        meta = mutated(data, meta)
        if not meta:
            break
    members["meta.json"] = json.dumps(meta).encode()
    read_hostile(read_sog, folder / "bad.sog", bundle(folder / "bad.sog", members).read_bytes())


@quick
@given(data=st.data())
def test_changed_levels(folder, good, data):
    scene = folder / "lod-meta.json of strangers"  # errors about its files name it too
    if not scene.exists():
        unpack(members_of(BytesIO(good)), scene / "0_0")
    run = {"file": 0, "offset": 0, "count": 20}
    tree = {"children": [{"lods": {"0": run}}, {"children": [{"lods": {"1": {**run, "file": 1}}}]}]}
    meta = {"version": 1, "lodLevels": 2, "filenames": ["0_0/meta.json"] * 2, "environment": None, "tree": tree}
    meta = mutated(data, meta)
    read_hostile(lambda path: read_streamed_sog(path, 0), scene / "lod-meta.json", json.dumps(meta).encode())


@quick
@given(content=st.binary(max_size=300) | st.text(alphabet='{}[]":,0123456789truefalsn ', max_size=300).map(str.encode))
def test_random_levels(folder, content):
    path = folder / "lod-meta.json"
    assert read_hostile(lambda path: read_streamed_sog(path, 0), path, content) is None


@pytest.mark.real_data
def test_real_levels(real_data):
    counts = [542_104, 210_422, 92_802, 26_895]
    for lod, count in enumerate(counts):
        read = read_streamed_sog(real_data / "flowers" / "lod-meta.json", lod)
        assert len(read) == count and read.sh_degree == 2
        assert_usable(read)


@pytest.mark.real_data
def test_real_scenes(real_data, tmp_path):
    read = read_sog(real_data / "playbot" / "2_0")
    assert len(read) == 125_000 and read.sh_degree == 2
    write_sog(read, tmp_path / "again.sog")
    again, ordered = read_sog(tmp_path / "again.sog"), in_written_order(read)
    np.testing.assert_allclose(again.means, ordered.means, atol=4e-5)
    assert np.sqrt(((again.sh - ordered.sh)[:, 1:] ** 2).mean()) < 0.05 * ordered.sh[:, 1:].std()
    assert len(read_sog(real_data / "showroom" / "3_1" / "meta.json")) == 213_189


def test_the_constants_of_this_file():
    assert sog.SLACK_PIXELS == 4096 and sog.FIRST_MODE == 252
