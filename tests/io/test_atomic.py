"""No half-written file, whatever happens while it is written."""

import os

import pytest

from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import HushsplatError


def test_success_takes_the_name(tmp_path):
    with atomic_write(tmp_path / "scene.ply") as temporary:
        assert temporary.parent == tmp_path and temporary.suffix == ".ply"
        temporary.write_bytes(b"new")
        assert not (tmp_path / "scene.ply").exists()
        inode = temporary.stat().st_ino
    assert (tmp_path / "scene.ply").stat().st_ino == inode  # renamed: a copy could be found half done
    assert [p.name for p in tmp_path.iterdir()] == ["scene.ply"]
    assert (tmp_path / "scene.ply").read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_exception_keeps_the_old_file_and_leaves_nothing(tmp_path, error):
    final = tmp_path / "scene.ply"
    final.write_bytes(b"old")
    with pytest.raises(error), atomic_write(final) as temporary:
        temporary.write_bytes(b"half")
        raise error()
    assert final.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [final]


def test_exception_before_anything_is_written(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "scene.ply"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_disk_error_is_one_line(tmp_path):
    message = r"scene\.ply: cannot be written: No space left on device\."
    with pytest.raises(HushsplatError, match=message), atomic_write(tmp_path / "scene.ply"):
        raise OSError(28, os.strerror(28))


def test_missing_folder(tmp_path):
    message = r"scene\.ply: the folder .*nowhere does not exist; create it first\."
    with pytest.raises(HushsplatError, match=message), atomic_write(tmp_path / "nowhere" / "scene.ply"):
        pass


def test_target_is_a_folder(tmp_path):
    message = r"this is a folder; give the name of a file to write\."
    with pytest.raises(HushsplatError, match=message), atomic_write(tmp_path):
        pass


def test_a_symbolic_link_keeps_pointing(tmp_path):
    (tmp_path / "real.ply").write_bytes(b"old")
    link = tmp_path / "link.ply"
    link.symlink_to(tmp_path / "real.ply")
    with atomic_write(link) as temporary:
        temporary.write_bytes(b"new")
    assert link.is_symlink() and (tmp_path / "real.ply").read_bytes() == b"new"


def test_the_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    with atomic_write(tmp_path / "scene.ply") as temporary:
        temporary.write_bytes(b"")
    assert (tmp_path / "scene.ply").stat().st_mode == (tmp_path / "plain").stat().st_mode
