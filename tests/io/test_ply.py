"""Plain PLY scenes: round trips, the official layouts, every property order and type, and what is refused."""

import numpy as np
import plyfile
import pytest
from made_scenes import assert_close, assert_usable, random_gaussians, with_values

from hushsplat.io.scenes import ply
from hushsplat.io.scenes.ply import read_ply, write_ply
from hushsplat.io.scenes.ply_header import LONGEST_HEADER
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians


def official_table(count=30, scales=3, degree=3, seed=0):
    """Parameters as a trainer holds them, and the rows that it writes through plyfile."""
    random = np.random.default_rng(seed)
    names = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    names += [f"f_rest_{i}" for i in range(3 * ((degree + 1) ** 2 - 1))]
    names += ["opacity", *(f"scale_{i}" for i in range(scales)), *(f"rot_{i}" for i in range(4))]
    table = np.empty(count, [(name, "f4") for name in names])
    for name in names:
        table[name] = random.normal(size=count)
    return table


def write_table(table, path, **options):
    plyfile.PlyData([plyfile.PlyElement.describe(table, "vertex")], **options).write(str(path))


def expected(table, scales, degree):
    """The same rows activated, written out from the trainers' own load_ply."""

    def stack(*names):
        return np.stack([table[name].astype(np.float64) for name in names], axis=1)

    rest = stack(*(f"f_rest_{i}" for i in range(3 * ((degree + 1) ** 2 - 1)))) if degree else np.empty((len(table), 0))
    rest = rest.reshape(len(table), 3, -1)
    sh = np.concatenate([stack("f_dc_0", "f_dc_1", "f_dc_2")[:, :, None], rest], axis=2)
    rotations = stack("rot_0", "rot_1", "rot_2", "rot_3")
    return Gaussians(
        means=stack("x", "y", "z").astype(np.float32),
        scales=np.exp(stack(*(f"scale_{i}" for i in range(scales)))).astype(np.float32),
        rotations=(rotations / np.linalg.norm(rotations, axis=1, keepdims=True)).astype(np.float32),
        opacities=(1 / (1 + np.exp(-table["opacity"].astype(np.float64)))).astype(np.float32),
        sh=sh.transpose(0, 2, 1).astype(np.float32),
    )


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("scales", [2, 3])
@pytest.mark.parametrize("options", [{"byte_order": "<"}, {"byte_order": ">"}, {"text": True}])
def test_official_layout(tmp_path, scales, degree, options):
    table = official_table(scales=scales, degree=degree)
    write_table(table, tmp_path / "scene.ply", **options)
    gaussians = read_ply(tmp_path / "scene.ply")
    assert gaussians.is_surfels == (scales == 2) and gaussians.sh_degree == degree
    assert_close(gaussians, expected(table, scales, degree), rtol=5e-6 if "text" in options else 1e-6)


def test_any_order_any_types_and_extra_properties(tmp_path):
    table = official_table(degree=1)
    table["x"], table["f_dc_1"] = np.arange(30), 3
    wanted = expected(table, 3, 1)
    types = {name: "f8" for name in table.dtype.names[::-1]} | {"x": "u1", "f_dc_1": "i2"}
    shuffled = np.empty(30, [("red", "u1"), *types.items(), ("label", "i4"), ("f_extra_0", "f4")])
    for name in types:
        shuffled[name] = table[name]
    shuffled["f_extra_0"] = np.nan  # not ours, so not judged
    for byte_order in "<>":
        write_table(shuffled, tmp_path / "scene.ply", byte_order=byte_order)
        assert_close(read_ply(tmp_path / "scene.ply"), wanted)


def test_other_elements_are_skipped(tmp_path):
    table = official_table(degree=0)
    before = np.zeros(7, [("a", "f8"), ("b", "u1")])
    after = np.zeros(2, [("vertex_indices", "O")])
    after["vertex_indices"] = [np.arange(3)] * 2
    for options in ({"byte_order": "<"}, {"text": True}):
        elements = [("before", before), ("vertex", table), ("face", after)]
        described = [plyfile.PlyElement.describe(rows, name) for name, rows in elements]
        plyfile.PlyData(described, **options).write(str(tmp_path / "scene.ply"))
        assert_close(read_ply(tmp_path / "scene.ply"), expected(table, 3, 0), rtol=5e-6)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_line_ends_and_comments(tmp_path, newline):
    write_ply(random_gaussians(degree=0), tmp_path / "scene.ply")
    content = (tmp_path / "scene.ply").read_bytes()
    header, data = content[: -50 * 68], content[-50 * 68 :]
    header = header.replace(b"element", b"comment made by end_header\nobj_info x\nelement").replace(b"\n", newline)
    (tmp_path / "scene.ply").write_bytes(header + data)
    assert_close(read_ply(tmp_path / "scene.ply"), random_gaussians(degree=0))


@pytest.mark.parametrize("surfels", [False, True])
@pytest.mark.parametrize("payload", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_round_trip(tmp_path, surfels, payload, degree):
    gaussians = random_gaussians(surfels=surfels, degree=degree, payload=payload)
    write_ply(gaussians, tmp_path / "scene.ply")
    assert_close(read_ply(tmp_path / "scene.ply"), gaussians)


@pytest.mark.parametrize("rows", [1, 2, 49, 50, 51])
def test_round_trip_over_block_ends(tmp_path, monkeypatch, rows):
    gaussians = random_gaussians(degree=1, payload=True)
    monkeypatch.setattr(ply, "BLOCK_BYTES", rows * 4 * (3 + 3 + 12 + 1 + 3 + 4 + 10))
    write_ply(gaussians, tmp_path / "scene.ply")
    assert_close(read_ply(tmp_path / "scene.ply"), gaussians)


def test_other_readers_find_the_official_layout(tmp_path):
    gaussians = random_gaussians(surfels=True, degree=2, payload=True)
    write_ply(gaussians, tmp_path / "scene.ply")
    read = plyfile.PlyData.read(str(tmp_path / "scene.ply"))
    assert [element.name for element in read.elements] == ["vertex"]
    table = read["vertex"].data
    official = list(official_table(scales=2, degree=2).dtype.names)
    assert list(table.dtype.names) == official + [f"hush_{i}" for i in range(10)]
    assert all(table.dtype[name] == np.dtype("<f4") for name in table.dtype.names)
    assert not any(table[name].any() for name in ("nx", "ny", "nz"))
    np.testing.assert_array_equal(table["hush_9"], gaussians.payload[:, 9])
    np.testing.assert_array_equal(table["f_rest_8"], gaussians.sh[:, 1, 1])  # green begins after the 8 red ones
    content = (tmp_path / "scene.ply").read_bytes()
    assert len(content) == content.index(b"end_header\n") + 11 + len(gaussians) * table.dtype.itemsize


def test_extreme_values_are_written_finite(tmp_path):
    made = random_gaussians(4, degree=0)
    made = with_values(made, "opacities", ..., [0, 1, 1e-30, np.float32(1) - np.float32(6e-8)])
    made = with_values(made, "scales", 0, [0, 1e-40, 1e30])
    write_ply(made, tmp_path / "scene.ply")
    table = plyfile.PlyData.read(str(tmp_path / "scene.ply"))["vertex"].data
    assert all(np.isfinite(table[name]).all() for name in table.dtype.names)
    read = read_ply(tmp_path / "scene.ply")
    assert_usable(read)
    np.testing.assert_allclose(read.opacities, made.opacities, atol=1e-7)
    assert read.opacities[1] == 1
    np.testing.assert_allclose(read.scales[0], [1e-12, 1e-12, 1e30], rtol=1e-5)


def test_infinite_logits_and_log_scales_mean_their_limits(tmp_path):
    table = official_table(3, degree=0)
    table["opacity"] = [np.inf, -np.inf, 0]  # other converters write an opaque Gaussian so
    table["scale_2"] = [-np.inf, -1000, 0]
    write_table(table, tmp_path / "scene.ply")
    gaussians = read_ply(tmp_path / "scene.ply")
    np.testing.assert_array_equal(gaussians.opacities, np.float32([1, 0, 0.5]))
    np.testing.assert_array_equal(gaussians.scales[:, 2], np.float32([1e-12, 1e-12, 1]))


@pytest.mark.parametrize("options", [{"byte_order": "<"}, {"byte_order": ">"}, {"text": True}])
def test_an_empty_scene(tmp_path, options):
    write_table(official_table(0), tmp_path / "scene.ply", **options)
    assert len(read_ply(tmp_path / "scene.ply")) == 0
    write_ply(random_gaussians(0), tmp_path / "scene.ply")
    assert len(read_ply(tmp_path / "scene.ply")) == 0


MISSING = {
    "y": r"property 'y' is missing; a splat scene has x, y and z\.",
    "scale_0": r"property 'scale_0' is missing; a 2DGS scene has scale_0 and scale_1, a 3DGS scene also scale_2\.",
    "scale_1": r"property 'scale_1' is missing; a 2DGS scene has scale_0 and scale_1, a 3DGS scene also scale_2\.",
    "rot_2": r"property 'rot_2' is missing; a splat scene has rot_0 to rot_3, a quaternion wxyz\.",
    "opacity": r"property 'opacity' is missing; a splat scene has opacity\.",
    "f_dc_1": r"property 'f_dc_1' is missing; a splat scene has f_dc_0 to f_dc_2 and all f_rest_\* of its degree\.",
    "f_rest_4": r"property 'f_rest_4' is missing; a splat scene has f_dc_0",
    "f_rest_8": r"properties f_rest_0 to f_rest_7 make no whole degree .* expected 0, 9, 24 or 45 of them",
    "hush_3": r"property 'hush_3' is missing; a scene with a denoiser payload has hush_0 to hush_9\.",
}


@pytest.mark.parametrize("name", list(MISSING))
def test_a_missing_property_is_named(tmp_path, name):
    write_ply(random_gaussians(degree=1, payload=True), tmp_path / "garden.ply")
    content = (tmp_path / "garden.ply").read_bytes()
    changed = content.replace(b" %b\n" % name.encode(), b" other\n")
    assert changed != content
    (tmp_path / "garden.ply").write_bytes(changed)
    with pytest.raises(SceneError, match=r"garden\.ply: " + MISSING[name]):
        read_ply(tmp_path / "garden.ply")


def test_a_point_cloud_is_refused_as_one(tmp_path):
    write_table(np.zeros(5, [("x", "f4"), ("y", "f4"), ("z", "f4"), ("red", "u1")]), tmp_path / "cloud.ply")
    message = r"cloud\.ply: this PLY is a point cloud or a mesh, not a splat scene: its vertices have x, y, z, red, but"
    with pytest.raises(SceneError, match=message):
        read_ply(tmp_path / "cloud.ply")


HEADERS = {
    b"nothing": r"not a PLY file: it does not begin with a line 'ply'\.",
    b"plywood\nend_header\n": r"not a PLY file",
    b"ply\nformat ascii 1.0\n": r"the header has no end: no line 'end_header' in its first 21 bytes",
    b"ply\n" + b"comment x\n" * LONGEST_HEADER + b"end_header\n": f"no line 'end_header' in its first {LONGEST_HEADER}",
    b"ply\nelement vertex 0\nend_header\n": r"the header must have one line 'format', got 0;",
    b"ply\nformat ascii 1.0\nformat ascii 1.0\nend_header\n": r"must have one line 'format', got 2;",
    b"ply\nformat binary_middle_endian 1.0\nend_header\n": r"line 'format binary_middle_endian 1\.0' is not understood",
    b"ply\nformat ascii 1.0\nelement vertex -5\nend_header\n": r"header line 'element vertex -5' is not understood",
    b"ply\nformat ascii 1.0\nelement vertex 1e9\nend_header\n": r"header line 'element vertex 1e9' is not understood",
    b"ply\nformat ascii 1.0\nelement vertex 1" + b"0" * 99 + b"\nend_header\n": r"is not understood",
    b"ply\nformat ascii 1.0\nproperty float x\nend_header\n": r"header line 'property float x' is not understood",
    b"ply\nformat ascii 1.0\nelement vertex 1\nproperty half x\nend_header\n": r"'property half x' is not understood",
    b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty int x\nend_header\n": (
        r"property 'x' appears twice in element 'vertex'\."
    ),
    b"ply\nformat ascii 1.0\nelement a 1\nelement a 1\nend_header\n": r"two elements have the same name",
    b"ply\nformat ascii 1.0\nelement face 1\nend_header\n": r"element 'vertex' is missing; a splat scene has one",
}


@pytest.mark.parametrize("content", list(HEADERS), ids=range(len(HEADERS)))
def test_bad_headers(tmp_path, content):
    (tmp_path / "bad.ply").write_bytes(content)
    with pytest.raises(SceneError, match=r"bad\.ply: .*" + HEADERS[content]):
        read_ply(tmp_path / "bad.ply")


def changed_scene(tmp_path, old, new, **options):
    write_table(official_table(degree=0), tmp_path / "bad.ply", **options)
    content = (tmp_path / "bad.ply").read_bytes()
    assert content.count(old) == 1
    (tmp_path / "bad.ply").write_bytes(content.replace(old, new))
    return tmp_path / "bad.ply"


def test_too_many_vertices_for_the_file(tmp_path):
    path = changed_scene(tmp_path, b"vertex 30", b"vertex 999999999999")
    message = r"the header promises 999999999999 rows of element 'vertex', up to byte \d+, but the file has \d+; it is"
    with pytest.raises(SceneError, match=message):
        read_ply(path)


def test_too_many_rows_before_the_vertices(tmp_path):
    path = changed_scene(tmp_path, b"element vertex", b"element other 99999\nproperty int a\nelement vertex")
    with pytest.raises(SceneError, match=r"the header promises 99999 rows of element 'other'"):
        read_ply(path)


def test_too_many_vertices_in_text(tmp_path):
    path = changed_scene(tmp_path, b"vertex 30", b"vertex 999999999999", text=True)
    with pytest.raises(
        SceneError, match=r"the header promises 999999999999 vertices, which do not fit into the \d+ bytes"
    ):
        read_ply(path)


def test_missing_lines_in_text(tmp_path):
    path = changed_scene(tmp_path, b"vertex 30", b"vertex 31", text=True)
    with pytest.raises(SceneError, match=r"vertices 0 to 30 are not 31 lines of 17 values"):
        read_ply(path)


def test_words_in_text(tmp_path):
    write_table(official_table(degree=0), tmp_path / "bad.ply", text=True)
    content = (tmp_path / "bad.ply").read_bytes()
    (tmp_path / "bad.ply").write_bytes(content[: content.rindex(b" ")] + b" much\n")
    with pytest.raises(SceneError, match=r"vertices 0 to 29 have a value that is not a number"):
        read_ply(tmp_path / "bad.ply")


@pytest.mark.parametrize("options", [{"byte_order": "<"}, {"text": True}])
def test_lists_in_vertices(tmp_path, options):
    path = changed_scene(tmp_path, b"property float nx", b"property list uchar int nx", **options)
    with pytest.raises(SceneError, match=r"property 'nx' of (element 'vertex'|a vertex) is a list"):
        read_ply(path)


def test_a_list_before_the_vertices_in_binary(tmp_path):
    path = changed_scene(tmp_path, b"element vertex", b"element face 1\nproperty list uchar int i\nelement vertex")
    with pytest.raises(SceneError, match=r"property 'i' of element 'face' is a list"):
        read_ply(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["z", "f_dc_2", "f_rest_44", "rot_3", "scale_1", "opacity"])
def test_not_finite(tmp_path, name, value):
    table = official_table()
    table[name][21] = value
    write_table(table, tmp_path / "bad.ply")
    if name == "opacity" and value == np.inf:
        return  # opaque
    field = {"z": "position", "rot_3": "rotation", "scale_1": "scale", "opacity": "opacity"}.get(name, "sh")
    with pytest.raises(SceneError, match=rf"bad\.ply: {field} of Gaussian 21 is {value}, not a finite number"):
        read_ply(tmp_path / "bad.ply")


def test_not_finite_in_a_later_block(tmp_path, monkeypatch):
    monkeypatch.setattr(ply, "BLOCK_BYTES", 10 * 4 * 62)
    table = official_table()
    table["x"][21] = np.nan
    write_table(table, tmp_path / "bad.ply")
    with pytest.raises(SceneError, match="position of Gaussian 21 is nan"):
        read_ply(tmp_path / "bad.ply")


def test_zero_quaternion(tmp_path):
    table = official_table()
    for i in range(4):
        table[f"rot_{i}"][5] = 0
    write_table(table, tmp_path / "bad.ply")
    with pytest.raises(SceneError, match=r"bad\.ply: rotation of Gaussian 5 is a quaternion of length 0"):
        read_ply(tmp_path / "bad.ply")


def test_doubles_beyond_float32(tmp_path):
    table = official_table(degree=0).astype([(name, "f8") for name in official_table(degree=0).dtype.names])
    table["y"][3] = 1e300
    write_table(table, tmp_path / "bad.ply")
    with pytest.raises(SceneError, match="position of Gaussian 3 is inf"):
        read_ply(tmp_path / "bad.ply")


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    write_ply(random_gaussians(), tmp_path / "scene.ply")
    before = (tmp_path / "scene.ply").read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ply, "_written_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_ply(random_gaussians(seed=1), tmp_path / "scene.ply")
    assert (tmp_path / "scene.ply").read_bytes() == before and len(list(tmp_path.iterdir())) == 1
