"""Copies a file or a tree from this machine to a remote host."""

from __future__ import annotations

import os
import secrets
from functools import partial

from jpsi import TransferError
from jpsi.plugin.engine import Progress
from jpsi_engine.host import changed_file_error
from jpsi_engine.transfer import remote_commands as commands
from jpsi_engine.transfer.checksums import SpanSums, Tool
from jpsi_engine.transfer.copy import SMALL, Count, feed, groups, opened
from jpsi_engine.transfer.part_files import part_of
from jpsi_engine.transfer.remote_listing import read_mode
from jpsi_engine.transfer.remote_shell import RemoteShell
from jpsi_engine.transfer.trees import Entry, Kind, tree

_WRITTEN = "written"


class RemotePut:
    """The transfer of one file or tree to a remote host; `run` is called once."""

    def __init__(self, side: RemoteShell, source: str, target: str, progress: Progress | None) -> None:
        self._side = side
        self._source = source
        self._target = target
        self._entries = tree(source)
        self._count = Count(progress, sum(entry.size for entry in self._entries))

    def run(self) -> None:
        """Copy all files; raises as `JobFiles.put` does."""
        files = [it for it in self._entries if it.kind is Kind.FILE]
        is_new = self._make([it for it in self._entries if it.kind is not Kind.FILE])
        small = [it for it in files if it.size <= SMALL]
        for group in groups(small, self._target, self._side.piece):
            self._write(group)
        for entry in files:
            if entry.size > SMALL:
                self._put(entry)
        # A root directory that existed keeps its mode: it may belong to another user, or be a home directory.
        made = [it for it in self._entries if it.kind is Kind.DIRECTORY and (it.name or is_new)]
        for group in groups(reversed(made), self._target, 0):
            command = commands.setting_modes(group, self._target)
            self._side.ask(command, self._paths(group), _WRITTEN)

    def _make(self, entries: list[Entry]) -> bool:
        """Make directories and links; return True if the root did not exist."""
        is_new = False
        for group in groups(entries, self._target, 0):
            command = commands.making(group, self._target)
            said = self._side.ask(command, self._paths(group), _WRITTEN)
            is_new = is_new or (not group[0].name and b"0" in said.split())
        return is_new

    def _write(self, group: list[Entry]) -> None:
        """Write a group of small files with one command."""
        contents = [self._content(entry) for entry in group]
        paths = self._paths(group)
        files = [
            (path, part_of(path), len(content), entry.mode)
            for entry, path, content in zip(group, paths, contents, strict=True)
        ]
        input_name = f"{part_of(paths[0])}.{secrets.token_hex(4)}"
        self._side.ask(commands.writing(files, input_name), paths, _WRITTEN, b"".join(contents))
        self._count.add(sum(entry.size for entry in group))

    def _paths(self, group: list[Entry]) -> list[str]:
        return [entry.below(self._target) for entry in group]

    def _content(self, entry: Entry) -> bytes:
        with opened(entry.below(self._source)) as fd, open(fd, "rb", closefd=False) as file:
            return file.read()

    def _put(self, entry: Entry) -> None:
        """Write a large file in chunks, and resume an interrupted transfer."""
        target = entry.below(self._target)
        part = part_of(target)
        said = self._side.ask(commands.looking(target, part), [target], _WRITTEN).split()
        tool, part_size, target_size = Tool(said[0].decode("ascii")), int(said[1]), int(said[2])
        with opened(entry.below(self._source)) as fd:
            fed = partial(feed, fd)
            # the target is complete if an earlier transfer finished, but its answer was lost
            is_same = target_size == entry.size
            is_there = is_same and self._side.equal(target, tool, entry.size, fed) == entry.size
            if is_there:
                self._count.add(entry.size)
            else:
                offset = self._side.equal(part, tool, min(part_size, entry.size), fed)
                sums = self._send(fd, entry, tool, offset)
                if self._side.sums(part, tool, entry.size) != sums:
                    raise changed_file_error(part, _BY_OTHERS)
        self._finish(entry, target if is_there else part)

    def _send(self, fd: int, entry: Entry, tool: Tool, offset: int) -> list[str]:
        """Send the file from the offset on, and return the checksums of all its spans."""
        target = entry.below(self._target)
        part, sums = part_of(target), SpanSums(tool)
        feed(fd, sums, offset)
        self._count.add(offset)
        while offset < entry.size:
            data = os.pread(fd, min(self._side.piece, entry.size - offset), offset)
            if not data:
                raise changed_file_error(entry.below(self._source), "while it was read")
            size = int(self._side.move(commands.appending(part, offset), target, _WRITTEN, data))
            sums.feed(data)
            offset += len(data)
            if size != offset:
                raise changed_file_error(part, _BY_OTHERS)
            self._count.add(len(data))
        return sums.all

    def _finish(self, entry: Entry, place: str) -> None:
        target = entry.below(self._target)
        command = commands.finishing(place, target, entry.mode, entry.size)
        words = self._side.ask(command, [target], _WRITTEN).decode(errors="surrogateescape").split(None, 5)
        size, mode = int(words[4]), read_mode(words[0])
        if size != entry.size or mode != entry.mode:
            has, wanted = f"{size} and the mode {mode:04o}", f"{entry.size} and {entry.mode:04o}"
            msg = f"{target}, where jobs run, was written, but has the size {has}, and not {wanted}"
            raise TransferError(msg)


_BY_OTHERS = "while it was written, by somebody else"
