"""Plans staging for a remote host: stage in before the submission, and stage out after the job.

All files go through a folder of the job on the remote host. The runner stages from and into that folder as it
stages everywhere, so it alone decides which files are replaced, what is staged out after which outcome, and
what is removed. The submitting program need not run when the job ends, and the files that it gets later have
not changed since.

A link cannot lead to another machine, or into that folder, which is removed: the file is copied instead.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

import attrs

from jpsi import StagingMode
from jpsi_engine.spool import attempt_file
from jpsi_engine.transfer.staging_plan import Plan, Transfer

_IN, _OUT, _GOT = "in", "out", "got"


@attrs.frozen(slots=True, kw_only=True)
class RemoteTransfer:
    """A file or directory, transferred between this machine and the job's folder on the remote host."""

    #: Its number in the records of finished transfers; counts from 1.
    number: int
    #: An absolute path on this machine.
    local_path: str
    #: An absolute path on the remote host.
    remote_path: str


@attrs.frozen(slots=True, kw_only=True)
class RemotePlan:
    """A staging plan, split between the client and the runner."""

    #: The client's transfers before the submission; if one fails, nothing is submitted.
    puts: tuple[RemoteTransfer, ...]
    #: The runner's part.
    runner: Plan
    #: The client's transfers after the runner has reported the end. It gets only files that exist: the others
    #: were not due, or the runner has reported that they failed.
    gets: tuple[RemoteTransfer, ...]


def split_plan(plan: Plan, folder: str, attempt: int) -> RemotePlan:
    """Return the plan for an attempt.

    Args:
        plan: the plan of the spec, with paths of this machine.
        folder: a folder on the remote host that nothing else uses.
        attempt: the number of the attempt.
    """
    puts = tuple(
        _remote_transfer(number, it.source, it.source, f"{attempt_file(folder, _IN, attempt)}.{number}")
        for number, it in enumerate(plan.stage_in, 1)
    )
    gets = tuple(
        _remote_transfer(number, it.target, it.source, f"{attempt_file(folder, _OUT, attempt)}.{number}")
        for number, it in enumerate(plan.stage_out, 1)
    )
    runner = attrs.evolve(
        plan,
        stage_in=tuple(
            attrs.evolve(_as_copy(it), source=put.remote_path)
            for it, put in zip(plan.stage_in, puts, strict=True)
        ),
        stage_out=tuple(
            attrs.evolve(_as_copy(it), target=get.remote_path)
            for it, get in zip(plan.stage_out, gets, strict=True)
        ),
    )
    return RemotePlan(puts=puts, runner=runner, gets=gets)


def _as_copy(transfer: Transfer) -> Transfer:
    return attrs.evolve(transfer, mode=StagingMode.COPY) if transfer.mode is StagingMode.LINK else transfer


def _remote_transfer(number: int, local_path: str, source: str, staging_folder: str) -> RemoteTransfer:
    # It keeps its own name, in a directory of its own: a file that is staged into a directory keeps its name.
    name = PurePosixPath(source).name
    return RemoteTransfer(
        number=number,
        local_path=local_path,
        remote_path=f"{staging_folder}/{'files' if name in {'', '..', '~'} else name}",
    )


def record_path(folder: str, attempt: int, number: int) -> str:
    """Return the path of the file in the local job folder that records a finished transfer."""
    return f"{attempt_file(folder, _GOT, attempt)}.{number}"


def finished_numbers(names: Iterable[str], attempt: int) -> set[int]:
    """Return the numbers of the finished transfers, given the names of the files in the local job folder."""
    beginning = f"{_GOT}.{attempt}."
    return {int(it.removeprefix(beginning)) for it in names if it.startswith(beginning)}


def local_target(get: RemoteTransfer, *, is_directory: bool) -> str:
    """Return the local path of a stage out; a file whose target is an existing directory goes into it."""
    if is_directory or not os.path.isdir(get.local_path):  # noqa: PTH112  text
        return get.local_path
    return f"{get.local_path.rstrip('/')}/{PurePosixPath(get.remote_path).name}"


def pending_transfers(gets: Collection[RemoteTransfer], finished: Collection[int]) -> list[RemoteTransfer]:
    """Return the transfers that are still to be done.

    Args:
        gets: all transfers of the stage out.
        finished: the numbers of those that have a record.
    """
    return [it for it in gets if it.number not in finished]
