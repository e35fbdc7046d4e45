"""A submission where files are elsewhere: shell text that writes down and submits, and what it answers.

The text is one compound command, so that no part of it is carried out before all of it is there.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto

import attrs

from jpsi.plugin import Command, CommandResult, ShellLine, line, word
from jpsi.plugin.kit import command_lines
from jpsi_engine.remote.ownership import UNSAFE, unsafe_function
from jpsi_engine.verdict import SIGNAL_BASE

# What the last line says, after the nonce, where it is not the exit code of the submit command.
_TAKEN = "taken"
_NOT_PRIVATE = "not-private"
_NOT_WRITTEN = "not-written"
_NOT_FOUND = "not-found"
_LAST = r"\n%s %s\n"


class FarOutcome(Enum):
    """How far a submission came."""

    #: The submit command has ended.
    ENDED = auto()
    #: Somebody else made this attempt; nothing was submitted.
    TAKEN = auto()
    #: Others could change what is written down; nothing was submitted.
    NOT_PRIVATE = auto()
    #: It could not be written down; nothing was submitted.
    NOT_WRITTEN = auto()
    #: There is no such submit command; nothing was submitted.
    NOT_FOUND = auto()
    #: Nobody can tell: what should have said it was cut short.
    UNKNOWN = auto()


@attrs.frozen(slots=True, kw_only=True)
class FarFolder:
    """What is written down over there of one job or array."""

    path: str
    #: Whether nobody may have made the folder before; otherwise whoever makes the first file has the attempt.
    is_new: bool
    #: What is written, by the name in the folder. The first one is made by nobody else.
    files: Mapping[str, str]


@attrs.frozen(slots=True, kw_only=True)
class FarSubmission:
    """What is written down over there, and submitted with one command."""

    #: The root of the spool over there, and the directories in it that there must be.
    root: str
    rooms: Sequence[str]
    folders: Sequence[FarFolder]
    #: The submit command; what it reads is written down, too.
    command: Command
    #: The name in the first folder of what the submit command reads, and of what it prints.
    script: str
    answer: str


def submission_text(submission: FarSubmission, nonce: str) -> str:
    """Shell text that writes down a submission and carries it out; `nonce` stands in no file of it."""
    return "\n".join(["{", *_lines(submission, nonce), "}", ""])


def _lines(submission: FarSubmission, nonce: str) -> Iterator[str]:
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
    yield unsafe_function(submission.root)
    yield "_jpsi_check() {"
    yield f"    _jpsi_found=$({UNSAFE})"
    yield f"""    [ -z "$_jpsi_found" ] || {{ printf '%s\\n' "$_jpsi_found"; _jpsi_end {_NOT_PRIVATE}; }}"""
    yield "}"
    # before anything is made, as what is made there would be others' to move
    yield "_jpsi_check"
    rooms = line("mkdir", "-p", submission.root, *submission.rooms)
    # where a directory has an access control list, the mask means nothing
    making = f"{{ {rooms} && {line('chmod', '700', submission.root)}; }}"
    are_there = " && ".join(line("test", "-d", room) for room in submission.rooms)
    yield f"{{ {are_there}; }} || {{ {making} && _jpsi_check; }} || _jpsi_end {_NOT_WRITTEN}"
    # a script that others can change is not run
    yield f"{_is_private(submission.root)} || _jpsi_end {_NOT_PRIVATE}"
    for number, folder in enumerate(submission.folders, 1):
        yield from _made(folder, number)
        for name, content in folder.files.items():
            yield from _written(f"{folder.path}/{name}", content, nonce)
    command, reads, first = submission.command, "/dev/null", submission.folders[0].path
    if command.stdin is not None:
        reads = f"{first}/{submission.script}"
        yield from _written(reads, command.stdin, nonce)
    yield "_jpsi_said=$("
    yield 'umask "$_jpsi_umask"'
    yield f"exec <{word(reads)}"
    yield from command_lines(command, ShellLine(f"{line('echo', _missing(nonce))}; exit"))
    yield ")"
    yield "_jpsi_code=$?"
    yield f'[ "$_jpsi_said" = {word(_missing(nonce))} ] && _jpsi_undo {_NOT_FOUND}'
    # It counts, whether there is room for it or not; where nobody listens any more, all ends with telling it.
    answer = word(f"{first}/{submission.answer}")
    yield f'printf "%s\\n" "$_jpsi_code" "$_jpsi_said" 2>/dev/null >{answer}'
    yield 'printf "%s\\n" "$_jpsi_said"'
    yield '_jpsi_end "$_jpsi_code"'


def _is_private(path: str) -> str:
    """A condition: the directory is the user's, and nobody else can write to it."""
    writable = line("find", "-H", path, "-prune", "(", "-perm", "-020", "-o", "-perm", "-002", ")")
    return f'[ -O {word(path)} ] && [ -z "$({writable})" ]'


def _made(folder: FarFolder, number: int) -> Iterator[str]:
    """Lines that make a folder, or the first file in it, unless somebody else has."""
    path = word(folder.path)
    if folder.is_new:
        yield f"mkdir {path} || {{ [ -d {path} ] && _jpsi_undo {_TAKEN}; _jpsi_undo {_NOT_WRITTEN}; }}"
        yield f"_jpsi_made={number}"
        return
    first = word(f"{folder.path}/{next(iter(folder.files))}")
    yield f"mkdir -p {path} || _jpsi_undo {_NOT_WRITTEN}"
    # the shell itself would end with what it cannot make
    yield f"( set -C; true >{first} ) || {{ [ -e {first} ] && _jpsi_undo {_TAKEN}"
    yield f"_jpsi_undo {_NOT_WRITTEN}; }}"
    yield f"_jpsi_made={number}"


def _written(path: str, content: str, nonce: str) -> Iterator[str]:
    """Lines that make a file of this content, which ends with a newline."""
    yield f"cat >{word(path)} <<'{nonce}' || _jpsi_undo {_NOT_WRITTEN}"
    yield content.removesuffix("\n")
    yield nonce


def _missing(nonce: str) -> str:
    return f"{nonce} {_NOT_FOUND}"


def read_submission(result: CommandResult, nonce: str) -> tuple[FarOutcome, CommandResult]:
    """How far the submission came, and how the submit command ended, as far as it is known."""
    printed, mark, said = result.stdout.rpartition(f"\n{nonce} ")
    verdict = said.strip()
    if not mark or not said.endswith("\n"):
        return FarOutcome.UNKNOWN, result
    if verdict in _OUTCOMES:
        return _OUTCOMES[verdict], attrs.evolve(result, stdout=printed)
    return FarOutcome.ENDED, attrs.evolve(
        result, stdout=printed, returncode=_returncode(int(verdict)), timed_out=False
    )


def _returncode(code: int) -> int:
    """The code as `CommandResult` has it; what may have been a signal counts as one."""
    number = code - SIGNAL_BASE
    return -number if number in _SIGNALS else code


_SIGNALS = frozenset(map(int, signal.valid_signals()))
_OUTCOMES = {
    _TAKEN: FarOutcome.TAKEN,
    _NOT_PRIVATE: FarOutcome.NOT_PRIVATE,
    _NOT_WRITTEN: FarOutcome.NOT_WRITTEN,
    _NOT_FOUND: FarOutcome.NOT_FOUND,
}
