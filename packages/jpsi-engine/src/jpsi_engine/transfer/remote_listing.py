"""Parses the output of the command `remote_commands.LIST` into the entries of a tree.

`remote_copy` lists with it what is to be transferred. A name that leads out of the tree is refused, as it
could make a transfer write anywhere.
"""

from __future__ import annotations

from jpsi import TransferError
from jpsi_engine.host import changed_file_error
from jpsi_engine.transfer.checksums import Tool
from jpsi_engine.transfer.trees import Entry, Kind, unsupported_entry

_KINDS = {"-": Kind.FILE, "d": Kind.DIRECTORY, "l": Kind.LINK}
_RECORD = 3


def read_listing(printed: bytes, root: str) -> tuple[Tool, list[Entry]]:
    """Return the remote host's tool for checksums and the entries of the tree, directories first.

    Raises:
        TransferError: an entry cannot be transferred, or the tree changed meanwhile.
    """
    tool, _, rest = printed.decode(errors="surrogateescape").partition("\n")
    fields = rest.split("\0")
    if tool not in tuple(Tool) or len(fields) % _RECORD != 1 or len(fields) == 1:
        raise changed_file_error(root, "while it was listed")
    records = zip(*(fields[start:-1:_RECORD] for start in range(_RECORD)), strict=True)
    entries = [_entry(line.strip("\n"), path, link, root) for line, path, link in records]
    _check_names(entries, root)
    return Tool(tool), entries


def _entry(line: str, path: str, link: str, root: str) -> Entry:
    name = "" if path == root else path.removeprefix(root.rstrip("/")).removeprefix("/")
    words = line.split(None, 5)
    kind = _KINDS.get(line[:1])
    if kind is None:
        raise unsupported_entry(path)
    size = int(words[4]) if kind is Kind.FILE else 0
    return Entry(name, kind, read_mode(words[0]), size, link.removesuffix(".").removesuffix("\n"))


def _check_names(entries: list[Entry], root: str) -> None:
    """Raise unless each entry is in a directory of the tree: names must not lead out of it."""
    known: dict[str, Kind] = {}
    for entry in entries:
        parent, _, last = entry.name.rpartition("/")
        is_plain = last not in ("", ".", "..") and not entry.name.startswith("/")
        is_below = is_plain and known.get(parent) is Kind.DIRECTORY
        # a name that is both a directory and a link could lead anywhere
        if entry.name in known or not (is_below if known else not entry.name):
            msg = f"{root}, where jobs run, cannot be read: the name {entry.name!r} leads out of it"
            raise TransferError(msg)
        known[entry.name] = entry.kind


def read_mode(text: str) -> int:
    """Return the permission bits in a mode as ls(1) prints it.

    >>> oct(read_mode("-rwxr-s--T"))
    '0o750'
    """
    bits = [letter in present for letter, present in zip(text[1:10], _PRESENT, strict=False)]
    return sum(1 << (8 - place) for place, is_set in enumerate(bits) if is_set)


# s and t mean execute permission and one more bit.
_PRESENT = ("r", "w", "xs", "r", "w", "xs", "r", "w", "xt")
