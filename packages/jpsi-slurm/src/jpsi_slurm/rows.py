"""One job as squeue and sacct print it: a line of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from .ids import named, of_unclear, whole

#: What stands between columns.
SEPARATOR = "|"


@attrs.frozen(slots=True, kw_only=True)
class Row:
    """The columns of a job; those that a command does not have are empty."""

    shown: str
    number: str
    state: str
    exit_code: str
    submitted: str
    started: str
    ended: str
    nodes: str
    reason: str
    restarts: str = ""

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


def rows(output: str, columns: Mapping[str, str]) -> Iterator[Row]:
    """The lines that are a job's; those of steps, and the later lines of a reason, are not.

    Args:
        output: what was printed.
        columns: the fields of `Row` in the order of the columns. The reason comes last: it may be any text.
    """
    for line in output.splitlines():
        fields = line.split(SEPARATOR, len(columns) - 1)
        if len(fields) == len(columns) and (any(named(fields[0])) or of_unclear(fields[0])):
            yield Row(**dict(zip(columns, fields, strict=True)))
