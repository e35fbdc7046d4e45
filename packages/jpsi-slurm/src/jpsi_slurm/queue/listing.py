"""Makes squeue and sacct print listings that can be checked for completeness, and parses their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult

from ..native_ids import named, of_unclear, whole

#: The text after each column; rare in texts of users, which may contain it nonetheless.
SEPARATOR = "|=|"
_ROW_END = f"{SEPARATOR}\n"
_SEPARATOR = re.escape(SEPARATOR)
_END = "end of listing"
# The longest row in characters; even an array of which every second element is pending has a shorter one.
_LONGEST = 1 << 20
# The shell's $0 is the program. Values are passed as arguments and are never part of the shell's text.
_ONCE = f'"$0" "$@" && echo "{_END}"'
_TWICE = 'first=$1 second=$2; shift 2; "$0" --noheader {ids} "$first" "$@" && exec "$0" {rows} "$second" "$@"'


@attrs.frozen(slots=True, kw_only=True)
class Row:
    """The columns of one row; columns that a command does not print are empty."""

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
        """The native ids of the row's jobs, one per job."""
        unclear = of_unclear(self.shown)
        return tuple(named(self.shown)) if unclear is None else (unclear,)

    @property
    def names(self) -> tuple[str, ...]:
        """All native ids of the row's jobs; pending elements of an array share one row.

        Array elements have job numbers of their own. The last element to start takes the number of the array,
        which is left out, as it stands for the whole array. If Slurm has cut the list of pending elements,
        the array's id is returned.
        """
        is_alone = self.number not in {self.shown, whole(self.shown)}
        return (*self.jobs, self.number) if is_alone and of_unclear(self.shown) is None else self.jobs


def listed_twice(
    command: Command, ids: str, rows: str, *, ids_order: str = "", rows_order: str = ""
) -> Command:
    """Return the command that lists the ids of jobs, without a header, and then the jobs.

    Thereby `read_listing` notices output that the program itself has cut: within the same number of bytes or
    lines, the list of ids names more jobs than the list of rows.

    Args:
        command: the command that lists jobs, without the option that names the columns.
        ids: the option that selects the ids alone.
        rows: the option that selects all columns.
        ids_order: the option that sorts the ids; it becomes part of the shell's text.
        rows_order: the option that sorts the rows, preferably in the opposite order.
    """
    text = " ".join(_TWICE.format(ids=ids_order, rows=rows_order).split())
    program, *others = command.argv
    return attrs.evolve(command, argv=("/bin/sh", "-c", text, program, ids, rows, *others))


def listed_once(command: Command) -> Command:
    """Return the command that lists jobs and then prints a final line if it succeeded."""
    return attrs.evolve(command, argv=("/bin/sh", "-c", _ONCE, *command.argv))


def doubled(columns: Iterable[str]) -> tuple[str, ...]:
    """Return all columns of a row twice, so that the parser can check that a row is complete."""
    return (*columns, *columns)


def read_listing(result: CommandResult, columns: Mapping[str, str], *, is_twice: bool) -> Sequence[Row]:
    """Return the rows of a listing that are about jobs; skip what a site prints before its parts.

    The two halves of a row are equal. A row that is cut or altered on its way is therefore no row, and users'
    texts may contain separators, line breaks and text that looks like a row.

    Args:
        result: the output of the command.
        columns: the fields of `Row` in the order of the columns; the last column may be any text.
        is_twice: True for a command of `listed_twice`, False for one of `listed_once`.

    Raises:
        SubmitException: the command failed, or the listing is incomplete: its header or its end is missing,
            or a job in the list of ids has no row.
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
    """Return the rows, and the text after the last of them."""
    rows: dict[Row, None] = {}
    begin = end = 0
    while end - begin < _LONGEST and (found := listed.find(_ROW_END, end)) >= 0:
        end = found + len(_ROW_END)
        # the end of a line ends a row, unless a user's text contains a line break
        row = _row(listed[begin : end - 1], columns)
        if row is not None:
            rows[row] = None
            begin = end
    return list(rows), listed[begin:]


def _row(text: str, columns: Mapping[str, str]) -> Row | None:
    """Parse one row; return None if the text is not a complete row."""
    half = text[: len(text) // 2]
    fields = half.removesuffix(SEPARATOR).split(SEPARATOR, len(columns) - 1)
    if text != half * 2 or not half.endswith(SEPARATOR) or len(fields) != len(columns):
        return None
    return Row(**dict(zip(columns, fields, strict=True)))


def _are_all(rows: Sequence[Row], listed: str) -> bool:
    """Return True if each job in the list of ids has a row; jobs newer than that list may have rows too."""
    # lines of another form are a site's own
    ids = [line.removesuffix(SEPARATOR) for line in listed.splitlines() if line.endswith(SEPARATOR)]
    shown = {row.shown for row in rows}
    names = {name for row in rows for name in row.jobs}
    arrays = {whole(name) for name in names if "_" in name}
    # sacct prints several rows for a requeued job
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
