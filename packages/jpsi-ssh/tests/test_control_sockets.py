"""The directory of control sockets, which no other user can enter or replace."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import TransportError
from jpsi_ssh.address import Address
from jpsi_ssh.openssh.control_master import control_path

ADDRESS = Address(host="login.example")


@pytest.fixture
def runtime() -> Iterator[Path]:
    """Yield a directory with a short path, as the paths of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="j-") as folder:
        yield Path(folder)


def path_in(runtime: Path) -> str:
    return control_path(ADDRESS, 0, {"XDG_RUNTIME_DIR": str(runtime)})


@pytest.mark.parametrize("umask", [0, 0o022, 0o777], ids="{:03o}".format)
def test_the_directory_is_private_with_any_umask(runtime: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = path_in(runtime)
    finally:
        os.umask(before)

    assert path.startswith(f"{runtime}/jpsi-ssh/")
    assert stat.S_IMODE((runtime / "jpsi-ssh").stat().st_mode) == 0o700


def test_a_parent_directory_that_others_can_write_is_refused(runtime: Path) -> None:
    runtime.chmod(0o777)

    with pytest.raises(TransportError, match=rf"{runtime} can be written by others \(yours, mode 0777\)"):
        path_in(runtime)

    assert list(runtime.iterdir()) == []


def test_a_sticky_parent_directory_is_accepted(runtime: Path) -> None:
    runtime.chmod(0o1777)

    assert path_in(runtime).startswith(f"{runtime}/jpsi-ssh/")


@pytest.mark.parametrize("kind", ["open", "link"])
def test_directory_that_others_can_enter_is_refused(runtime: Path, kind: str) -> None:
    if kind == "link":
        (runtime / "other").mkdir(mode=0o700)
        (runtime / "jpsi-ssh").symlink_to("other")
    else:
        (runtime / "jpsi-ssh").mkdir()
        (runtime / "jpsi-ssh").chmod(0o750)

    with pytest.raises(TransportError, match="you alone can enter"):
        path_in(runtime)
