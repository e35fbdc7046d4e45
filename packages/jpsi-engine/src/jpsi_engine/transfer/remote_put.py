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
from jpsi_engine.transfer.copy import SMALL, ProgressCounter, feed, group_entries, open_source
from jpsi_engine.transfer.part_files import part_path
from jpsi_engine.transfer.remote_listing import read_mode
from jpsi_engine.transfer.remote_shell import RemoteShell
from jpsi_engine.transfer.trees import Entry, Kind, tree

_WRITTEN = "written"


class RemotePut:
    """The transfer of one file or tree to a remote host; `run` is called once."""

    def __init__(self, shell: RemoteShell, source: str, target: str, progress: Progress | None) -> None:
        self._shell = shell
        self._source = source
        self._target = target
        self._entries = tree(source)
        self._counter = ProgressCounter(progress, sum(entry.size for entry in self._entries))

    def run(self) -> None:
        """Copy all files; raises as `JobFiles.put` does."""
        files = [it for it in self._entries if it.kind is Kind.FILE]
        is_new = self._make([it for it in self._entries if it.kind is not Kind.FILE])
        small = [it for it in files if it.size <= SMALL]
        for group in group_entries(small, self._target, self._shell.chunk_bytes):
            self._write(group)
        for entry in files:
            if entry.size > SMALL:
                self._put(entry)
        # A root directory that existed keeps its mode: it may belong to another user, or be a home directory.
        directories = [it for it in self._entries if it.kind is Kind.DIRECTORY and (it.name or is_new)]
        for group in group_entries(reversed(directories), self._target, 0):
            command = commands.chmod_command(group, self._target)
            self._shell.run_command(command, self._paths(group), _WRITTEN)

    def _make(self, entries: list[Entry]) -> bool:
        """Make directories and links; return True if the root did not exist."""
        is_new = False
        for group in group_entries(entries, self._target, 0):
            command = commands.make_command(group, self._target)
            output = self._shell.run_command(command, self._paths(group), _WRITTEN)
            is_new = is_new or (not group[0].name and b"0" in output.split())
        return is_new

    def _write(self, group: list[Entry]) -> None:
        """Write a group of small files with one command."""
        contents = [self._content(entry) for entry in group]
        paths = self._paths(group)
        files = [
            (path, part_path(path), len(content), entry.mode)
            for entry, path, content in zip(group, paths, contents, strict=True)
        ]
        input_name = f"{part_path(paths[0])}.{secrets.token_hex(4)}"
        command = commands.write_command(files, input_name)
        self._shell.run_command(command, paths, _WRITTEN, b"".join(contents))
        self._counter.add(sum(entry.size for entry in group))

    def _paths(self, group: list[Entry]) -> list[str]:
        return [entry.below(self._target) for entry in group]

    def _content(self, entry: Entry) -> bytes:
        with open_source(entry.below(self._source)) as fd, open(fd, "rb", closefd=False) as file:
            return file.read()

    def _put(self, entry: Entry) -> None:
        """Write a large file in chunks, and resume an interrupted transfer."""
        target = entry.below(self._target)
        part = part_path(target)
        output = self._shell.run_command(commands.inspect_command(target, part), [target], _WRITTEN).split()
        tool, part_size, target_size = Tool(output[0].decode("ascii")), int(output[1]), int(output[2])
        with open_source(entry.below(self._source)) as fd:
            feed_data = partial(feed, fd)
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
        feed(fd, sums, offset)
        self._counter.add(offset)
        while offset < entry.size:
            data = os.pread(fd, min(self._shell.chunk_bytes, entry.size - offset), offset)
            if not data:
                raise changed_file_error(entry.below(self._source), "while it was read")
            size = int(self._shell.run_chunk(commands.append_command(part, offset), target, _WRITTEN, data))
            sums.feed(data)
            offset += len(data)
            if size != offset:
                raise changed_file_error(part, _WHILE_WRITTEN)
            self._counter.add(len(data))
        return sums.all

    def _finish(self, entry: Entry, written_path: str) -> None:
        target = entry.below(self._target)
        command = commands.finish_command(written_path, target, entry.mode, entry.size)
        output = self._shell.run_command(command, [target], _WRITTEN)
        fields = output.decode(errors="surrogateescape").split(None, 5)
        size, mode = int(fields[4]), read_mode(fields[0])
        if size != entry.size or mode != entry.mode:
            found, wanted = f"{size} and the mode {mode:04o}", f"{entry.size} and {entry.mode:04o}"
            msg = f"{target}, where jobs run, was written, but has the size {found}, and not {wanted}"
            raise TransferError(msg)


_WHILE_WRITTEN = "while it was written, by another process"
