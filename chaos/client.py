"""The client program of a round: killed with -9 at any moment, and restarted until all jobs have ended.

    python -m chaos.client FOLDER NAME

It works as docs/guide recommends: it recovers the jobs on disk, submits those that are NEW again,
and follows all to the end. It records its acts, and the statuses that it gets, in the notes of the round.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import logging
import signal
import sys
import time
import traceback
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

_PAUSE = 0.05
# The interval, in seconds, at which it reads the jobs on disk again.
_DISK_POLL_SECONDS = 0.4


def main(folder: Path, name: str) -> int:
    """Follow every job of the round to its end; the trial kills this process after a while."""
    logging.basicConfig(
        filename=folder / f"{name}.log",
        level=logging.DEBUG,
        format="%(asctime)s %(threadName)s %(name)s %(message)s",
    )
    with (folder / f"{name}.stacks").open("w") as stacks:
        faulthandler.register(signal.SIGUSR1, stacks)
        plan = json.loads((folder / "plan").read_text())
        _play_tricks(plan, folder)
        # import it only now, as tricks change modules that it imports
        from chaos.proofs import note

        try:
            Program(folder, plan, is_follower=name.startswith("follower")).run()
        except Exception:  # noqa: BLE001  any exception here is a finding
            note(folder, "error", client=name, why=traceback.format_exc())
            return 1
    return 0


def _play_tricks(plan: dict[str, Any], folder: Path) -> None:
    from chaos import tricks

    if "clock" in plan["tricks"]:
        tricks.jump(folder / "clock")
    if "late" in plan["tricks"]:
        tricks.delay(Path(plan["work"]), plan["tricks"]["late"])


class Program:
    """A client of one round."""

    def __init__(self, folder: Path, plan: dict[str, Any], *, is_follower: bool) -> None:
        import jpsi
        from chaos import proofs

        self._jpsi = jpsi
        self._folder = folder
        self._plan = plan
        self._is_follower = is_follower
        self._note = functools.partial(proofs.note, folder)
        self._notes = functools.partial(proofs.notes, folder)
        self._executor = jpsi.JobExecutor.get_instance(plan["executor"], config=self._config())
        self._jobs: dict[int, Any] = {}
        self._reported_keys: set[int] = set()
        self._keys_on_disk: Collection[int] = set()
        self._complaints: dict[int, str] = {}
        self._begun = time.monotonic()

    def _config(self) -> Any:
        from jpsi.plugin import BatchConfig

        seconds = {name: timedelta(seconds=value) for name, value in self._plan["seconds"].items()}
        known = {**seconds, **self._plan["config"], "work_directory": Path(self._plan["work"])}
        module, _, name = self._plan["config_class"].partition(":")
        kind = getattr(__import__(module, fromlist=[name]), name) if module else BatchConfig
        return kind(**known)

    def run(self) -> None:
        """Recover jobs, submit the missing ones, and follow all to their ends."""
        self._note("up")
        self._recover()
        while (on_disk := self._jobs_on_disk()) is None:
            time.sleep(_PAUSE)
        # a damaged job may have run; any other job that is not on disk was never sent
        damaged = {it["key"] for it in self._notes() if it["what"] == "damaged"}
        begun_keys = {
            it["key"]
            for it in self._notes()
            if it["what"] == "begun" and it["key"] in on_disk.keys() | damaged
        }
        new = [
            key for key in range(len(self._plan["jobs"])) if key not in begun_keys and not self._is_follower
        ]
        if self._plan["at once"]:
            self._submit_many(new)
        else:
            for key in new:
                self._make_job(key)
                self._submit(key)
                self._record_final_statuses()
        last_read = 0.0
        while not self._has_finished(last_read):
            self._cancel()
            self._record_final_statuses()
            if time.monotonic() - last_read > _DISK_POLL_SECONDS:
                last_read = time.monotonic()
                self._recover()
                self._record_statuses_on_disk()
                self._note("followed")
            time.sleep(_PAUSE)

    def _make_job(self, key: int) -> Any:
        jpsi, job = self._jpsi, self._plan["jobs"][key]
        words = [jpsi.escape(str(word)) for word in job["words"]]
        attributes = jpsi.JobAttributes(
            duration=timedelta(minutes=5), custom_attributes=job["options"] or None
        )
        name = f"{self._plan['name']}{key}"
        spec = jpsi.JobSpec(words[0], words[1:], name=name, attributes=attributes, launcher="single")
        self._jobs[key] = jpsi.Job(spec)
        self._note("begun", key, id=self._jobs[key].id)
        return self._jobs[key]

    def _submit(self, key: int) -> None:
        """Submit a job, with retries while the batch system does not take it."""
        job = self._jobs[key]
        while job.status.state is self._jpsi.JobState.NEW:
            try:
                self._executor.submit(job)
            except (self._jpsi.SubmitException, self._jpsi.InvalidJobException) as e:
                self._record_complaint(key, f"submit: {e}")
                time.sleep(_PAUSE)
                if job.status.state is self._jpsi.JobState.NEW and self._is_final_for_another_client(key):
                    return
            else:
                self._note("submitted", key, native_id=job.native_id)

    def _is_final_for_another_client(self, key: int) -> bool:
        """Return True if another client of this round has followed the job to its end."""
        return any(it["what"] == "final" and it["key"] == key for it in self._notes())

    def _submit_many(self, keys: list[int]) -> None:
        if not keys:
            return
        jobs = [self._make_job(key) for key in keys]
        try:
            self._executor.submit_many(jobs)
        except (self._jpsi.JpsiError, ExceptionGroup) as e:
            self._record_complaint(keys[0], f"submit_many: {e}")
        for key in keys:
            if self._jobs[key].native_id is not None:
                self._note("submitted", key, native_id=self._jobs[key].native_id)
            self._submit(key)

    def _recover(self) -> None:
        """Take over the jobs on disk; if the batch system does not answer, a later call retries."""
        try:
            found = self._executor.recover()
        except self._jpsi.JpsiError as e:
            self._record_complaint(-1, f"recover: {e}")
            return
        for job in found:
            key = int(str(job.spec and job.spec.name)[-1])
            self._jobs[key] = job
            if job.status.state is self._jpsi.JobState.NEW:
                self._note("new", key, id=job.id)
                self._submit(key)
            else:
                self._note("recovered", key, native_id=job.native_id)

    def _jobs_on_disk(self) -> dict[int, Any] | None:
        """Return the jobs on disk; None if they cannot be read now.

        A job that was withdrawn because it could not be submitted does not count, as it can run no more.
        """
        from jpsi_engine import job_store

        try:
            found = job_store.jobs(also=[Path(self._plan["work"])])
        except self._jpsi.JpsiError as e:
            self._record_complaint(-1, f"jobs: {e}")
            return None
        return {int(job.name[-1]): job for job in found if job.name and not job.is_unsent}

    def _cancel(self) -> None:
        """Cancel the jobs that are due to be cancelled, until jpsi has taken the request."""
        for key, after in list(self._due_cancels()):
            job = self._jobs.get(key)
            if job is None or time.monotonic() - self._begun < after or job.status.state.final:
                continue
            if job.status.state is self._jpsi.JobState.NEW:
                continue
            self._note("cancel", key)
            try:
                job.cancel()
            except self._jpsi.JpsiError as e:
                self._record_complaint(key, f"cancel: {e}")
                self._plan["cancels"][str(key)] = time.monotonic() - self._begun + _DISK_POLL_SECONDS
            else:
                self._plan["cancels"][str(key)] = None

    def _due_cancels(self) -> Iterator[tuple[int, float]]:
        for key, after in self._plan["cancels"].items():
            if after is not None:
                yield int(key), after

    def _record_complaint(self, key: int, why: str) -> None:
        if self._complaints.get(key) != why:
            self._complaints[key] = why
            self._note("refused", key, why=why)

    def _record_final_statuses(self) -> None:
        """Record the ends of jobs that this program follows."""
        for key, job in self._jobs.items():
            status = job.status
            if status.state.final and key not in self._reported_keys:
                self._reported_keys.add(key)
                self._final("client", key, job, status)

    def _record_statuses_on_disk(self) -> None:
        """Record the statuses of jobs on disk."""
        on_disk = self._jobs_on_disk()
        if on_disk is None:
            return
        self._keys_on_disk = on_disk.keys()
        self._note("looked", states={key: job.status.state.name for key, job in on_disk.items()})
        for key, job in on_disk.items():
            if job.status.state.final:
                self._final("disk", key, job, job.status)

    def _final(self, source: str, key: int, job: Any, status: Any) -> None:
        self._note(
            "final",
            key,
            source=source,
            id=job.id,
            native_id=job.native_id,
            state=status.state.name,
            exit_code=status.exit_code,
            reason=None if status.reason is None else status.reason.name,
            evidence=None if status.evidence is None else status.evidence.name,
            message=status.message,
        )

    def _has_finished(self, last_read: float) -> bool:
        """Return True if each job that was begun has an end, on disk as well, and nothing is left to do."""
        events = self._notes()
        begun_keys = {it["key"] for it in events if it["what"] == "begun"}
        final_keys = {it["key"] for it in events if it["what"] == "final" and it["source"] == "disk"}
        damaged = {it["key"] for it in events if it["what"] == "damaged"}
        followed = {key for key in self._jobs if key not in self._reported_keys} - damaged
        is_all_begun = len(begun_keys) == len(self._plan["jobs"])
        return (
            last_read > 0
            and is_all_begun
            and not followed
            and (begun_keys & set(self._keys_on_disk)) - damaged <= final_keys
        )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
