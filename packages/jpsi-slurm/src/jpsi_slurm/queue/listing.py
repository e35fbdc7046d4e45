"""Makes squeue and sacct print listings that can be checked for completeness, and parses their rows.

`squeue` and `sacct` use it: a job that is missing in output that was cut must not count as gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from jpsi.plugin import Command, CommandResult

from ..native_ids import arrays_of, expand_ids, parent_id, truncated_array

#: The text after each column; rare in texts of users, which may contain it nonetheless.
SEPARATOR = "|=|"
_ROW_END = f"{SEPARATOR}\n"
_SEPARATOR = re.escape(SEPARATOR)
_END_LINE = "end of listing"
# The longest row in characters; even an array of which every second element is pending has a shorter one.
_MAX_ROW_LENGTH = 1 << 20
# The shell's $0 is the program. Values are passed as arguments and are never part of the shell's text.
_LIST_ONCE = f'"$0" "$@" && echo "{_END_LINE}"'
_LIST_TWICE = (
    'first=$1 second=$2; shift 2; "$0" --noheader {ids} "$first" "$@" && exec "$0" {rows} "$second" "$@"'
)


@attrs.frozen(slots=True, kw_only=True)
class Row:
    """The columns of one row; columns that a command does not print are empty."""

    displayed_id: str
    number: str = ""
    state: str = ""
    exit_code: str = ""
    submitted: str = ""
    started: str = ""
    ended: str = ""
    nodes: str = ""
    reason: str = ""
    restarts: str = ""
    cpu: str = ""
    memory: str = ""
    tasks: str = ""
    comment: str = ""
    submit_line: str = ""
    #: The rows of the steps of the job.
    steps: tuple[Row, ...] = ()

    @property
    def native_ids(self) -> tuple[str, ...]:
        """The native ids of the row's jobs, one per job."""
        truncated = truncated_array(self.displayed_id)
        return tuple(expand_ids(self.displayed_id)) if truncated is None else (truncated,)

    @property
    def all_ids(self) -> tuple[str, ...]:
        """All native ids of the row's jobs; pending elements of an array share one row.

        Array elements have job numbers of their own. The last element to start takes the number of the array,
        which is left out, as it stands for the whole array. If Slurm has cut the list of pending elements,
        the array's id is returned.
        """
        has_own_number = self.number not in {self.displayed_id, parent_id(self.displayed_id)}
        return (
            (*self.native_ids, self.number)
            if has_own_number and truncated_array(self.displayed_id) is None
            else self.native_ids
        )


def list_twice_command(
    command: Command, form: str, columns: Mapping[str, str], *, ids_order: str = "", rows_order: str = ""
) -> Command:
    """Return the command that lists the ids of jobs, without a header, and then the jobs.

    Thereby `parse_listing` notices output that the program itself has cut: within the same number of bytes or
    lines, the list of ids names more jobs than the list of rows.

    Args:
        command: the command that lists jobs, without the option that names the columns.
        form: the form of that option, as for `columns_option`.
        columns: the columns of `Row`.
        ids_order: the option that sorts the ids; it becomes part of the shell's text.
        rows_order: the option that sorts the rows, preferably in the opposite order.
    """
    text = " ".join(_LIST_TWICE.format(ids=ids_order, rows=rows_order).split())
    program, *others = command.argv
    ids, rows = columns_option(form, [columns["displayed_id"]]), columns_option(form, columns.values(), 2)
    return attrs.evolve(command, argv=("/bin/sh", "-c", text, program, ids, rows, *others))


def list_once_command(command: Command) -> Command:
    """Return the command that lists jobs and then prints a final line if it succeeded."""
    return attrs.evolve(command, argv=("/bin/sh", "-c", _LIST_ONCE, *command.argv))


def columns_option(form: str, columns: Iterable[str], times: int = 1) -> str:
    """Return the option that selects columns, all of them several times in order.

    Twice is for rows: the parser then checks that a row is complete.

    Args:
        form: the option's name, and below it the form of each column, as `--format={}`.
        columns: the names of the columns.
        times: the number of times.
    """
    option, _, column = form.partition("=")
    return f"{option}={','.join(column.format(it) for it in [*columns] * times)}"


def parse_listing(
    result: CommandResult, columns: Mapping[str, str], *, is_listed_twice: bool
) -> Sequence[Row]:
    """Return the rows of a listing that are about jobs, with steps; skip what a site prints before its parts.

    The two halves of a row are equal. A row that is cut or altered on its way is therefore no row, and users'
    texts may contain separators, line breaks and text that looks like a row.

    Args:
        result: the output of the command.
        columns: the fields of `Row` in the order of the columns; the last column may be any text.
        is_listed_twice: True for a command of `list_twice_command`, False for one of `list_once_command`.

    Raises:
        SubmitException: the command failed, or the listing is incomplete: its header or its end is missing,
            or a job in the list of ids has no row.
    """
    output = result.checked().stdout
    header = re.search(rf"^((?:[A-Za-z_]+{_SEPARATOR}){{{len(columns)}}})\1\n", output, re.MULTILINE)
    if header is None:
        raise result.no_answer
    rows, rest = _parse_rows(output[header.end() :], columns)
    ids = output[: header.start()]
    if not (_has_row_for_each_id(rows, ids) if is_listed_twice else rest == f"{_END_LINE}\n"):
        raise result.no_answer
    jobs: list[Row] = []
    for row in rows:
        if row.native_ids:
            jobs.append(row)
        # sacct prints the steps of a job after it
        elif jobs and row.displayed_id.startswith(f"{jobs[-1].displayed_id}."):
            jobs[-1] = attrs.evolve(jobs[-1], steps=(*jobs[-1].steps, row))
    return jobs


def _parse_rows(listing: str, columns: Mapping[str, str]) -> tuple[Sequence[Row], str]:
    """Return the rows, and the text after the last of them."""
    rows: dict[Row, None] = {}
    begin = end = 0
    while end - begin < _MAX_ROW_LENGTH and (found := listing.find(_ROW_END, end)) >= 0:
        end = found + len(_ROW_END)
        # the end of a line ends a row, unless a user's text contains a line break
        row = _parse_row(listing[begin : end - 1], columns)
        if row is not None:
            rows[row] = None
            begin = end
    return list(rows), listing[begin:]


def _parse_row(text: str, columns: Mapping[str, str]) -> Row | None:
    """Parse one row; return None if the text is not a complete row."""
    half = text[: len(text) // 2]
    fields = half.removesuffix(SEPARATOR).split(SEPARATOR, len(columns) - 1)
    if text != half * 2 or not half.endswith(SEPARATOR) or len(fields) != len(columns):
        return None
    values: dict[str, Any] = dict(zip(columns, fields, strict=True))  # texts, and no steps
    return Row(**values)


def _has_row_for_each_id(rows: Sequence[Row], listing: str) -> bool:
    """Return True if each job in the list of ids has a row; jobs newer than that list may have rows too."""
    # lines of another form are a site's own
    ids = [line.removesuffix(SEPARATOR) for line in listing.splitlines() if line.endswith(SEPARATOR)]
    displayed = {row.displayed_id for row in rows}
    listed_ids = {name for row in rows for name in row.native_ids}
    arrays = arrays_of(listed_ids).values()
    # sacct prints several rows for a requeued job
    return (
        bool(ids) == bool(rows)
        and len(ids) <= len(rows)
        and all(
            text in displayed
            or truncated_array(text) in arrays
            or (expand_ids(text) and listed_ids.issuperset(expand_ids(text)))
            for text in ids
        )
    )
