"""A submission where files are elsewhere: shell text that writes down and submits, and what it answers.

The text is one compound command, so that no part of it is carried out before all of it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto

import attrs

from jpsi.contract.command import Command, CommandResult
from jpsi.contract.command_lines import command_lines
from jpsi.contract.shell import ShellLine, line, word

# What the last line says, after the nonce, where it is not the exit code of the submit command.
_TAKEN = "taken"
_NOT_WRITTEN = "not-written"
_NOT_FOUND = "not-found"
_LAST = r"\n%s %s\n"


class FarOutcome(Enum):
    """How far a submission came."""

    #: The submit command has ended.
    ENDED = auto()
    #: Somebody else made this attempt; nothing was submitted.
    TAKEN = auto()
    #: It could not be written down; nothing was submitted.
    NOT_WRITTEN = auto()
    #: There is no such submit command; nothing was submitted.
    NOT_FOUND = auto()
    #: Nobody can tell: what should have said it was cut short.
    UNKNOWN = auto()


@attrs.frozen(slots=True, kw_only=True)
class FarSubmission:
    """What is written down over there, and submitted."""

    #: The root of the spool over there, and the directories in it that there must be.
    root: str
    rooms: Sequence[str]
    #: The folder that the attempt is in.
    folder: str
    #: Whether nobody may have made the folder before; otherwise whoever makes the first file has the attempt.
    is_new: bool
    #: What is written, by the name in the folder. The first one is made by nobody else.
    files: Mapping[str, str]
    #: The submit command; what it reads is written down, too.
    command: Command
    #: The name in the folder of what the submit command reads, and of what it prints.
    script: str
    answer: str


def submission_text(submission: FarSubmission, nonce: str) -> str:
    """Shell text that writes down a submission and carries it out; `nonce` stands in no file of it."""
    return "\n".join(["{", *_lines(submission, nonce), "}", ""])


def _lines(submission: FarSubmission, nonce: str) -> Iterator[str]:
    folder, files = word(submission.folder), dict(submission.files)
    yield "_jpsi_umask=$(umask)"
    yield "umask 077"
    yield f'_jpsi_end() {{ {line("printf", _LAST, nonce)} "$1"; exit; }}'
    yield "_jpsi_fail() {"
    if submission.is_new:
        yield f"    rm -rf {folder}"
    yield f"    _jpsi_end {_NOT_WRITTEN}"
    yield "}"
    rooms = line("mkdir", "-p", submission.root, *submission.rooms)
    yield f"[ -d {word(submission.rooms[-1])} ] || {rooms} || _jpsi_end {_NOT_WRITTEN}"
    if submission.is_new:
        yield f"mkdir {folder} || {{ [ -d {folder} ] && _jpsi_end {_TAKEN}; _jpsi_end {_NOT_WRITTEN}; }}"
    else:
        first = word(f"{submission.folder}/{next(iter(files))}")
        yield f"mkdir -p {folder} || _jpsi_end {_NOT_WRITTEN}"
        # the shell itself would end with what it cannot make
        yield f"( set -C; true >{first} ) || {{ [ -e {first} ] && _jpsi_end {_TAKEN}; _jpsi_fail; }}"
    command, reads = submission.command, "/dev/null"
    if command.stdin is not None:
        files[submission.script] = command.stdin
        reads = f"{submission.folder}/{submission.script}"
    for name, content in files.items():
        yield from _written(f"{submission.folder}/{name}", content, nonce)
    yield "_jpsi_said=$("
    yield 'umask "$_jpsi_umask"'
    yield f"exec <{word(reads)}"
    yield from command_lines(command, ShellLine(f"{line('echo', _missing(nonce))}; exit"))
    yield ")"
    yield "_jpsi_code=$?"
    yield f'[ "$_jpsi_said" = {word(_missing(nonce))} ] && _jpsi_end {_NOT_FOUND}'
    # The answer counts, whether there is room for it or not.
    yield 'printf "%s\\n" "$_jpsi_said"'
    answer = word(f"{submission.folder}/{submission.answer}")
    yield f'printf "%s\\n" "$_jpsi_code" "$_jpsi_said" 2>/dev/null >{answer}'
    yield '_jpsi_end "$_jpsi_code"'


def _written(path: str, content: str, nonce: str) -> Iterator[str]:
    """Lines that make a file of this content, which ends with a newline."""
    yield f"cat >{word(path)} <<'{nonce}' || _jpsi_fail"
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
    return FarOutcome.ENDED, attrs.evolve(result, stdout=printed, returncode=int(verdict), timed_out=False)


_OUTCOMES = {
    _TAKEN: FarOutcome.TAKEN,
    _NOT_WRITTEN: FarOutcome.NOT_WRITTEN,
    _NOT_FOUND: FarOutcome.NOT_FOUND,
}
