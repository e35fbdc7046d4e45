"""Staging where files are elsewhere: what is put there before a job, and what is got from there after it.

All of it goes by way of a folder for the job over there, from which and into which the runner stages as it
does everywhere. So it alone decides what is replaced, what is done after which end, and what is removed; a
program that submits need not be there when the job ends, and what it gets then nobody has changed since.

No link leads from one machine to another, or into that folder, which is removed: it is copied instead.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

import attrs

from jpsi import StagingMode
from jpsi_engine.spool import file_of
from jpsi_engine.transfer.staging_plan import Plan, Transfer

_IN, _OUT, _GOT = "in", "out", "got"


@attrs.frozen(slots=True, kw_only=True)
class Carriage:
    """One file or directory that is carried between here and the folder over there."""

    #: What it is called in records of what was done; counts from 1.
    number: int
    #: An absolute path of this machine.
    here: str
    #: An absolute path over there.
    there: str


@attrs.frozen(slots=True, kw_only=True)
class FarPlan:
    """A plan, by who carries it out."""

    #: Before the submission: all must be there, or nothing is submitted.
    puts: tuple[Carriage, ...]
    #: What the runner does.
    runner: Plan
    #: After the end that the runner has told: those of which there is something, as the others were not due,
    #: or the runner has told that they failed.
    gets: tuple[Carriage, ...]


def far_plan(plan: Plan, folder: str, attempt: int) -> FarPlan:
    """What is to be done for an attempt.

    Args:
        plan: what the spec says, with places of this machine.
        folder: a folder over there that nothing else is in.
        attempt: which attempt it is.
    """
    puts = tuple(
        _carriage(number, it.source, it.source, f"{file_of(folder, _IN, attempt)}.{number}")
        for number, it in enumerate(plan.stage_in, 1)
    )
    gets = tuple(
        _carriage(number, it.target, it.source, f"{file_of(folder, _OUT, attempt)}.{number}")
        for number, it in enumerate(plan.stage_out, 1)
    )
    runner = attrs.evolve(
        plan,
        stage_in=tuple(
            attrs.evolve(_unlinked(it), source=put.there) for it, put in zip(plan.stage_in, puts, strict=True)
        ),
        stage_out=tuple(
            attrs.evolve(_unlinked(it), target=get.there)
            for it, get in zip(plan.stage_out, gets, strict=True)
        ),
    )
    return FarPlan(puts=puts, runner=runner, gets=gets)


def _unlinked(transfer: Transfer) -> Transfer:
    return attrs.evolve(transfer, mode=StagingMode.COPY) if transfer.mode is StagingMode.LINK else transfer


def _carriage(number: int, here: str, source: str, box: str) -> Carriage:
    # By its own name in a directory of its own: a file that goes into a directory keeps its name.
    name = PurePosixPath(source).name
    return Carriage(number=number, here=here, there=f"{box}/{'files' if name in {'', '..', '~'} else name}")


def record(folder: str, attempt: int, number: int) -> str:
    """The file, in the job's folder here, that tells that something was got."""
    return f"{file_of(folder, _GOT, attempt)}.{number}"


def recorded(names: Iterable[str], attempt: int) -> set[int]:
    """The numbers of what was got, by the names of the files in the job's folder here."""
    beginning = f"{_GOT}.{attempt}."
    return {int(it.removeprefix(beginning)) for it in names if it.startswith(beginning)}


def where(get: Carriage, *, is_directory: bool) -> str:
    """Where here something goes that is over there: a file goes into a directory that is here."""
    if is_directory or not os.path.isdir(get.here):  # noqa: PTH112  text
        return get.here
    return f"{get.here.rstrip('/')}/{PurePosixPath(get.there).name}"


def left(gets: Collection[Carriage], got: Collection[int]) -> list[Carriage]:
    """What is still to be got.

    Args:
        gets: what there is to be got.
        got: the numbers of those that have a record.
    """
    return [it for it in gets if it.number not in got]
