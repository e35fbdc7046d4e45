"""Listings of squeue and sacct that show whether they are whole, and the rows in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult

from ..native_ids import named, of_unclear, whole

#: What stands behind each column; rare in what users write, which may be anything nonetheless.
SEPARATOR = "|=|"
_ROW_END = f"{SEPARATOR}\n"
_SEPARATOR = re.escape(SEPARATOR)
_END = "end of listing"
# No row is longer, not even that of an array of which every second element waits.
_LONGEST = 1 << 20
# The shell's $0 is the program. No value becomes text of the shell.
_ONCE = f'"$0" "$@" && echo "{_END}"'
_TWICE = 'first=$1 second=$2; shift 2; "$0" --noheader {ids} "$first" "$@" && exec "$0" {rows} "$second" "$@"'


@attrs.frozen(slots=True, kw_only=True)
class Row:
    """The columns of a job; those that a command does not have are empty."""

    shown: str
    number: str = ""
    state: str = ""
    exit_code: str = ""
    submitted: str = ""
    started: str = ""
    ended: str = ""
    nodes: str = ""
    reason: str = ""
    restarts: str = ""
    comment: str = ""
    submit_line: str = ""

    @property
    def jobs(self) -> tuple[str, ...]:
        """One native id of each job that the row is about."""
        unclear = of_unclear(self.shown)
        return tuple(named(self.shown)) if unclear is None else (unclear,)

    @property
    def names(self) -> tuple[str, ...]:
        """The native ids that the job answers to; several elements of an array, while they wait, are one row.

        An array's elements have numbers of their own, but for the last one to start: it takes that of the
        array, which stands for all of them. Where it is not clear which elements wait, it is the array that
        does.
        """
        is_alone = self.number not in {self.shown, whole(self.shown)}
        return (*self.jobs, self.number) if is_alone and of_unclear(self.shown) is None else self.jobs


def listed_twice(
    command: Command, ids: str, rows: str, *, ids_order: str = "", rows_order: str = ""
) -> Command:
    """Return the command that lists the ids of jobs, without a header, and then the jobs.

    A listing of which the command itself prints no more than a part is noticed: in as many bytes or lines,
    the list of ids names more jobs.

    Args:
        command: lists jobs, but for the option that names the columns.
        ids: that option for the ids alone.
        rows: that option for all columns.
        ids_order: the option, a word of the shell, that sorts the ids.
        rows_order: the option that sorts the jobs, best the other way round.
    """
    text = " ".join(_TWICE.format(ids=ids_order, rows=rows_order).split())
    program, *others = command.argv
    return attrs.evolve(command, argv=("/bin/sh", "-c", text, program, ids, rows, *others))


def listed_once(command: Command) -> Command:
    """Return the command that lists jobs and then says that this was all."""
    return attrs.evolve(command, argv=("/bin/sh", "-c", _ONCE, *command.argv))


def doubled(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of a row: all of them twice, so that a row shows whether it is whole."""
    return (*columns, *columns)


def read_listing(result: CommandResult, columns: Mapping[str, str], *, is_twice: bool) -> Sequence[Row]:
    """Return the rows about jobs of what was printed; what a site prints before its parts is passed over.

    A row's first half is its second: no cut, and no letter that has changed on its way, makes another row of
    it, and the texts of users in it may hold separators, line breaks and what looks like a row.

    Args:
        result: how the command ended.
        columns: the fields of `Row` in the order of the columns, the last of which may be any text.
        is_twice: True for `listed_twice`, False for `listed_once`.

    Raises:
        SubmitException: the command failed, or the listing is not whole: its header or its end is missing, or
            a job has no row that the list of ids names.
    """
    output = result.checked().stdout
    header = re.search(rf"^((?:[A-Za-z_]+{_SEPARATOR}){{{len(columns)}}})\1\n", output, re.MULTILINE)
    if header is None:
        raise result.no_answer
    rows, rest = _rows(output[header.end() :], columns)
    is_whole = _are_all(rows, output[: header.start()]) if is_twice else rest == f"{_END}\n"
    if not is_whole:
        raise result.no_answer
    return [row for row in rows if row.jobs]


def _rows(listed: str, columns: Mapping[str, str]) -> tuple[Sequence[Row], str]:
    """Return the rows, and what stands behind the last of them."""
    rows: dict[Row, None] = {}
    begin = end = 0
    while end - begin < _LONGEST and (found := listed.find(_ROW_END, end)) >= 0:
        end = found + len(_ROW_END)
        # the end of a line is that of a row unless a text that a user wrote has broken it
        row = _row(listed[begin : end - 1], columns)
        if row is not None:
            rows[row] = None
            begin = end
    return list(rows), listed[begin:]


def _row(text: str, columns: Mapping[str, str]) -> Row | None:
    """Return the row that a text is; None if it is none."""
    half = text[: len(text) // 2]
    fields = half.removesuffix(SEPARATOR).split(SEPARATOR, len(columns) - 1)
    if text != half * 2 or not half.endswith(SEPARATOR) or len(fields) != len(columns):
        return None
    return Row(**dict(zip(columns, fields, strict=True)))


def _are_all(rows: Sequence[Row], listed: str) -> bool:
    """True if each job that the list of ids names has a row; one that is newer than the list may have one."""
    # lines of another form are a site's own
    ids = [line.removesuffix(SEPARATOR) for line in listed.splitlines() if line.endswith(SEPARATOR)]
    shown = {row.shown for row in rows}
    names = {name for row in rows for name in row.jobs}
    arrays = {whole(name) for name in names if "_" in name}
    # sacct has several rows of a job that was put back
    return (
        bool(ids) == bool(rows)
        and len(ids) <= len(rows)
        and all(
            text in shown
            or of_unclear(text) in arrays
            or (any(named(text)) and names.issuperset(named(text)))
            for text in ids
        )
    )
