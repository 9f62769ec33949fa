"""A file is the old one or the new one, whatever happens while it is written."""

import errno
import os
import platform
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from maxmargin.runtime.atomic_write import write_atomically

OLD, NEW = b"old" * 1000, b"new" * 2000
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


def fill(draft: Path) -> None:
    draft.write_bytes(NEW)


def test_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a model with spaces, ünïcode.mmg"
    for content in (OLD, NEW):
        write_atomically(path, partial(Path.write_bytes, data=content))
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == [path.name]


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "model.mmg"
    path.write_bytes(OLD)

    def fail(draft: Path) -> None:
        draft.write_bytes(NEW)
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        write_atomically(path, fail)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["model.mmg"]


def test_names_that_are_as_long_as_may_be(tmp_path: Path) -> None:
    """One is written while another that begins alike is: their drafts are different files."""
    for long in ("x" * 250, "🙂" * 62, "ü" * 120):
        path, other = tmp_path / f"{long}.a", tmp_path / f"{long}.b"

        def fill_both(draft: Path, other: Path = other) -> None:
            draft.write_bytes(OLD)
            write_atomically(other, fill)

        write_atomically(path, fill_both)
        assert (path.read_bytes(), other.read_bytes()) == (OLD, NEW)
    assert len(os.listdir(tmp_path)) == 6


@POSIX
def test_keeps_permissions_and_links(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    path, link = tmp_path / "shelf" / "model.mmg", tmp_path / "link.mmg"
    path.write_bytes(OLD)
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomically(link, fill)
    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert path.stat().st_mode & 0o777 == 0o640


@POSIX
def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    write_atomically(tmp_path / "model.mmg", fill)
    assert (tmp_path / "model.mmg").stat().st_mode == usual.stat().st_mode


@POSIX
def test_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    write_atomically("/dev/null", fill)
    assert not Path("/dev/null").is_file()
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="/dev/full") as full:
            write_atomically("/dev/full", fill)
        assert full.value.errno == errno.ENOSPC


@POSIX
def test_drafts_of_killed_processes_are_removed_and_others_left_alone(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host = platform.node().replace("-", "_").replace(".", "_")
    left = tmp_path / f".model.mmg.{host}-{ended.pid}-1.part"
    living = tmp_path / f".model.mmg.{host}-{os.getppid()}-1.part"
    others = [
        tmp_path / f".model.mmg.{host}x-{ended.pid}-1.part",  # of another machine
        tmp_path / f".other.mmg.{host}-{ended.pid}-1.part",
        tmp_path / "model.mmg.part",
    ]
    for draft in (left, living, *others):
        draft.touch()
    write_atomically(tmp_path / "model.mmg", fill)
    assert not left.exists()
    assert all(draft.exists() for draft in (living, *others))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere.model\.mmg"):
        write_atomically(tmp_path / "nowhere" / "model.mmg", fill)


@POSIX
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """The limit on the size of files stands for the disk: writing fails half-way."""
    path = tmp_path / "model.mmg"
    path.write_bytes(OLD)
    code = f"""
import resource, signal
from maxmargin.runtime.atomic_write import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_atomically({str(path)!r}, lambda draft: draft.write_bytes({NEW!r}))
except OSError as error:
    print(error.filename)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.strip() == str(path), ran.stderr
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["model.mmg"]


@POSIX
@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_real_disks_in_trouble_keep_the_old_file(tmp_path: Path, trouble: str) -> None:
    """A small disk in memory, mounted for one process only, is full or read-only."""
    mount = ["unshare", "--mount", "mount", "-t", "tmpfs", "x", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a disk")
    code = f"""
import os, subprocess
from maxmargin.runtime.atomic_write import write_atomically
path = {str(tmp_path / "model.mmg")!r}
write_atomically(path, lambda draft: draft.write_bytes({OLD!r}))
if {trouble!r} == "read-only":
    subprocess.run(["mount", "-o", "remount,ro", {str(tmp_path)!r}], check=True)
try:
    write_atomically(path, lambda draft: draft.write_bytes({NEW!r} * 100))
except OSError as error:
    kept = open(path, "rb").read() == {OLD!r} and os.listdir({str(tmp_path)!r}) == ["model.mmg"]
    print(os.strerror(error.errno), error.filename == path, kept)
"""
    disk = f'mount -t tmpfs -o size=64k x "{tmp_path}" && exec "{sys.executable}" -'
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", disk], input=code, capture_output=True, text=True
    )
    expected = errno.ENOSPC if trouble == "full" else errno.EROFS
    assert ran.stdout.strip() == f"{os.strerror(expected)} True True", ran.stderr
