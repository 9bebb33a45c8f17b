"""SuperSplat's compressed PLY: decoded by hand, with and without colour bounds and harmonics, and what is refused."""

import numpy as np
import plyfile
import pytest
from made_scenes import assert_usable
from numpy.lib.recfunctions import repack_fields

from hushsplat.io.scenes.ply import read_ply
from hushsplat.types.errors import SceneError
from hushsplat.types.harmonics import SH_C0

BOUNDS = [f"{end}_{axis}" for end in ("min", "max") for axis in "xyz"]
BOUNDS += [f"{end}_scale_{axis}" for end in ("min", "max") for axis in "xyz"]
COLORS = [f"{end}_{channel}" for end in ("min", "max") for channel in "rgb"]


def tables(count=300, colors=True, rest=0, seed=0):
    """Random elements of a compressed file."""
    random = np.random.default_rng(seed)
    chunks = np.empty(-(-count // 256), [(name, "f4") for name in BOUNDS + (COLORS if colors else [])])
    for name in chunks.dtype.names:
        low = {"min": -1, "max": 1}[name[:3]] if name not in COLORS else {"min": -0.2, "max": 1.2}[name[:3]]
        chunks[name] = low + random.uniform(-0.1, 0.1, len(chunks))
    names = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
    vertices = np.empty(count, [(name, "u4") for name in names])
    for name in names:
        vertices[name] = random.integers(0, 2**32, count, dtype=np.uint32)
    made = {"chunk": chunks, "vertex": vertices}
    if rest:
        made["sh"] = np.empty(count, [(f"f_rest_{i}", "u1") for i in range(rest)])
        for name in made["sh"].dtype.names:
            made["sh"][name] = random.integers(0, 256, count)
    return made


def write_tables(path, made, byte_order="<", text=False):
    described = [plyfile.PlyElement.describe(rows, name) for name, rows in made.items()]
    plyfile.PlyData(described, byte_order=byte_order, text=text).write(str(path))
    return path


def decoded(made, i):
    """Gaussian i, bit by bit: position, scales, quaternion, opacity, colour."""
    chunk = {name: float(made["chunk"][i // 256][name]) for name in made["chunk"].dtype.names}
    row = {name: int(made["vertex"][i][name]) for name in made["vertex"].dtype.names}

    def between(what, t):
        return chunk[f"min_{what}"] + t * (chunk[f"max_{what}"] - chunk[f"min_{what}"])

    def split(bits):
        return [(bits >> 21) / 2047, (bits >> 11 & 0x3FF) / 1023, (bits & 0x7FF) / 2047]

    position = [between(axis, t) for axis, t in zip("xyz", split(row["packed_position"]), strict=True)]
    scales = [np.exp(between(f"scale_{a}", t)) for a, t in zip("xyz", split(row["packed_scale"]), strict=True)]
    bits = row["packed_rotation"]
    others = [((bits >> shift & 0x3FF) / 1023 - 0.5) * 2**0.5 for shift in (20, 10, 0)]
    largest = max(0, 1 - sum(value * value for value in others)) ** 0.5
    quaternion = [*others[: bits >> 30], largest, *others[bits >> 30 :]]
    rgba = [(row["packed_color"] >> shift & 0xFF) / 255 for shift in (24, 16, 8, 0)]
    rgb = [between(c, t) if "min_r" in chunk else t for c, t in zip("rgb", rgba, strict=False)]
    return position, scales, np.array(quaternion) / np.linalg.norm(quaternion), rgba[3], rgb


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("colors", [False, True])
@pytest.mark.parametrize("rest", [0, 9, 24, 45])
def test_against_the_bits(tmp_path, colors, rest, byte_order):
    made = tables(colors=colors, rest=rest)
    gaussians = read_ply(write_tables(tmp_path / "scene.ply", made, byte_order))
    assert_usable(gaussians)
    assert len(gaussians) == 300 and gaussians.sh.shape[1] == 1 + rest // 3 and not gaussians.is_surfels
    for i in (0, 1, 2, 3, 4, 5, 6, 255, 256, 299):
        position, scales, quaternion, opacity, rgb = decoded(made, i)
        np.testing.assert_allclose(gaussians.means[i], position, atol=1e-6)
        np.testing.assert_allclose(gaussians.scales[i], scales, rtol=1e-6)
        np.testing.assert_allclose(gaussians.rotations[i], quaternion, atol=1e-6)
        np.testing.assert_allclose(gaussians.opacities[i], opacity, atol=1e-6)
        np.testing.assert_allclose(0.5 + SH_C0 * gaussians.sh[i, 0], rgb, atol=1e-6)
        for j in range(rest):
            level = int(made["sh"][i][f"f_rest_{j}"])
            value = -4 if level == 0 else 4 if level == 255 else (level + 0.5) / 256 * 8 - 4
            assert gaussians.sh[i, 1 + j % (rest // 3), j // (rest // 3)] == pytest.approx(value, abs=1e-6)


def test_all_four_left_out_components(tmp_path):
    made = tables(4)
    made["vertex"]["packed_rotation"] = [which << 30 | 511 << 20 | 511 << 10 | 511 for which in range(4)]
    rotations = read_ply(write_tables(tmp_path / "scene.ply", made)).rotations
    np.testing.assert_allclose(rotations, np.eye(4), atol=1e-3)


def test_an_empty_scene(tmp_path):
    assert len(read_ply(write_tables(tmp_path / "scene.ply", tables(0, rest=9)))) == 0


def without(table, name):
    return repack_fields(table[[other for other in table.dtype.names if other != name]])


def retyped(table, name, code):
    types = [(other, code if other == name else table.dtype[other].str) for other in table.dtype.names]
    return table.astype(types)


def broken(kind):
    made = tables(rest=9)
    if kind in made:
        del made[kind]
    elif kind == "text":
        pass
    elif kind == "chunks":
        made["chunk"] = made["chunk"][:1]
    elif kind == "rows of sh":
        made["sh"] = made["sh"][:-1]
    elif kind == "f_rest_8":
        made["sh"] = without(made["sh"], kind)
    elif kind == "f_rest_3":
        made["sh"] = made["sh"].astype([(n.replace("f_rest_3", "f_rest_x"), "u1") for n in made["sh"].dtype.names])
    elif kind.startswith("type of "):
        name = kind.removeprefix("type of ")
        element = next(element for element in made if name in made[element].dtype.names)
        made[element] = retyped(made[element], name, "f8")
    else:
        element = "vertex" if kind.startswith("packed") else "chunk"
        made[element] = without(made[element], kind)
    return made


REFUSED = {
    "text": r"this kind of PLY must be binary, got text; export it as binary\.",
    "chunk": r"element 'chunk' is missing; a compressed PLY has elements chunk and vertex\.",
    "chunks": r"element 'chunk' has 1 rows, expected 2 for 300 vertices in chunks of 256",
    "rows of sh": r"element 'sh' has 299 rows, expected 300, one per vertex\.",
    "f_rest_8": r"element 'sh' has 8 properties, expected 9, 24 or 45 \(degree 1 to 3\)\.",
    "f_rest_3": r"property 'f_rest_3' of element 'sh' is missing in this compressed PLY\.",
    "packed_scale": r"property 'packed_scale' of element 'vertex' is missing in this compressed PLY\.",
    "max_y": r"property 'max_y' of element 'chunk' is missing in this compressed PLY\.",
    "max_b": r"property 'max_b' of element 'chunk' is missing in this compressed PLY\.",
    "type of packed_color": r"property 'packed_color' of element 'vertex' must be of type uint\.",
    "type of min_scale_z": r"property 'min_scale_z' of element 'chunk' must be of type float\.",
    "type of f_rest_0": r"property 'f_rest_0' of element 'sh' must be of type uchar\.",
}


@pytest.mark.parametrize("kind", list(REFUSED))
def test_refused(tmp_path, kind):
    write_tables(tmp_path / "bad.ply", broken(kind), text=kind == "text")
    with pytest.raises(SceneError, match=r"bad\.ply: " + REFUSED[kind]):
        read_ply(tmp_path / "bad.ply")


@pytest.mark.parametrize("element", ["chunk", "vertex", "sh"])
def test_cut_short(tmp_path, element):
    made = tables(rest=9)
    order = [name for name in made if name != element] + [element]
    path = write_tables(tmp_path / "bad.ply", {name: made[name] for name in order})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SceneError, match=rf"bad\.ply: the header promises \d+ rows of element '{element}', up to byte"):
        read_ply(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "field"), [("max_x", "position"), ("min_scale_y", "scale"), ("max_g", "sh")])
def test_bad_bounds(tmp_path, name, field, value):
    made = tables()
    for name_packed in made["vertex"].dtype.names:
        made["vertex"][name_packed] = 0x55555555  # between the bounds: at the other one, 0 times infinity is NaN
    made["chunk"][name][1] = value
    path = write_tables(tmp_path / "bad.ply", made)
    if name == "min_scale_y" and value == -np.inf:
        assert read_ply(path).scales[299, 1] == np.float32(1e-12)  # infinitely thin
        return
    with pytest.raises(SceneError, match=rf"bad\.ply: {field} of Gaussian 256 is -?(nan|inf), not a finite number"):
        read_ply(path)
