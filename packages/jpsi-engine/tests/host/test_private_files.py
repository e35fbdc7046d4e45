"""Private directories and files."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import ConfigError
from jpsi.plugin.engine import ownership
from jpsi_engine.host.private_files import (
    check_directory_here,
    check_private_directory,
    check_way,
    make_directories,
    make_private_directory,
    open_private,
    sync_directory,
    write_synced,
)

STRANGER = 4321
_ROUNDS = 300


@pytest.fixture(params=[0, 0o022, 0o077, 0o177, 0o277, 0o777], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_directories_are_private_whatever_the_umask(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "a/b/c")

    for name in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("flags", [os.O_EXCL, 0, os.O_TRUNC], ids=["new", "any", "emptied"])
def test_files_are_private_whatever_the_umask(tmp_path: Path, flags: int) -> None:
    os.close(open_private(tmp_path / "file", os.O_WRONLY | os.O_CREAT | flags))

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.usefixtures("umask")
def test_a_synced_file_is_private_and_has_the_new_content_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, int]] = []

    def sync(fd: int) -> None:
        found = os.fstat(fd)
        synced.append((found.st_ino, found.st_size))

    monkeypatch.setattr(os, "fsync", sync)
    for data in (b"the old content", b"new"):
        write_synced(tmp_path / "file", data)
    file = (tmp_path / "file").stat()
    sync_directory(tmp_path)

    assert synced[-2] == (file.st_ino, len(b"new"))
    assert synced[-1][0] == tmp_path.stat().st_ino
    assert (tmp_path / "file").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o755)

    make_private_directory(tmp_path / "a")

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_no_directory_is_made_below_one_that_others_can_change(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(ConfigError, match=rf"the spool .*/a/b is .* {tmp_path} can be .* mode 0777"):
        make_private_directory(tmp_path / "a/b", "the spool")

    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_made_in_a_sticky_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    make_private_directory(tmp_path / "a")

    assert (tmp_path / "a").is_dir()


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_another_owner_in_a_sticky_directory_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Another process makes the missing directory between the check and mkdir."""
    tmp_path.chmod(0o1777)
    wanted, ours, mkdir = tmp_path / "jpsi", tmp_path / "ours", os.mkdir
    ours.mkdir(mode=0o700)

    def late(path: str, mode: int = 0o777) -> None:
        if path == str(wanted):
            wanted.symlink_to(ours) if kind == "link" else mkdir(wanted)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", late)
    monkeypatch.setattr(ownership, "look", owned_by(STRANGER, wanted))

    with pytest.raises(ConfigError, match=f"jpsi belongs to user {STRANGER}"):
        make_private_directory(wanted / "more")

    assert list(ours.iterdir()) == [] or kind == "directory"


def owned_by(owner: int, *paths: Path) -> object:
    """Return an lstat(2) that reports another owner for these paths."""

    def look(at: str) -> os.stat_result:
        found = os.lstat(at)
        return os.stat_result((*found[:4], owner, *found[5:10])) if Path(at) in paths else found

    return look


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "look", owned_by(STRANGER, tmp_path))

    with pytest.raises(ConfigError, match=rf"belongs to user {STRANGER} \(mode 0700\), not to you"):
        check_private_directory(tmp_path)
    with pytest.raises(ConfigError, match=f"belongs to user {STRANGER}"):
        check_way(tmp_path / "a")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        pytest.param("link", "is a symbolic link and must be a directory", id="link"),
        pytest.param("file", "is a file and must be a directory", id="file"),
        pytest.param("open", r"can be written by others \(yours, mode 0770\)", id="group"),
    ],
)
def test_directory_in_a_safe_one_is_one_of_the_user(tmp_path: Path, kind: str, why: str) -> None:
    (tmp_path / "directory").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("directory")
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o770)
    check_directory_here(f"{tmp_path}/directory")

    with pytest.raises(ConfigError, match=why):
        check_directory_here(f"{tmp_path}/{kind}")


@pytest.mark.parametrize("kind", ["leading to a file", "leading nowhere"])
def test_link_is_not_followed(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "leading to a file":
        target.write_text("precious")
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        open_private(tmp_path / "link", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    assert not target.exists() or target.read_text() == "precious"


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_RDONLY, os.O_RDWR | os.O_CREAT], ids=str)
def test_pipe_is_refused_at_once(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(PermissionError, match="no file of yours"):
        open_private(tmp_path / "pipe", flags)


def test_a_file_of_another_user_is_refused_and_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("theirs")
    (tmp_path / "file").chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    with pytest.raises(PermissionError, match="no file of yours"):
        open_private(tmp_path / "file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    assert (tmp_path / "file").read_text() == "theirs"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666


def test_a_link_that_appears_and_vanishes_is_never_followed(tmp_path: Path) -> None:
    """A thread puts a link and a file in turn where another writes."""
    target, place = tmp_path / "target", tmp_path / "place"
    target.write_text("precious")
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            (tmp_path / "link").symlink_to(target)
            (tmp_path / "link").rename(place)
            (tmp_path / "file").touch()
            (tmp_path / "file").rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(_ROUNDS):
            try:
                fd = open_private(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            except OSError as e:
                assert e.errno == errno.ELOOP  # noqa: PT017  one of two outcomes
            else:
                os.write(fd, b"overwritten")
                os.close(fd)
    finally:
        is_over.set()
        thread.join()

    assert target.read_text() == "precious"


def test_existing_directories_suffice(tmp_path: Path) -> None:
    make_directories(str(tmp_path))
    make_directories(f"{tmp_path}/a/")

    assert (tmp_path / "a").is_dir()
