"""Support for several test files: recordings, a site, and recorded output in jpsi's columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jpsi.plugin import CommandResult, Site, SubmitContext
from jpsi_slurm.config import SlurmConfig
from jpsi_slurm.queue import sacct, squeue
from jpsi_slurm.queue.listing import SEPARATOR
from jpsi_testing import Recording, command_result, read_recordings

RECORDINGS = Path(__file__).parent / "recordings" / "22.05"
SITE = Site(config=SlurmConfig())
CONTEXT = SubmitContext(site=SITE, job_id="job", tag="jpsi-abc-1")

# squeue(1): the names in --Format of the letters of -o
_LETTERS = {
    "i": "JobArrayID",
    "A": "JobID",
    "T": "State",
    "r": "Reason",
    "N": "NodeList",
    "V": "SubmitTime",
    "S": "StartTime",
    "e": "EndTime",
    "k": "Comment",
}
_MISSING = {"exit_code": "0", "RestartCnt": "0", "State": "PENDING"}


def site(**config: Any) -> Site:
    return Site(config=SlurmConfig(**config))


def recordings(scenario: str) -> list[Recording]:
    return read_recordings(RECORDINGS / f"{scenario}.json")


def squeue_line(**values: str) -> str:
    """Return a row in the columns of `squeue.query`, by default that of a pending job."""
    row = {name: values.get(name, _MISSING.get(name, "")) for name in squeue._COLUMNS.values()}
    row["JobID"] = values.get("JobID", re.sub(r"[_+].*", "", row["JobArrayID"]))
    return _line(row.values())


def tag_line(name: str, comment: str) -> str:
    """Return a row in the columns of `squeue.find`."""
    return _line([name, comment])


def sacct_line(**values: str) -> str:
    """Return a row in the columns of `sacct.query_finished` for an unknown version of Slurm."""
    return _line(values.get(name, "") for name in sacct._COLUMNS.values())


def sacct_line_of_22(**values: str) -> str:
    """Return the same row of Slurm 22.05."""
    return _line(values.get(name, "") for name in sacct._COLUMNS_WITH_LINE.values())


def squeue_result(*lines: str) -> CommandResult:
    """Return complete output of squeue, which the command runs twice."""
    return _result(_line(map(str.upper, squeue._COLUMNS.values())), lines[::-1], lines)


def tag_result(*lines: str) -> CommandResult:
    """Return complete output of `squeue.find`."""
    return _result(_line(["JOBID", "COMMENT"]), lines[::-1], lines)


def sacct_result(*lines: str) -> CommandResult:
    """Return complete output of sacct for an unknown version of Slurm."""
    return _result(_line(sacct._COLUMNS.values()), lines, lines)


def sacct_result_of_22(*lines: str) -> CommandResult:
    """Return the same output of Slurm 22.05."""
    return _result(_line(sacct._COLUMNS_WITH_LINE.values()), lines, lines)


def _line(fields: Iterable[str]) -> str:
    return "".join(f"{field}{SEPARATOR}" for field in fields) * 2 + "\n"


def _result(header: str, first: Sequence[str], second: Sequence[str]) -> CommandResult:
    ids = [f"{line.partition(SEPARATOR)[0]}{SEPARATOR}\n" for line in first]
    return command_result("".join([*ids, header, *second]))


def truncate_both(first: str, second: str, unit: str) -> Iterator[str]:
    """Yield two listings that are each truncated to a number of bytes, or lines; the last is complete."""
    parts = [text.splitlines(keepends=True) if unit == "lines" else list(text) for text in (first, second)]
    for count in range(1 + max(map(len, parts))):
        yield "".join(it for part in parts for it in part[:count])


def recorded_rows(recording: Recording) -> Iterator[dict[str, str]]:
    """Yield the rows of recorded squeue output, by jpsi's names of the columns."""
    argv = recording.argv
    if "-o" in argv:
        names = [_LETTERS.get(letter, letter) for letter in re.findall(r"%(\w)", argv[argv.index("-o") + 1])]
        separator = "|" if "|" in argv[argv.index("-o") + 1] else " "
    elif "-O" in argv and ":|" in argv[argv.index("-O") + 1]:
        names = [field.partition(":")[0] for field in argv[argv.index("-O") + 1].split(",")]
        separator = "|"
    else:
        return
    for line in recording.result.stdout.splitlines():
        fields = line.removesuffix("|").split(separator, len(names) - 1)
        if len(fields) == len(names) and fields[0][:1].isdecimal():
            row = dict(zip(names, fields, strict=True))
            row.setdefault("JobArrayID", row.get("JobID", ""))
            yield row


def recorded_accounting(recording: Recording) -> Iterator[dict[str, str]]:
    """Yield the rows of recorded sacct output, by its names of the columns."""
    argv, lines = recording.argv, recording.result.stdout.splitlines()
    if "-P" not in argv or "-o" not in argv:
        return
    names = argv[argv.index("-o") + 1].split(",")
    separator = next((word[-1] for word in argv if word.startswith("--delimiter=")), "|")
    for line in lines:
        fields = line.split(separator)
        if len(fields) == len(names) and fields != names:
            yield dict(zip(names, fields, strict=True))


def replayed_squeue(rows: list[Mapping[str, str]]) -> CommandResult:
    return squeue_result(*(squeue_line(**row) for row in rows))


def replayed_sacct(rows: list[Mapping[str, str]]) -> CommandResult:
    return sacct_result(*(sacct_line(**row) for row in rows))
