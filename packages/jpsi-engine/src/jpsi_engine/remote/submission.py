"""A submission on a remote host: shell text that writes the files and submits, and the parser of its output.

The text is one compound command, so that the shell executes nothing of it before all of it has arrived.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from jpsi.plugin import Command, CommandResult, ShellLine, line, word
from jpsi.plugin.kit import command_lines
from jpsi_engine.remote.ownership import UNSAFE, render_unsafe_function
from jpsi_engine.verdict import SIGNAL_BASE

_LAST = r"\n%s %s\n"


class RemoteOutcome(StrEnum):
    """The step that a submission reached: the last word of the output, if that is no exit code."""

    #: The submit command has ended.
    ENDED = "ended"
    #: Another process made this attempt; nothing was submitted.
    TAKEN = "taken"
    #: Other users could change the files; nothing was submitted.
    NOT_PRIVATE = "not-private"
    #: The files could not be written; nothing was submitted.
    NOT_WRITTEN = "not-written"
    #: The submit command does not exist; nothing was submitted.
    NOT_FOUND = "not-found"
    #: The output was cut short, so it is not known whether the submit command ran.
    UNKNOWN = "unknown"


@attrs.frozen(slots=True, kw_only=True)
class RemoteJobFolder:
    """The remote files of one job or array."""

    path: str
    #: True if the folder must not exist yet. Otherwise the process that creates the first file has the
    #: attempt.
    is_new: bool
    #: The content of the files, by their names in the folder. No other process may have created the first.
    files: Mapping[str, str]


@attrs.frozen(slots=True, kw_only=True)
class RemoteSubmission:
    """The files to write on the remote host, and the one command that submits them."""

    #: The root of the remote spool, and the directories that must exist in it.
    root: str
    directories: Sequence[str]
    folders: Sequence[RemoteJobFolder]
    #: The submit command; its standard input is written to a file as well.
    command: Command
    #: The names, in the first folder, of the files for the submit command's input and for its output.
    script: str
    answer: str


def render_submission(submission: RemoteSubmission, nonce: str) -> str:
    """Return shell text that writes the files and submits; `nonce` must not occur in any of the files."""
    return "\n".join(["{", *_lines(submission, nonce), "}", ""])


def _lines(submission: RemoteSubmission, nonce: str) -> Iterator[str]:
    yield "_jpsi_umask=$(umask)"
    yield "umask 077"
    yield f'_jpsi_end() {{ {line("printf", _LAST, nonce)} "$1"; exit; }}'
    yield "_jpsi_made=0"
    yield "_jpsi_undo() {"
    for number, folder in enumerate(submission.folders, 1):
        made = [folder.path] if folder.is_new else [f"{folder.path}/{name}" for name in folder.files]
        yield f'    [ "$_jpsi_made" -lt {number} ] || {line("rm", "-rf", *made)}'
    yield '    _jpsi_end "$1"'
    yield "}"
    yield render_unsafe_function(submission.root)
    yield "_jpsi_check() {"
    yield f"    _jpsi_found=$({UNSAFE})"
    end = f"_jpsi_end {RemoteOutcome.NOT_PRIVATE}"
    yield f"""    [ -z "$_jpsi_found" ] || {{ printf '%s\\n' "$_jpsi_found"; {end}; }}"""
    yield "}"
    # before any file is made, as other users could move files in an unsafe directory
    yield "_jpsi_check"
    directories = line("mkdir", "-p", submission.root, *submission.directories)
    # the umask has no effect in a directory with a default access control list
    making = f"{{ {directories} && {line('chmod', '700', submission.root)}; }}"
    exist = " && ".join(line("test", "-d", room) for room in submission.directories)
    yield f"{{ {exist}; }} || {{ {making} && _jpsi_check; }} || _jpsi_end {RemoteOutcome.NOT_WRITTEN}"
    # do not run a script that other users can change
    yield f"{_is_private(submission.root)} || _jpsi_end {RemoteOutcome.NOT_PRIVATE}"
    for number, folder in enumerate(submission.folders, 1):
        yield from _make_folder(folder, number)
        for name, content in folder.files.items():
            yield from _write_file(f"{folder.path}/{name}", content, nonce)
    command, reads, first = submission.command, "/dev/null", submission.folders[0].path
    if command.stdin is not None:
        reads = f"{first}/{submission.script}"
        yield from _write_file(reads, command.stdin, nonce)
    yield "_jpsi_output=$("
    yield 'umask "$_jpsi_umask"'
    yield f"exec <{word(reads)}"
    yield from command_lines(command, ShellLine(f"{line('echo', _missing(nonce))}; exit"))
    yield ")"
    yield "_jpsi_code=$?"
    yield f'[ "$_jpsi_output" = {word(_missing(nonce))} ] && _jpsi_undo {RemoteOutcome.NOT_FOUND}'
    # Write the answer to a file before printing it: if the connection is lost, the shell ends at the print.
    # The submission counts even if the file cannot be written.
    answer = word(f"{first}/{submission.answer}")
    yield f'printf "%s\\n" "$_jpsi_code" "$_jpsi_output" 2>/dev/null >{answer}'
    yield 'printf "%s\\n" "$_jpsi_output"'
    yield '_jpsi_end "$_jpsi_code"'


def _is_private(path: str) -> str:
    """Return a condition: the user owns the directory, and no other user can write to it."""
    writable = line("find", "-H", path, "-prune", "(", "-perm", "-020", "-o", "-perm", "-002", ")")
    return f'[ -O {word(path)} ] && [ -z "$({writable})" ]'


def _make_folder(folder: RemoteJobFolder, number: int) -> Iterator[str]:
    """Yield lines that make a folder, or its first file, unless another process has made it."""
    path = word(folder.path)
    if folder.is_new:
        taken = f"[ -d {path} ] && _jpsi_undo {RemoteOutcome.TAKEN}"
        yield f"mkdir {path} || {{ {taken}; _jpsi_undo {RemoteOutcome.NOT_WRITTEN}; }}"
        yield f"_jpsi_made={number}"
        return
    first = word(f"{folder.path}/{next(iter(folder.files))}")
    yield f"mkdir -p {path} || _jpsi_undo {RemoteOutcome.NOT_WRITTEN}"
    # in a subshell, as some shells exit if a redirection fails
    yield f"( set -C; true >{first} ) || {{ [ -e {first} ] && _jpsi_undo {RemoteOutcome.TAKEN}"
    yield f"_jpsi_undo {RemoteOutcome.NOT_WRITTEN}; }}"
    yield f"_jpsi_made={number}"


def _write_file(path: str, content: str, nonce: str) -> Iterator[str]:
    """Yield lines that write a file with this content, which ends with a newline."""
    yield f"cat >{word(path)} <<'{nonce}' || _jpsi_undo {RemoteOutcome.NOT_WRITTEN}"
    yield content.removesuffix("\n")
    yield nonce


def _missing(nonce: str) -> str:
    return f"{nonce} {RemoteOutcome.NOT_FOUND}"


def parse_submission(result: CommandResult, nonce: str) -> tuple[RemoteOutcome, CommandResult]:
    """Return the step that the submission reached, and the result of the submit command.

    The result is that of the whole shell text if the submit command's own exit code is not known.
    """
    printed, mark, status = result.stdout.rpartition(f"\n{nonce} ")
    verdict = status.strip()
    if not mark or not status.endswith("\n"):
        return RemoteOutcome.UNKNOWN, result
    if not verdict.isdecimal():
        return RemoteOutcome(verdict), attrs.evolve(result, stdout=printed)
    code = int(verdict)
    # a shell reports signal n as 128 + n
    number = code - SIGNAL_BASE
    return RemoteOutcome.ENDED, attrs.evolve(
        result, stdout=printed, returncode=-number if number in _SIGNALS else code, timed_out=False
    )


_SIGNALS = frozenset(map(int, signal.valid_signals()))
