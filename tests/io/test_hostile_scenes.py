"""Properties of the PLY and .splat readers: any bytes give a usable scene or one line of SceneError."""

import numpy as np
import plyfile
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from made_scenes import random_gaussians, read_hostile
from test_compressed_ply import tables, write_tables

from hushsplat.io.scenes.dot_splat import read_splat, write_splat
from hushsplat.io.scenes.ply import read_ply, write_ply
from hushsplat.io.scenes.ply_header import TYPES
from hushsplat.types.errors import SceneError

KINDS = ("3dgs", "2dgs", "payload", "big endian", "text", "compressed", "compressed sh")
quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="session")
def good(folder):
    """A small good file of every kind, as bytes."""
    made = {}
    for kind in KINDS:
        path = folder / "good.ply"
        if kind.startswith("compressed"):
            write_tables(path, tables(20, rest=9 if "sh" in kind else 0))
        else:
            write_ply(random_gaussians(20, surfels=kind == "2dgs", degree=1, payload=kind == "payload"), path)
        if kind in ("big endian", "text"):
            read = plyfile.PlyData.read(str(path), mmap=False)
            plyfile.PlyData(read.elements, text=kind == "text", byte_order=">").write(str(path))
        made[kind] = path.read_bytes()
        assert len(read_ply(path)) == 20
    return made


@quick
@given(content=st.binary(max_size=3000))
@example(content=b"")
def test_random_bytes(folder, content):
    assert read_hostile(read_ply, folder / "bad.ply", content) is None


@quick
@given(content=st.binary(max_size=3000))
def test_random_bytes_behind_a_magic(folder, content):
    read_hostile(read_ply, folder / "bad.ply", b"ply\nformat binary_little_endian 1.0\n" + content)


@quick
@given(kind=st.sampled_from(KINDS), share=st.floats(0, 1, exclude_max=True))
def test_cut_anywhere(folder, good, kind, share):
    content = good[kind][: int(share * len(good[kind]))]
    read = read_hostile(read_ply, folder / "bad.ply", content)
    assert read is None or (kind == "text" and len(good[kind]) - len(content) < 30)  # the last number lost digits


@quick
@given(kind=st.sampled_from(KINDS), changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6))
def test_changed_bytes(folder, good, kind, changes):
    content = bytearray(good[kind])
    for where, value in changes:
        content[int(where * (len(content) - 1))] = value
    read_hostile(read_ply, folder / "bad.ply", bytes(content))


count = st.one_of(st.integers(-(2**70), 2**70), st.integers(0, 400), st.sampled_from([2**31, 2**32, 2**63 - 1, 2**64]))
number = st.sampled_from(["inf", "1e9", "0x10", "", "20.0", "²"])
header_line = st.one_of(
    st.builds("element {} {}".format, st.sampled_from(["vertex", "chunk", "sh", "face"]), count | number),
    st.builds("property {} {}".format, st.sampled_from([*TYPES, "half"]), st.sampled_from(["x", "scale_2", "q"])),
    st.builds(
        "property list {} int {}".format, st.sampled_from(["uchar", "float"]), st.sampled_from(["x", "f_rest_0"])
    ),
    st.builds("format {} 1.0".format, st.sampled_from(["ascii", "binary_little_endian", "binary_big_endian", "x"])),
    st.text(max_size=20),
)


@quick
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_changed_header_lines(folder, good, data, kind):
    head, _, body = good[kind].partition(b"end_header\n")
    lines = head.decode().splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.integers(1, len(lines)))
        action = data.draw(st.sampled_from(["replace", "insert", "delete", "swap"]))
        if action == "delete":
            del lines[where : where + data.draw(st.integers(1, 4))]
        elif action == "swap" and len(lines) > 2:
            other = data.draw(st.integers(1, len(lines) - 1))
            lines[other], lines[min(where, len(lines) - 1)] = lines[min(where, len(lines) - 1)], lines[other]
        else:
            lines[where : where + (action == "replace")] = [data.draw(header_line)]
    content = "\n".join([*lines, "end_header", ""]).encode("utf-8", "surrogatepass") + body
    read_hostile(read_ply, folder / "bad.ply", content)


@quick
@given(kind=st.sampled_from(KINDS), element=st.sampled_from([b"vertex", b"chunk", b"sh"]), rows=count)
def test_any_count(folder, good, kind, element, rows):
    head, line, tail = good[kind].partition(b"element %b " % element)
    content = head + line + b"%d" % rows + tail[tail.index(b"\n") :] if line else head
    read = read_hostile(read_ply, folder / "bad.ply", content)
    if element == b"vertex":
        assert read is None or len(read) == rows <= 20


@quick
@given(
    row=st.integers(0, 19),
    column=st.integers(0, 35),
    value=st.one_of(st.floats(width=32), st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45])),
)
def test_any_value_anywhere(folder, good, row, column, value):
    content = bytearray(good["payload"])
    begin = len(content) - 20 * 36 * 4 + (row * 36 + column) * 4
    content[begin : begin + 4] = np.float32(value).tobytes()
    read_hostile(read_ply, folder / "bad.ply", bytes(content))


def test_a_bad_value_of_any_property_is_refused(folder, good):
    """NaN is refused in every property but the normals, which nobody reads."""
    ignored = []
    for column in range(36):
        content = bytearray(good["payload"])
        begin = len(content) - 20 * 36 * 4 + (7 * 36 + column) * 4
        content[begin : begin + 4] = np.float32(np.nan).tobytes()
        (folder / "bad.ply").write_bytes(content)
        try:
            read_ply(folder / "bad.ply")
            ignored.append(column)
        except SceneError as error:
            assert "of Gaussian 7 is nan" in str(error)
    assert ignored == [3, 4, 5]


@quick
@given(content=st.binary(max_size=400))
def test_splat_random_bytes(folder, content):
    read = read_hostile(read_splat, folder / "bad.splat", content)
    assert read is None or len(read) * 32 == len(content)


@quick
@given(rows=st.lists(st.tuples(st.binary(min_size=8, max_size=8), st.floats(width=32)), min_size=1, max_size=8))
def test_splat_any_bytes_and_any_scale(folder, rows):
    content = b"".join(np.float32([1, 2, 3, scale, 1, 1]).tobytes() + tail for tail, scale in rows)
    read = read_hostile(read_splat, folder / "bad.splat", content)
    assert (read is None) == any(tail[4:] == b"\x80" * 4 or not np.isfinite(scale) or scale < 0 for tail, scale in rows)


@quick
@given(cut=st.integers(1, 639))
def test_splat_cut_anywhere(folder, cut):
    write_splat(random_gaussians(20), folder / "good.splat")
    read = read_hostile(read_splat, folder / "bad.splat", (folder / "good.splat").read_bytes()[:cut])
    assert (read is None) == (cut % 32 != 0)
