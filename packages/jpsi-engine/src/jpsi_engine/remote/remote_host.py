"""The run host whose files are remote: a spool on the remote host, and its mirror on this machine.

The batch engine uses it in place of `RunHost` if the transport leads to a machine that does not see this
machine's files. Each operation is shell text that the transport runs on the remote host.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain

from jpsi import StagingProgress
from jpsi.plugin import (
    BatchConfig,
    BytesTransport,
    Command,
    CommandResult,
    ExecutorConfig,
    FileTransport,
    JobSpec,
    JpsiError,
    RemoteDirectories,
    SubmitException,
    TransportError,
    line,
)
from jpsi_engine.host import is_transient, parse_os_error
from jpsi_engine.monitor import EventStream, JobMonitor
from jpsi_engine.remote import claims, folders, submission
from jpsi_engine.remote.folder_mirror import FolderMirror, mirror_file
from jpsi_engine.remote.folders import STAGED, RemoteFolder
from jpsi_engine.remote.marker_mirror import MarkerMirror
from jpsi_engine.remote.marker_stream import MarkerReceiver
from jpsi_engine.remote.markers import ClockDifference
from jpsi_engine.remote.ownership import parse_unsafe
from jpsi_engine.remote.stage_out import StageOutLoop
from jpsi_engine.remote.staging_transfer import StagingTransfer
from jpsi_engine.remote.submission import RemoteJobFolder, RemoteOutcome, RemoteSubmission
from jpsi_engine.runner import LOGGED_PHASES, MAX_DETAIL_BYTES, launcher_log
from jpsi_engine.spool import DAMAGE, FOUND, REVOKED, Claim, JobAttempt, Layout, Spool
from jpsi_engine.submission import RunHost, TakenError, UnsentError
from jpsi_engine.transfer import open_job_files
from jpsi_engine.verdict import Marker, parse_exit_phase

log = logging.getLogger(__name__)

_SHELL = "/bin/sh"
_NONCE_BYTES = 16
# The suffix of the remote spool's name. It keeps the remote spool and its mirror apart if both are in the
# same directory, as in a home that machines share. No folder of a target has a name with this suffix.
_SUFFIX = "@remote"
_ATTEMPT = re.compile(r"(?:intent|array)\.(\d+)")
# The most folders in one command.
_AT_A_TIME = 200
# In addition to `command_timeout`: a younger attempt may be in submission.
_IN_SUBMISSION_SECONDS = 60.0


class RemoteHost(RunHost):
    """The run host of jobs whose files are on a remote host.

    The spool on this machine mirrors the remote one. Decisions, such as claims, are made on the remote host;
    decision record 16 says why.
    """

    is_local = False

    def __init__(self, spool: Spool, transport: FileTransport, config: ExecutorConfig) -> None:
        super().__init__(spool, transport)
        self._folders = FolderMirror(spool)
        self._transport = transport
        self._configured = config.work_directory
        self._timeout = config.command_timeout if isinstance(config, BatchConfig) else None
        self._directories: RemoteDirectories | None = None
        #: Remote folders of new jobs whose submission failed.
        self._failed_folders: set[str] = set()
        self._files = open_job_files(transport) if isinstance(transport, BytesTransport) else None

    def _remote_directories(self) -> RemoteDirectories:
        if self._directories is None:
            self._directories = self._transport.directories()
        return self._directories

    def layout(self) -> Layout:
        """See `RunHost`."""
        directories = self._remote_directories()
        work = directories.work if self._configured is None else directories.expanded(str(self._configured))
        return Layout(f"{work}/{_base(self.spool.root)}{_SUFFIX}")

    def directory(self) -> str:
        """Return the remote home directory, as this program's directory means nothing there."""
        return self._remote_directories().home

    def intent_entries(self) -> Mapping[str, object]:
        """Return the remote root and home, by which the paths of a job's streams are known; see `RunHost`."""
        return {"remote": {"root": self.layout().root, "home": self._remote_directories().home}}

    @property
    def remote_staging(self) -> StagingTransfer | None:
        """See `RunHost`."""
        return None if self._files is None else StagingTransfer(self._files, self._run, self.layout)

    def problems(self, spec: JobSpec) -> list[str]:
        """Return the reasons; see `RunHost`. The job itself checks files and directories when it runs."""
        if self._files is not None:
            return []
        requested = [name for name in ("stage_in", "stage_out", "cleanup") if getattr(spec, name)]
        return [
            f"{name} is not offered: jobs run on a remote host, and its transport cannot transfer files"
            for name in requested
        ]

    # ------------------------------------------------------------------------------------- submissions

    def run_submit(
        self,
        command: Command,
        attempts: Sequence[JobAttempt],
        lock: int | None,
        ready: Callable[[], None] | None,
    ) -> CommandResult:
        """Write the files on the remote host and submit, in one round trip; see `RunHost`."""
        layout, nonce = self.layout(), secrets.token_hex(_NONCE_BYTES)
        if ready is not None:
            ready()
        request = RemoteSubmission(
            root=layout.root,
            directories=[layout.jobs, layout.arrays, layout.events],
            folders=[self._folder(it, layout) for it in attempts],
            command=command,
            script=_base(attempts[0].file("submit")),
            answer=_base(attempts[0].file("answer")),
        )
        whole = Command(
            [_SHELL],
            stdin=submission.render_submission(request, nonce),
            timeout=command.timeout or self._timeout,
        )
        try:
            answer = self._transport.run(whole, lock)
        except TransportError as e:
            if e.may_have_run:
                raise
            raise UnsentError(str(e), e, transient=e.transient) from e
        outcome, result = submission.parse_submission(answer, nonce)
        if outcome is RemoteOutcome.ENDED:
            if result.returncode != 0:
                self._failed_folders.update(it.folder for it in attempts if it.is_new)
            return result
        if outcome is RemoteOutcome.UNKNOWN and result.timed_out:
            return result
        raise _outcome_error(outcome, command, layout, result)

    def _folder(self, attempt: JobAttempt, layout: Layout) -> RemoteJobFolder:
        folder = f"{self.spool.root}/{attempt.folder}"
        files = {name: _read(f"{folder}/{name}") for name in attempt.files}
        return RemoteJobFolder(path=layout.path(attempt.folder), is_new=attempt.is_new, files=files)

    def clean_up(self, attempts: Collection[JobAttempt]) -> None:
        """See `RunHost`."""
        names = [it.folder for it in attempts if it.folder in self._failed_folders]
        self._failed_folders.difference_update(names)
        try:
            for part in _parts(names):
                self._run(folders.render_removal(self.layout().root, part))
        except JpsiError as e:
            log.info("%s could not be removed: %s", ", ".join(names), e)

    # ------------------------------------------------------------------------------------------ claims

    def claim(self, attempt: JobAttempt) -> Claim | None:
        """See `RunHost`."""
        found = self._query_claim(attempt, claims.render_claim_query)
        return None if found.text is None else Claim(found.text, 0)

    def revoke(self, attempt: JobAttempt) -> bool:
        """See `RunHost`."""
        return self._query_claim(attempt, claims.render_revocation).is_made

    def _query_claim(self, attempt: JobAttempt, text: Callable[[str], str]) -> claims.RemoteClaim:
        result = self._run(text(self.layout().path(attempt.file("claim"))))
        found = claims.parse_claim(result)
        if found is None:
            msg = f"the remote host did not say whether {attempt.name} runs: {result.complaint}"
            raise SubmitException(msg, transient=True)
        stored = REVOKED if found.is_made else found.text
        if stored:
            mirror_file(f"{self.spool.root}/{attempt.file('claim')}", stored)
        return found

    # ---------------------------------------------------------------------------------------- remote files

    def refresh(self, folders: Collection[str]) -> bool:
        """See `RunHost`."""
        try:
            for found, _, clocks in self._read_remote_folders(folders, is_mirrored=True):
                self._folders.update(found, clocks)
        except (JpsiError, OSError) as e:
            log.info("the jobs' files on the remote host could not be read: %s", e)
            return False
        return True

    def share_files(self, names: Collection[str], *, make_folders: bool = False) -> bool:
        """See `RunHost`."""
        why: object
        try:
            files = {name: _read(f"{self.spool.root}/{name}").strip() for name in names}
            if not files:
                return True
            result = self._run(folders.render_writes(self.layout().root, files, make_folders=make_folders))
            if result.returncode == 0 and not result.timed_out:
                return True
            why = result.complaint
        except (JpsiError, OSError) as e:
            why = e
        log.info("%s could not be copied to the remote host: %s", ", ".join(names), why)
        return False

    def import_other_jobs(self) -> None:
        """See `RunHost`.

        A submission that no runner has claimed yet is left to the machine that may be submitting it. A
        revoked one is left out, as the machine that submitted it has reported the failure. So is one with
        `retry`: that machine alone decides whether an end is the last.
        """
        self._folders.remove_drafts()
        named = folders.parse_listing(self._run(folders.render_listing(self.layout().root)).stdout)
        if named is None:
            raise SubmitException("the jobs on the remote host could not be listed", transient=True)
        removed = frozenset(self.spool.trash())
        new = [
            name
            for name in named
            if _base(name) not in removed and not os.path.lexists(f"{self.spool.root}/{name}")
        ]
        in_submission_seconds = (self._timeout or timedelta(0)).total_seconds() + _IN_SUBMISSION_SECONDS
        read = self._read_remote_folders(new)
        retried = {_base(found.name) for found, _, _ in read if _may_be_retried(found)}
        for found, age, clocks in read:
            claim = _last_claim(found)
            is_sent = claim or age is None or age > in_submission_seconds
            # A folder without texts was made just now. Adopted as it is, it would never be read again.
            is_retried = not retried.isdisjoint({_base(found.name), *_arrays(found)})
            if found.texts and is_sent and claim != REVOKED and not is_retried:
                self._folders.adopt(found, clocks)

    def _read_remote_folders(
        self, names: Collection[str], *, is_mirrored: bool = False
    ) -> list[tuple[RemoteFolder, float | None, ClockDifference]]:
        """Return the content of remote folders, the ages of their attempts in seconds, and their clock."""
        root, found = self.layout().root, []
        for part in _parts(sorted(names)):
            result = self._run(folders.render_content(root, part, is_mirrored=is_mirrored))
            content = folders.parse_folders(result.stdout)
            if content is None:
                msg = f"the jobs' files in {root} could not be read: {result.complaint}"
                raise SubmitException(msg, transient=True)
            clocks = ClockDifference()
            if content.clock_ns is not None:
                clocks.add_sample(content.clock_ns, time.time_ns())
            found += [(it, _age(it, content.clock_ns), clocks) for it in content.folders]
        return found

    def remove(self, names: Collection[str]) -> Collection[str]:
        """See `RunHost`; a job that another machine has submitted stays until that machine has its files."""
        root, found = self.layout().root, sorted(it for it in names if FOUND in self.spool.removed(it))
        own = sorted(set(names).difference(found))
        staged = self.spool.jobs_with_unneeded_files()
        paths = [f"{directory}/{name}" for name in own for directory in ("jobs", "arrays", STAGED)]
        paths += [f"{STAGED}/{job_id}" for job_id in staged]
        for part in _parts(found):
            self._run_removal(folders.render_removal_unless_staged(root, part))
        remaining: set[str] = set()
        for part in _parts(paths):
            if self._run_removal(folders.render_removal(root, part)).returncode != 0:
                remaining.update(self._find_remaining(part))
        self.spool.clear_unneeded_files(it for it in staged if f"{STAGED}/{it}" not in remaining)
        return {_base(it) for it in remaining}.intersection(own)

    def _run_removal(self, text: str) -> CommandResult:
        result = self._run(text)
        if result.timed_out:
            raise result.no_answer
        return result

    def _find_remaining(self, names: Collection[str]) -> Collection[str]:
        """Return the folders that could not be removed, such as one with a file of another user."""
        result = self._run(folders.render_existing(self.layout().root, names))
        remaining = folders.parse_existing(result.stdout)
        if remaining is None:
            raise result.no_answer
        if remaining:
            log.info("%s could not be removed", ", ".join(remaining))
        return remaining

    def connect(self, monitor: JobMonitor, staged: Callable[[str, StagingProgress], None]) -> EventStream:
        """See `RunHost`."""
        jobs = self.spool.jobs

        def is_ours(job_id: str) -> bool:
            return (
                monitor.get(job_id) is not None
                or os.path.isdir(f"{jobs}/{job_id}")  # noqa: PTH112
                or any(job.spool_id == job_id for job in monitor.all())
            )

        def mirror() -> MarkerMirror:
            return MarkerMirror(self.spool.root, is_ours, time.time_ns, self.fetch_launcher_log)

        receiver = MarkerReceiver(self._transport, self.layout, mirror, self._run)
        monitor.counted_seconds = receiver.liveness.counted_seconds
        if self.remote_staging is not None:
            loop = StageOutLoop(self.spool, self.remote_staging, weakref.ref(monitor), staged)
            monitor.is_held = loop.must_wait
        return receiver.stream(lambda: bool(monitor.all()))

    def fetch_launcher_log(self, marker: Marker) -> None:
        """Fetch the output of a launcher whose failure a marker reports; never raises."""
        if parse_exit_phase(marker.detail) not in LOGGED_PHASES:
            return
        name = launcher_log(f"jobs/{marker.job_id}", marker.attempt)
        try:
            result = self._run(f"{line('tail', '-c', str(MAX_DETAIL_BYTES), self.layout().path(name))}\n")
            if result.stdout:
                mirror_file(f"{self.spool.root}/{name}", result.stdout)
        except (JpsiError, OSError) as e:
            log.info("the launcher's output of job %s could not be read: %s", marker.job_id, e)

    def _run(self, text: str) -> CommandResult:
        return self._transport.run(Command([_SHELL], stdin=text, timeout=self._timeout))


def _outcome_error(
    outcome: RemoteOutcome, command: Command, layout: Layout, result: CommandResult
) -> SubmitException:
    """Return the error for a submit command that did not run, or may not have ended."""
    match outcome:
        case RemoteOutcome.NOT_PRIVATE:
            found = parse_unsafe(result.stdout) or "it belongs to or can be written by others"
            return UnsentError(
                f"the work directory {layout.root} on the remote host is not safe to use: {found}; "
                "change that there: chmod go-w; or choose another work_directory"
            )
        case RemoteOutcome.TAKEN:
            return TakenError("it was submitted by another machine in the meantime")
        case RemoteOutcome.NOT_WRITTEN:
            msg = f"it could not be recorded in {layout.root}: {result.complaint}"
            cause = parse_os_error(result.stderr)
            return UnsentError(msg, cause, transient=cause is None or is_transient(cause))
        case RemoteOutcome.NOT_FOUND:
            return UnsentError(f"the command {command.argv[0]} was not found on PATH on the remote host")
    msg = f"the output of {command.argv[0]} was cut short: {result.complaint}"
    return TransportError(msg, transient=True, may_have_run=True)


def _parts(folders: Sequence[str]) -> Iterator[Sequence[str]]:
    return (folders[start : start + _AT_A_TIME] for start in range(0, len(folders), _AT_A_TIME))


def _last_claim(found: RemoteFolder) -> str:
    """Return the claim of an array, or of the last attempt of a single job; empty if there is none."""
    attempts = [int(it[1]) for it in map(_ATTEMPT.match, found.times) if it is not None]
    name = f"claim.{max(attempts)}" if attempts else "claim"
    return found.texts.get(name, "").strip()


def _may_be_retried(found: RemoteFolder) -> bool:
    """Return True if an intent in a folder has `retry`, that of an array perhaps in the lines of its jobs."""
    intents = [text for name, text in found.texts.items() if name.startswith("intent")]
    for text in chain.from_iterable(it.splitlines() for it in intents if '"retry"' in it):
        with contextlib.suppress(*DAMAGE):
            if json.loads(text)["spec"]["attributes"]["retry"]:
                return True
    return False


def _arrays(found: RemoteFolder) -> Iterator[str]:
    """Yield the arrays to which the attempts in a folder belong."""
    for name, text in found.texts.items():
        if name.startswith("array."):
            yield text.partition(" ")[0].strip()


def _age(found: RemoteFolder, clock_ns: int | None) -> float | None:
    """Return the age of the last attempt in a folder, in seconds; None if it is unknown."""
    times = [it for name, it in found.times.items() if name.startswith("intent") and it is not None]
    return None if clock_ns is None or not times else (clock_ns - max(times)) / 1e9


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _read(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123
        return os.fsdecode(file.read())
