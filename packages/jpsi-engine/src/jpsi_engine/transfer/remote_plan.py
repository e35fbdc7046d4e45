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
from jpsi_engine.transfer.staging_plan import Plan

_GOT = "got"


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
    puts, gets, stage_in, stage_out = list[RemoteTransfer](), list[RemoteTransfer](), [], []
    for number, it in enumerate(plan.stage_in, 1):
        path = _remote_path(f"{folder}/in.{attempt}.{number}", it.source)
        puts.append(RemoteTransfer(number=number, local_path=it.source, remote_path=path))
        stage_in.append(attrs.evolve(it, source=path, mode=_copying(it.mode)))
    for number, it in enumerate(plan.stage_out, 1):
        path = _remote_path(f"{folder}/out.{attempt}.{number}", it.source)
        gets.append(RemoteTransfer(number=number, local_path=it.target, remote_path=path))
        stage_out.append(attrs.evolve(it, target=path, mode=_copying(it.mode)))
    runner = attrs.evolve(plan, stage_in=tuple(stage_in), stage_out=tuple(stage_out))
    return RemotePlan(puts=tuple(puts), runner=runner, gets=tuple(gets))


def _copying(mode: StagingMode) -> StagingMode:
    return StagingMode.COPY if mode is StagingMode.LINK else mode


def _remote_path(staging_folder: str, source: str) -> str:
    # It keeps its own name, in a directory of its own: a file that is staged into a directory keeps its name.
    name = PurePosixPath(source).name
    return f"{staging_folder}/{'files' if name in {'', '..', '~'} else name}"


def record_path(folder: str, attempt: int, number: int) -> str:
    """Return the path of the file in the local job folder that records a finished transfer."""
    return f"{attempt_file(folder, _GOT, attempt)}.{number}"


def local_target(get: RemoteTransfer, *, is_directory: bool) -> str:
    """Return the local path of a stage out; a file whose target is an existing directory goes into it."""
    if is_directory or not os.path.isdir(get.local_path):  # noqa: PTH112  text
        return get.local_path
    return f"{get.local_path.rstrip('/')}/{PurePosixPath(get.remote_path).name}"


def pending_transfers(
    gets: Iterable[RemoteTransfer], names: Collection[str], attempt: int
) -> list[RemoteTransfer]:
    """Return the transfers of a stage out that have no record among these files of the local job folder."""
    return [it for it in gets if f"{_GOT}.{attempt}.{it.number}" not in names]
