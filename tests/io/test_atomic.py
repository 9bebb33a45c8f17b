"""No half-written file, whatever happens while it is written."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hushsplat.io import atomic
from hushsplat.io.atomic import atomic_write, new_folder, own_tag, sweep
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


def test_file_and_folder_are_synced_in_this_order(tmp_path, monkeypatch):
    done = []
    replace, fsync = Path.replace, os.fsync

    def synced(descriptor):
        done.append(Path(f"/proc/self/fd/{descriptor}").readlink().name if sys.platform == "linux" else "")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", lambda path, to: (done.append("replace"), replace(path, to))[1])
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert len(done) == 3 and done[1] == "replace"
    if sys.platform == "linux":
        assert done == [temporary.name, "replace", tmp_path.name]


def test_a_read_only_disk_is_one_line_that_names_the_output(tmp_path, monkeypatch):
    """There, also removing what never was there fails."""

    def refuse(*arguments, **options):
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(Path, "unlink", refuse)
    with (
        pytest.raises(HushsplatError, match=r"scene\.ply: cannot be written: Read-only file system\."),
        atomic_write(tmp_path / "scene.ply") as temporary,
    ):
        refuse(temporary)


def dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not asked for there")
def test_files_of_killed_writers_are_removed_by_the_next(tmp_path):
    host, dead = own_tag().partition("-")[0], dead_process()
    swept = [f".hushsplat-{host}-{dead}-00ff.ply", f"hushsplat-view-{host}-{dead}-a_b2"]
    (tmp_path / swept[0]).write_bytes(b"half")
    (tmp_path / swept[1]).mkdir()
    (tmp_path / swept[1] / "half upload").write_bytes(b"half")
    kept = [
        f".hushsplat-{host}-{os.getpid()}-00ff.ply",  # of a process that runs
        f".hushsplat-{int(host, 16) ^ 1:08x}-{dead}-00ff.ply",  # of another machine
        ".hushsplat.toml",
        "hushsplat-demo",
        "hushsplat-view-notes",
        "scene.ply",
    ]
    for number, name in enumerate([*kept, f".hushsplat-{int(host, 16) ^ 1:08x}-1-aa.ply"]):
        (tmp_path / name).write_bytes(b"")
        if number > 1:
            os.utime(tmp_path / name, (time.time() - 2 * atomic.OLD_S,) * 2)
    with atomic_write(tmp_path / "new.ply") as temporary:
        temporary.write_bytes(b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "new.ply"])


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_is_removed_and_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"")
    swept = tmp_path / "swept"
    swept.mkdir()
    link = swept / f"hushsplat-view-{own_tag().partition('-')[0]}-{dead_process()}-ab"
    link.symlink_to(tmp_path / "precious")
    sweep(swept)
    assert list(swept.iterdir()) == [] and (tmp_path / "precious" / "file").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by a signal")
def test_a_killed_writer_leaves_what_the_next_one_removes(tmp_path):
    code = (
        "import sys, time; from hushsplat.io.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]) as temporary:\n"
        "    temporary.write_bytes(b'half'); print(flush=True); time.sleep(60)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a.ply")], stdout=subprocess.PIPE)
    writer.stdout.readline()
    writer.kill()
    writer.wait()
    writer.stdout.close()
    assert len(list(tmp_path.iterdir())) == 1 and not (tmp_path / "a.ply").exists()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_new_folder_is_there_only_if_something_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for kept in (False, True):
        with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "there" / "a" / "b"):
            if kept:
                (tmp_path / "there" / "a" / "log").write_text("")
            raise ZeroDivisionError
        assert (tmp_path / "there").is_dir()
        assert (tmp_path / "there" / "a").is_dir() == kept and not (tmp_path / "there" / "a" / "b").exists()
