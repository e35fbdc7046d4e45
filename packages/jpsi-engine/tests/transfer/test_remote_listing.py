"""The parser of listings of remote trees: names are unchanged, and none leads out of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi.model.errors import TransferError
from jpsi_engine.host.local_transport import LocalTransport
from jpsi_engine.transfer.checksums import Tool
from jpsi_engine.transfer.remote_commands import list_command
from jpsi_engine.transfer.remote_copy import read_listing, read_mode
from jpsi_engine.transfer.trees import Entry, Kind, tree

_DIRECTORY = "drwxr-xr-x 2 0 0 4096 Nov 22 03:00 /r\n\0/r\0\0"


def _record(path: str, text: str = "-rw-r--r-- 1 0 0 5 Nov 22 03:00 x\n", link: str = "") -> str:
    return f"{text}\0{path}\0{link}\0"


def _listing(*records: str) -> bytes:
    return ("cksum\n" + "".join(records)).encode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("-rwxr-xr-x", 0o755),
        ("-rw-r-----.", 0o640),
        ("drwsr-sr-t+", 0o755),
        ("-rwSr-Sr-T@", 0o644),
        ("----------", 0),
    ],
)
def test_modes_are_read(text: str, mode: int) -> None:
    assert read_mode(text) == mode


def test_entries_have_names_below_the_root() -> None:
    link = _record("/r/d\n/l", "lrwxrwxrwx 1 0 0 1 Nov 22 03:00 /r/d\n/l -> a\n", "a\n\n.")
    directory = _record("/r/d\n", "drwx------ 1 0 0 1 Nov 22 03:00 /r/d\n\n")

    tool, entries = read_listing(_listing(_DIRECTORY, directory, link), "/r")

    assert tool is Tool.CKSUM
    assert entries == [
        Entry("", Kind.DIRECTORY, 0o755),
        Entry("d\n", Kind.DIRECTORY, 0o700),
        Entry("d\n/l", Kind.LINK, 0o777, text="a\n"),
    ]


@pytest.mark.parametrize("path", ["/r/../x", "/r/..", "/r/a/x", "/etc/passwd", "/r//x", "/r/"])
def test_names_that_lead_out_of_the_tree_are_refused(path: str) -> None:
    with pytest.raises(TransferError, match="leads out of it"):
        read_listing(_listing(_DIRECTORY, _record("/r/a"), _record(path)), "/r")


@pytest.mark.parametrize("path", ["/r/../x", "/r/x", "/x"])
def test_the_root_is_the_first_entry(path: str) -> None:
    with pytest.raises(TransferError, match="leads out of it"):
        read_listing(_listing(_record(path)), "/r")


def test_a_name_is_that_of_one_thing() -> None:
    """A link that is listed as a directory as well would have the content of that written to its target."""
    link = _record("/r/a", "lrwxrwxrwx 1 0 0 1 Nov 22 03:00 /r/a -> /etc\n", "/etc\n.")
    directory = _record("/r/a", "drwxr-xr-x 2 0 0 4096 Nov 22 03:00 /r/a\n")

    with pytest.raises(TransferError, match="leads out of it"):
        read_listing(_listing(_DIRECTORY, link, directory, _record("/r/a/passwd")), "/r")


@pytest.mark.parametrize("printed", [b"", b"cksum\n", b"cksum\nls: wrong\0/r", b"md5sum\nx\0/r\0\0"])
def test_a_listing_that_is_not_whole_is_an_error_that_may_pass(printed: bytes) -> None:
    with pytest.raises(TransferError) as raised:
        read_listing(printed, "/r")

    assert raised.value.transient


def test_a_special_file_is_refused_by_name() -> None:
    with pytest.raises(TransferError, match="/r/pipe cannot be read: it is no file"):
        read_listing(_listing(_DIRECTORY, _record("/r/pipe", "prw-r--r-- 1 0 0 0 Nov 22 03:00 x\n")), "/r")


def test_a_remote_listing_equals_the_local_one(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True, mode=0o711)
    (tmp_path / "a" / "x -> y\n").write_text("12345")
    (tmp_path / "a" / "-l").symlink_to("x -> y\n")
    root = tmp_path / "root"
    root.symlink_to("a")

    result = LocalTransport().exchange(list_command(str(root)))
    _, entries = read_listing(result.stdout, str(root))

    assert sorted(entries, key=lambda it: it.name) == sorted(tree(str(root)), key=lambda it: it.name)
