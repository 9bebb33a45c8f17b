"""One door for all formats: the content decides on reading, the name on writing."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from made_scenes import assert_close, random_gaussians, with_values

from hushsplat.io.content import ContentKind, content_kind
from hushsplat.io.progress import listening
from hushsplat.io.scenes.scene import load, save
from hushsplat.types.errors import HushsplatError, SceneError

SUFFIXES = [".ply", ".splat", ".spz", ".sog"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("surfels", [False, True])
def test_save_and_load(tmp_path, suffix, surfels):
    made = random_gaussians(400, surfels=surfels, degree=1)
    save(made, tmp_path / f"scene{suffix}")
    read = load(tmp_path / f"scene{suffix}")
    assert len(read) == 400 and read.is_surfels == (surfels and suffix in (".ply", ".sog"))
    order = np.lexsort(np.round(read.means[:, ::-1], 2).T), np.lexsort(np.round(made.means[:, ::-1], 2).T)
    np.testing.assert_allclose(read.means[order[0], 0], made.means[order[1], 0], atol=0.02)
    assert [file.name for file in tmp_path.iterdir()] == [f"scene{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reading_tells_how_far_it_is(tmp_path, suffix):
    save(random_gaussians(50), tmp_path / f"scene{suffix}")
    shares = []
    with listening(shares.append):
        load(tmp_path / f"scene{suffix}")
    assert shares == sorted(shares) and shares and shares[0] > 0 and shares[-1] <= 1


@pytest.mark.parametrize("suffix", [".ply", ".spz", ".sog"])
@pytest.mark.parametrize("wrong", [".splat", ".bin", ""])
def test_the_content_decides(tmp_path, suffix, wrong):
    save(random_gaussians(), tmp_path / f"scene{suffix}")
    right = load(tmp_path / f"scene{suffix}")
    shutil.move(tmp_path / f"scene{suffix}", tmp_path / f"renamed{wrong}")
    assert_close(load(tmp_path / f"renamed{wrong}"), right)


def test_capital_suffixes_and_strings(tmp_path):
    save(random_gaussians(), str(tmp_path / "SCENE.SPLAT"))
    assert len(load(str(tmp_path / "SCENE.SPLAT"))) == 50


def test_a_splat_that_begins_like_gzip_is_a_splat(tmp_path):
    made = random_gaussians(degree=0)
    first = np.frombuffer(b"\x1f\x8b\x90\x3f", "<f4")[0]  # one .splat in 65536 has these first two bytes
    made = with_values(made, "means", (0, 0), first)
    save(made, tmp_path / "scene.splat")
    np.testing.assert_array_equal(load(tmp_path / "scene.splat").means, made.means)


def test_payload_survives(tmp_path):
    made = random_gaussians(surfels=True, payload=True)
    save(made, tmp_path / "scene.ply")
    assert_close(load(tmp_path / "scene.ply"), made)


def test_missing_file(tmp_path):
    with pytest.raises(SceneError, match=r"nowhere\.ply: no such file; check the path\."):
        load(tmp_path / "nowhere.ply")


@pytest.mark.parametrize("name", ["notes.txt", "model.glb", "noname"])
def test_unknown_format(tmp_path, name):
    (tmp_path / name).write_bytes(b"hello")
    message = rf"{name}: not a known scene; expected a \.ply, \.splat, \.spz or \.sog file, or a folder with meta"
    with pytest.raises(SceneError, match=message):
        load(tmp_path / name)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".json"])
@pytest.mark.parametrize("content", [b"", b"hello"])
def test_wrong_content_names_the_file(tmp_path, suffix, content):
    (tmp_path / f"bad{suffix}").write_bytes(content)
    with pytest.raises(SceneError, match=rf"bad\{suffix}: .+"):
        load(tmp_path / f"bad{suffix}")


def test_a_folder_with_a_scene_reaches_its_reader(tmp_path):
    (tmp_path / "meta.json").write_bytes(b"{}")
    with pytest.raises(SceneError, match=r"meta\.json"):
        load(tmp_path)
    (tmp_path / "lod-meta.json").write_bytes(b"{}")
    with pytest.raises(SceneError, match=r"lod-meta\.json"):
        load(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_levels_where_there_are_none(tmp_path, suffix):
    save(random_gaussians(), tmp_path / f"scene{suffix}")
    message = rf"scene\{suffix}: has no levels of detail \(only a streamed SOG has\); leave out lod=1\."
    with pytest.raises(SceneError, match=message):
        load(tmp_path / f"scene{suffix}", lod=1)


def test_unreadable_file(tmp_path, monkeypatch):
    save(random_gaussians(), tmp_path / "scene.ply")

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(SceneError, match=r"scene\.ply: cannot be read: Permission denied\."):
        load(tmp_path / "scene.ply")


def test_compressed_ply_is_only_read(tmp_path):
    with pytest.raises(SceneError, match=r"x\.compressed\.ply: compressed PLY is only read; write a \.ply, or a \.sog"):
        save(random_gaussians(), tmp_path / "x.compressed.ply")


@pytest.mark.parametrize("name", ["x.obj", "x"])
def test_unknown_format_to_write(tmp_path, name):
    message = rf"{name}: cannot write the format '.*'; give a name that ends in \.ply, \.splat,.* or lod-meta\.json\."
    with pytest.raises(SceneError, match=message):
        save(random_gaussians(), tmp_path / name)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nan_is_not_written_in_any_format(tmp_path, suffix):
    made = random_gaussians()
    made = with_values(made, "means", (7, 1), np.nan)
    with pytest.raises(
        SceneError, match=rf"x\{suffix}: position of Gaussian 7 is nan, not a finite number; such a scene"
    ):
        save(made, tmp_path / f"x{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_folder_to_write_to(tmp_path, suffix):
    with pytest.raises(HushsplatError, match=r"the folder .*nowhere does not exist; create it first\."):
        save(random_gaussians(), tmp_path / "nowhere" / f"x{suffix}")


@pytest.mark.real_data
def test_real_compressed_ply_and_spz_agree(real_data):
    compressed = load(real_data / "biker" / "biker.compressed.ply")
    spz = load(real_data / "biker" / "biker.spz")
    assert len(compressed) == len(spz) == 152_746
    np.testing.assert_allclose(compressed.means, spz.means, atol=2e-4)  # SPZ: 12 fractional bits
    log_scales = np.log(compressed.scales).clip(-10)  # SPZ: from -10 up in steps of 1/16
    np.testing.assert_allclose(log_scales, np.log(spz.scales), atol=0.04)
    np.testing.assert_allclose(np.abs((compressed.rotations * spz.rotations).sum(axis=1)), 1, atol=1e-4)
    np.testing.assert_allclose(compressed.opacities, spz.opacities, atol=0.01)
    np.testing.assert_allclose(compressed.sh, spz.sh, atol=0.02)


@pytest.mark.real_data
def test_real_splat(real_data):
    bonsai = load(real_data / "bonsai" / "bonsai-7k.splat")
    assert len(bonsai) == 1_157_141 and bonsai.sh_degree == 0


@pytest.mark.real_data
@pytest.mark.parametrize(("lod", "count"), [(None, 542_000), (0, 542_000), (3, 27_000)])
def test_real_streamed_folder(real_data, lod, count):
    assert len(load(real_data / "flowers", lod=lod)) == pytest.approx(count, rel=0.02)


@pytest.mark.parametrize(
    ("comments", "antialiased"),
    [
        (["SplatRenderMode: mip"], True),
        (["  SPLATRENDERMODE:  MIP "], True),
        (["antialiased 1"], True),
        (["antialiased 0"], False),
        (["antialiased 1", "SplatRenderMode: default"], False),
        (["Exported from Brush", "SplatRenderMode: banana"], False),
    ],
)
@pytest.mark.parametrize("surfels", [False, True])
def test_comments_of_a_ply_say_whether_it_is_antialiased(tmp_path, comments, antialiased, surfels):
    save(random_gaussians(surfels=surfels), tmp_path / "plain.ply")
    content = (tmp_path / "plain.ply").read_bytes()
    lines = "".join(f"comment {comment}\n" for comment in comments).encode()
    (tmp_path / "said.ply").write_bytes(content.replace(b"element vertex", lines + b"element vertex", 1))
    assert load(tmp_path / "said.ply").antialiased == (antialiased and not surfels)


@pytest.mark.parametrize("antialiased", [False, True])
def test_antialiased_survives_every_format_that_can_say_so(tmp_path, antialiased):
    made = replace(random_gaussians(degree=0), antialiased=antialiased)
    for name in ("a.ply", "a.spz", "a.sog"):
        save(made, tmp_path / name)
        assert load(tmp_path / name).antialiased == antialiased, name
    assert (b"SplatRenderMode: mip" in (tmp_path / "a.ply").read_bytes()) == antialiased


def test_a_folder_names_the_scenes_in_it(tmp_path):
    with pytest.raises(SceneError, match=r"this folder has no scene; give a \.ply"):
        load(tmp_path)
    made = random_gaussians(3, degree=0)
    trained = [f"point_cloud/iteration_{count}/point_cloud.ply" for count in (7000, 30000)]
    for count, name in enumerate(trained):
        (tmp_path / name).parent.mkdir(parents=True)
        save(made.first(count + 1), tmp_path / name)
    assert len(load(tmp_path)) == 2  # what 3DGS writes is one scene, its last iteration
    for name in ("b.splat", "a.ply"):
        save(made, tmp_path / name)
    named = "a.ply, b.splat, point_cloud/iteration_30000/point_cloud.ply, point_cloud/iteration_7000/point_cloud.ply"
    with pytest.raises(SceneError, match=f"is a folder; give one of the scenes in it: {named}"):
        load(tmp_path)
    (tmp_path / "alone").mkdir()
    save(made, tmp_path / "alone" / "a.ply")
    assert len(load(tmp_path / "alone")) == 3
    assert content_kind(tmp_path) == ContentKind.SCENE
    (tmp_path / "sparse").mkdir()
    assert content_kind(tmp_path) == ContentKind.CAPTURE
