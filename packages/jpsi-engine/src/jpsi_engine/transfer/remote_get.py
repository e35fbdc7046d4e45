"""Copies a file or a tree from a remote host to this machine."""

from __future__ import annotations

import os
from functools import partial

from jpsi.plugin.engine import Progress
from jpsi_engine.host import changed_file_error
from jpsi_engine.transfer import remote_commands as commands
from jpsi_engine.transfer.checksums import SpanSums
from jpsi_engine.transfer.copy import SMALL, ProgressCounter, feed, group_entries
from jpsi_engine.transfer.mkdir import make_entries, set_modes
from jpsi_engine.transfer.part_files import append, complete, open_part_file
from jpsi_engine.transfer.remote_listing import read_listing
from jpsi_engine.transfer.remote_shell import RemoteShell
from jpsi_engine.transfer.trees import Entry, Kind

_READ = "read"
_WHILE_READ = "while it was read"


class RemoteGet:
    """The transfer of one file or tree from a remote host; `run` is called once."""

    def __init__(self, shell: RemoteShell, source: str, target: str, progress: Progress | None) -> None:
        self._shell = shell
        self._source = source
        self._target = target
        printed = shell.run_command(commands.list_command(source), [source], _READ)
        self._tool, self._entries = read_listing(printed, source)
        self._counter = ProgressCounter(progress, sum(entry.size for entry in self._entries))

    def run(self) -> None:
        """Copy all files; raises as `JobFiles.get` does."""
        files = [it for it in self._entries if it.kind is Kind.FILE]
        directories = make_entries(self._entries, self._target)
        small = [it for it in files if it.size <= SMALL]
        for group in group_entries(small, self._source, self._shell.chunk_bytes):
            self._read(group)
        for entry in files:
            if entry.size > SMALL:
                self._get(entry)
        set_modes(directories, self._target)

    def _read(self, group: list[Entry]) -> None:
        """Read a group of small files with one command."""
        paths = [entry.below(self._source) for entry in group]
        command = commands.read_many_command(zip(paths, (entry.size for entry in group), strict=True))
        printed = self._shell.run_command(command, paths, _READ)
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

    def _get(self, entry: Entry) -> None:
        """Read a large file in chunks, and resume an interrupted transfer."""
        source, target = entry.below(self._source), entry.below(self._target)
        with open_part_file(target) as part:
            kept_bytes = min(os.fstat(part.fd).st_size, entry.size) // commands.BLOCK * commands.BLOCK
            offset = self._shell.common_prefix(source, self._tool, kept_bytes, partial(feed, part.fd))
            os.ftruncate(part.fd, offset)
            sums = SpanSums(self._tool)
            feed(part.fd, sums, offset)
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
        data = self._shell.run_chunk(commands.read_command(source, offset, count), source, _READ)[:count]
        if len(data) != count:
            raise changed_file_error(source, _WHILE_READ)
        return data
