"""Stages the inputs of an attempt below the job's root, and stores its outputs afterwards.

The dispatcher uses it before it submits a job and after the job has ended.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from ..errors import StoreError
from ..files import Blobs, Captured, Repositories
from ..model import STDIN, STDOUT, Blob, Collection, Execution, GitTree, Mount, read_mount
from ..reuse import recalled
from .attempt_job import REVOKED, AttemptFiles, begin_script


@attrs.frozen(slots=True)
class CapturedOutput:
    """The stored outputs of a job."""

    #: The digest of the output collection; None if the request has no output.
    output: str | None
    #: The digest of the collection of standard output and error.
    log: str
    #: The outputs that could not be stored, one sentence each.
    problems: tuple[str, ...]
    #: The logs that could not be stored, one sentence each.
    log_problems: tuple[str, ...]
    #: False if some outputs could not be read: they are kept where the job has left them.
    is_whole: bool = True


class Materializer:
    """The staging of inputs and outputs between an attempt's files and the records."""

    def __init__(self, blobs: Blobs, repositories: Repositories) -> None:
        self._blobs = blobs
        self._repositories = repositories

    def lay_out(self, execution: Execution, files: AttemptFiles) -> None:
        """Stage in: create all files and directories for the job of an attempt.

        Raises:
            StoreError: an input is missing, or a file cannot be written.
        """
        members = recalled(execution.preimage)
        try:
            for folder in (files.root, files.stdout.parent):
                folder.mkdir(parents=True, exist_ok=True)
            files.inbox.mkdir(mode=0o700, exist_ok=True)
            for target, document in members["mounts"].items():
                self._mount(target, read_mount(document), files)
            self._make_mount_points(members, files)
            files.begin.write_text(begin_script(files))
        except OSError as e:
            raise StoreError(f"the inputs of the job cannot be copied: {e}", e) from e

    def _mount(self, target: str, mount: Mount, files: AttemptFiles) -> None:
        if target == STDOUT:
            return
        path = files.stdin if target == STDIN else files.place(target)
        match mount:
            case Blob():
                self._blobs.lay_file(mount.digest, path)
            case Collection():
                self._blobs.lay_out(mount.digest or "", path, is_writable=mount.writable is True)
            case GitTree():
                self._repositories.lay_out(mount, path)
            case _:
                path.mkdir(parents=True, exist_ok=True)

    def _make_mount_points(self, members: Mapping[str, Any], files: AttemptFiles) -> None:
        """Create the working directory and the parent directory of standard output, where possible."""
        places = []
        if members["container_image"] is None:
            places.append(files.place(members["cwd"]))
        else:
            # A container can only mount a file that exists.
            files.progress.touch()
        stdout = members["mounts"].get(STDOUT)
        if stdout is not None:
            places.append(files.place(stdout["path"]).parent)
        for place in places:
            place.mkdir(parents=True, exist_ok=True)

    def capture(self, execution: Execution, files: AttemptFiles) -> CapturedOutput:
        """Stage out: store the output and the logs of a job, without what this user may not read.

        Raises:
            StoreError: a file cannot be written, or cannot be read for a reason other than its permissions.
        """
        members = recalled(execution.preimage)
        try:
            log = self._blobs.add_tree(files.stdout.parent, omits_unreadable=True)
            log_problems = tuple(f"of the log, {it}" for it in log.left_out)
            if members["output_path"] is None:
                return CapturedOutput(None, log.digest, (), log_problems)
            captured = self._capture_output(members, files)
        except OSError as e:
            raise StoreError(f"the output of the job cannot be stored: {e}", e) from e
        kept = () if captured.is_whole else (f"what cannot be read is kept in {files.root}",)
        problems = (*captured.left_out, *kept)
        return CapturedOutput(captured.digest, log.digest, problems, log_problems, captured.is_whole)

    def _capture_output(self, members: Mapping[str, Any], files: AttemptFiles) -> Captured:
        output, what = files.place(members["output_path"]), f"{members['output_path']}, which is the output"
        try:
            if output.exists():
                return self._blobs.add_tree(output, members["output_globs"], omits_unreadable=True)
        except PermissionError as e:
            problem = f"{what}, cannot be read: {e.strerror}"
            return Captured(self._blobs.add_manifest({}), (problem,), is_whole=False)
        return Captured(self._blobs.add_manifest({}), (f"there is no {what}",))


def revoke(files: AttemptFiles) -> bool:
    """Prevent the job of an attempt from running; return False if the job has claimed the attempt."""
    files.directory.mkdir(parents=True, exist_ok=True)
    try:
        with files.claim.open("x") as claim:
            claim.write(REVOKED)
    except FileExistsError:
        return files.claim.read_text() == REVOKED
    return True


def remove_root(root: Path) -> None:
    """Remove the root of a job, including read-only directories."""
    if not root.exists():
        return
    for folder in (root, *(it for it in root.rglob("*") if it.is_dir() and not it.is_symlink())):
        with contextlib.suppress(OSError):
            folder.chmod(0o700)
    shutil.rmtree(root, ignore_errors=True)
