"""Copies a file or a tree from a remote host to this machine."""

from __future__ import annotations

import os
from functools import partial

from jpsi.plugin.engine import Progress
from jpsi_engine.host import changed_file_error
from jpsi_engine.transfer import remote_commands as commands
from jpsi_engine.transfer.checksums import SpanSums
from jpsi_engine.transfer.copy import SMALL, Count, feed, groups
from jpsi_engine.transfer.mkdir import made_entries, set_modes
from jpsi_engine.transfer.part_files import append, complete, opened_part
from jpsi_engine.transfer.remote_listing import read_listing
from jpsi_engine.transfer.remote_shell import RemoteShell
from jpsi_engine.transfer.trees import Entry, Kind

_READ = "read"
_MEANWHILE = "while it was read"


class RemoteGet:
    """The transfer of one file or tree from a remote host; `run` is called once."""

    def __init__(self, side: RemoteShell, source: str, target: str, progress: Progress | None) -> None:
        self._side = side
        self._source = source
        self._target = target
        printed = side.ask(commands.listing(source), [source], _READ)
        self._tool, self._entries = read_listing(printed, source)
        self._count = Count(progress, sum(entry.size for entry in self._entries))

    def run(self) -> None:
        """Copy all files; raises as `JobFiles.get` does."""
        files = [it for it in self._entries if it.kind is Kind.FILE]
        made = made_entries(self._entries, self._target)
        small = [it for it in files if it.size <= SMALL]
        for group in groups(small, self._source, self._side.piece):
            self._read(group)
        for entry in files:
            if entry.size > SMALL:
                self._get(entry)
        set_modes(made, self._target)

    def _read(self, group: list[Entry]) -> None:
        """Read a group of small files with one command."""
        paths = [entry.below(self._source) for entry in group]
        command = commands.reading_many(zip(paths, (entry.size for entry in group), strict=True))
        printed = self._side.ask(command, paths, _READ)
        if len(printed) != sum(entry.size for entry in group):
            raise changed_file_error(paths[0] if len(paths) == 1 else self._source, _MEANWHILE)
        rest = memoryview(printed)
        for entry in group:
            target = entry.below(self._target)
            with opened_part(target) as part:
                os.ftruncate(part.fd, 0)
                append(part, rest[: entry.size])
                complete(part, target, entry.mode)
            rest = rest[entry.size :]
            self._count.add(entry.size)

    def _get(self, entry: Entry) -> None:
        """Read a large file in chunks, and resume an interrupted transfer."""
        source, target = entry.below(self._source), entry.below(self._target)
        with opened_part(target) as part:
            have = min(os.fstat(part.fd).st_size, entry.size) // commands.BLOCK * commands.BLOCK
            offset = self._side.equal(source, self._tool, have, partial(feed, part.fd))
            os.ftruncate(part.fd, offset)
            sums = SpanSums(self._tool)
            feed(part.fd, sums, offset)
            self._count.add(offset)
            while offset < entry.size:
                data = self._piece(source, offset, min(self._side.piece, entry.size - offset))
                append(part, data)
                sums.feed(data)
                offset += len(data)
                self._count.add(len(data))
            if self._side.sums(source, self._tool, entry.size) != sums.all:
                raise changed_file_error(source, _MEANWHILE)
            complete(part, target, entry.mode)

    def _piece(self, source: str, offset: int, count: int) -> bytes:
        data = self._side.move(commands.reading(source, offset, count), source, _READ)[:count]
        if len(data) != count:
            raise changed_file_error(source, _MEANWHILE)
        return data
