"""Copies files and trees between this machine and a remote host: small files in groups, large in chunks.

A name in a listing that leads out of the tree is refused, as it could make a transfer write anywhere.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from functools import partial

import attrs

from jpsi import TransferError
from jpsi.plugin.engine import Progress
from jpsi_engine.host import changed_file_error
from jpsi_engine.transfer import remote_commands as commands
from jpsi_engine.transfer.checksums import SpanSums, Tool
from jpsi_engine.transfer.local_files import open_source
from jpsi_engine.transfer.part_files import append, complete, open_part_file, part_path
from jpsi_engine.transfer.progress import ProgressCounter
from jpsi_engine.transfer.remote_commands import shell_command
from jpsi_engine.transfer.remote_shell import RemoteShell
from jpsi_engine.transfer.trees import Entry, Kind, make_entries, set_modes, tree, unsupported_entry

#: Files up to this size, in bytes, are transferred in groups.
SMALL = 1 << 18
# The limits of a command's arguments.
_MAX_ENTRIES = 100
_MAX_LETTERS = 1 << 15
_CHUNK = 1 << 20
_READ, _WRITTEN = "read", "written"
_WHILE_READ, _WHILE_WRITTEN = "while it was read", "while it was written, by another process"


@attrs.define(eq=False)
class _RemoteCopy:
    """The transfer of one file or tree; `run` is called once.

    Args:
        shell: runs commands on the remote host.
        source: the file or tree to copy.
        target: the path of the copy.
        remote: the one of the two that is on the remote host.
        entries: the entries of the source.
        counter: reports the progress.
    """

    _shell: RemoteShell
    _source: str
    _target: str
    _remote: str
    _entries: list[Entry]
    _counter: ProgressCounter

    def _copy_files(self) -> None:
        files = [it for it in self._entries if it.kind is Kind.FILE]
        small = [it for it in files if it.size <= SMALL]
        for group in _group_entries(small, self._remote, self._shell.chunk_bytes):
            self._copy_group(group)
        for entry in files:
            if entry.size > SMALL:
                self._copy_large(entry)

    def _copy_group(self, group: list[Entry]) -> None:
        """Copy a group of small files with one command."""
        raise NotImplementedError

    def _copy_large(self, entry: Entry) -> None:
        """Copy a large file in chunks, and resume an interrupted transfer."""
        raise NotImplementedError

    def _remote_paths(self, group: list[Entry]) -> list[str]:
        return [entry.below(self._remote) for entry in group]


class RemoteGet(_RemoteCopy):
    """The transfer of one file or tree from a remote host."""

    def __init__(self, shell: RemoteShell, source: str, target: str, progress: Progress | None) -> None:
        printed = shell.run_command(commands.list_command(source), [source], _READ)
        self._tool, entries = read_listing(printed, source)
        super().__init__(shell, source, target, source, entries, ProgressCounter(progress, entries))

    def run(self) -> None:
        """Copy all files; raises as `JobFiles.get` does."""
        directories = make_entries(self._entries, self._target)
        self._copy_files()
        set_modes(directories, self._target)

    def _copy_group(self, group: list[Entry]) -> None:
        paths = self._remote_paths(group)
        arguments = [it for path, entry in zip(paths, group, strict=True) for it in (path, entry.size)]
        printed = self._shell.run_command(shell_command(commands.READ_MANY, *arguments), paths, _READ)
        if len(printed) != sum(entry.size for entry in group):
            raise changed_file_error(paths[0] if len(paths) == 1 else self._source, _WHILE_READ)
        rest = memoryview(printed)
        for entry in group:
            target = entry.below(self._target)
            with open_part_file(target) as part:
                os.ftruncate(part.fd, 0)
                append(part, rest[: entry.size])
                complete(part, target, entry.mode)
            rest = rest[entry.size :]
            self._counter.add(entry.size)

    def _copy_large(self, entry: Entry) -> None:
        source, target = entry.below(self._source), entry.below(self._target)
        with open_part_file(target) as part:
            kept_bytes = min(os.fstat(part.fd).st_size, entry.size) // commands.BLOCK * commands.BLOCK
            offset = self._shell.common_prefix(source, self._tool, kept_bytes, partial(_feed, part.fd))
            os.ftruncate(part.fd, offset)
            sums = SpanSums(self._tool)
            _feed(part.fd, sums, offset)
            self._counter.add(offset)
            while offset < entry.size:
                data = self._read_chunk(source, offset, min(self._shell.chunk_bytes, entry.size - offset))
                append(part, data)
                sums.feed(data)
                offset += len(data)
                self._counter.add(len(data))
            if self._shell.read_checksums(source, self._tool, entry.size) != sums.all:
                raise changed_file_error(source, _WHILE_READ)
            complete(part, target, entry.mode)

    def _read_chunk(self, source: str, offset: int, count: int) -> bytes:
        blocks = offset // commands.BLOCK, -(-count // commands.BLOCK)
        data = self._shell.run_chunk(shell_command(commands.READ, source, *blocks), source, _READ)[:count]
        if len(data) != count:
            raise changed_file_error(source, _WHILE_READ)
        return data


class RemotePut(_RemoteCopy):
    """The transfer of one file or tree to a remote host."""

    def __init__(self, shell: RemoteShell, source: str, target: str, progress: Progress | None) -> None:
        entries = tree(source)
        super().__init__(shell, source, target, target, entries, ProgressCounter(progress, entries))

    def run(self) -> None:
        """Copy all files; raises as `JobFiles.put` does."""
        is_new = self._make([it for it in self._entries if it.kind is not Kind.FILE])
        self._copy_files()
        # A root directory that existed keeps its mode: it may belong to another user, or be a home directory.
        directories = [it for it in self._entries if it.kind is Kind.DIRECTORY and (it.name or is_new)]
        for group in _group_entries(reversed(directories), self._target, 0):
            command = commands.chmod_command(group, self._target)
            self._shell.run_command(command, self._remote_paths(group), _WRITTEN)

    def _make(self, entries: list[Entry]) -> bool:
        """Make directories and links; return True if the root did not exist."""
        is_new = False
        for group in _group_entries(entries, self._target, 0):
            command = commands.make_command(group, self._target)
            output = self._shell.run_command(command, self._remote_paths(group), _WRITTEN)
            is_new = is_new or (not group[0].name and b"0" in output.split())
        return is_new

    def _copy_group(self, group: list[Entry]) -> None:
        contents = [self._content(entry) for entry in group]
        paths, arguments = self._remote_paths(group), list[object]()
        for entry, path, content in zip(group, paths, contents, strict=True):
            arguments += [path, part_path(path), len(content), commands.octal(entry.mode)]
        data, input_name = b"".join(contents), f"{part_path(paths[0])}.{secrets.token_hex(4)}"
        command = shell_command(commands.WRITE, input_name, len(data), *arguments)
        self._shell.run_command(command, paths, _WRITTEN, data)
        self._counter.add(sum(entry.size for entry in group))

    def _content(self, entry: Entry) -> bytes:
        with open_source(entry.below(self._source)) as fd, open(fd, "rb", closefd=False) as file:
            return file.read()

    def _copy_large(self, entry: Entry) -> None:
        target = entry.below(self._target)
        part = part_path(target)
        inspect_command = shell_command(commands.INSPECT, target, part)
        output = self._shell.run_command(inspect_command, [target], _WRITTEN).split()
        tool, part_size, target_size = Tool(output[0].decode("ascii")), int(output[1]), int(output[2])
        with open_source(entry.below(self._source)) as fd:
            feed_data = partial(_feed, fd)
            # the target is complete if an earlier transfer finished, but its answer was lost
            is_same = target_size == entry.size
            same_bytes = self._shell.common_prefix(target, tool, entry.size, feed_data) if is_same else -1
            is_complete = same_bytes == entry.size
            if is_complete:
                self._counter.add(entry.size)
            else:
                offset = self._shell.common_prefix(part, tool, min(part_size, entry.size), feed_data)
                sums = self._send(fd, entry, tool, offset)
                if self._shell.read_checksums(part, tool, entry.size) != sums:
                    raise changed_file_error(part, _WHILE_WRITTEN)
        self._finish(entry, target if is_complete else part)

    def _send(self, fd: int, entry: Entry, tool: Tool, offset: int) -> list[str]:
        """Send the file from the offset on, and return the checksums of all its spans."""
        target = entry.below(self._target)
        part, sums = part_path(target), SpanSums(tool)
        _feed(fd, sums, offset)
        self._counter.add(offset)
        while offset < entry.size:
            data = os.pread(fd, min(self._shell.chunk_bytes, entry.size - offset), offset)
            if not data:
                raise changed_file_error(entry.below(self._source), _WHILE_READ)
            command = shell_command(commands.APPEND, part, offset)
            size = int(self._shell.run_chunk(command, target, _WRITTEN, data))
            sums.feed(data)
            offset += len(data)
            if size != offset:
                raise changed_file_error(part, _WHILE_WRITTEN)
            self._counter.add(len(data))
        return sums.all

    def _finish(self, entry: Entry, written_path: str) -> None:
        target, wanted_mode = entry.below(self._target), commands.octal(entry.mode)
        command = shell_command(commands.FINISH, written_path, target, wanted_mode, entry.size)
        output = self._shell.run_command(command, [target], _WRITTEN)
        fields = output.decode(errors="surrogateescape").split(None, 5)
        size, mode = int(fields[4]), commands.octal(read_mode(fields[0]))
        if (size, mode) != (entry.size, wanted_mode):
            found, wanted = f"{size} and the mode {mode}", f"{entry.size} and {wanted_mode}"
            msg = f"{target}, where jobs run, was written, but has the size {found}, and not {wanted}"
            raise TransferError(msg)


def _group_entries(entries: Iterable[Entry], root: str, most_bytes: int) -> Iterator[list[Entry]]:
    """Yield the entries in groups, each of which fits the arguments of one command and one chunk."""
    group: list[Entry] = []
    letters = count = 0
    for entry in entries:
        length = len(entry.below(root)) + len(entry.text)
        is_full = len(group) >= _MAX_ENTRIES or letters + length > _MAX_LETTERS
        if group and (is_full or count + entry.size > most_bytes):
            yield group
            group, letters, count = [], 0, 0
        group.append(entry)
        letters, count = letters + length, count + entry.size
    if group:
        yield group


def _feed(fd: int, sums: SpanSums, count: int) -> None:
    """Feed the first `count` bytes of a file to the checksums."""
    offset = 0
    while offset < count and (data := os.pread(fd, min(_CHUNK, count - offset), offset)):
        sums.feed(data)
        offset += len(data)


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
