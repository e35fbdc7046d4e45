"""Answers the requests of clients from the agent's state, and records new jobs and cancels in the journal.

The server calls it for each request; `client` has the other end of the connection.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..client import process_name
from ..protocol import Need, Settings, hostname_of, write_private
from .journal import Journal
from .state import FINAL, AgentState, Job, Submission

ENVIRONMENTS = "environments"


def is_client_running(client: str) -> bool:
    """Return True if the process with this name, which is a pid and a start time, still runs."""
    pid, _, start = client.partition(".")
    if start:
        return process_name(int(pid)) == client
    try:
        os.kill(int(pid), 0)
    except OSError as e:
        return isinstance(e, PermissionError)
    return True


@attrs.frozen(slots=True, eq=False)
class RequestHandler:
    """A handler with a method for each request; every answer is a value that JSON can represent."""

    #: Records every change.
    _journal: Journal
    #: The agent's directory.
    _folder: Path
    #: Returns the time.
    _now: Callable[[], float]
    #: The reasons why pilots do not start, by the key of their settings.
    _problems: Mapping[str, str]

    @property
    def _state(self) -> AgentState:
        return self._journal.state

    def submit(
        self,
        *,
        need: Mapping[str, Any],  # Any: as JSON has it
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
        client: str,
        **values: Any,  # noqa: ANN401  as above
    ) -> dict[str, Any]:
        """Take a job or an array; a repeated submission with the same tag returns the same id.

        Args:
            need: the need of a job, as `Need.to_dict` returns it.
            settings: the settings of its pilots, as `Settings.to_dict` returns them.
            environment: its environment.
            client: the process that submits it.
            values: the other fields of `Submission`.
        """
        number = self._state.submission_number(values["tag"])
        if number is None:
            number = self._state.last_number + 1
            pilot_settings = Settings.from_dict(settings)
            submission = Submission(
                number=number,
                need=Need.from_dict(need),
                settings=pilot_settings.key,
                environment=self._store_environment(environment),
                client=None if pilot_settings.shared or not is_client_running(client) else client,
                **values,
            )
            events = [submission.to_event(self._now())]
            if pilot_settings.key not in self._state.settings:
                events.insert(0, {"what": "settings", "values": pilot_settings.to_dict()})
            self._journal.write(*events, synced=True)
        return {"id": self._state.native_id(number, None)}

    def find(self, *, tags: Sequence[str]) -> dict[str, Any]:
        """Return the native ids of the jobs that carry these tags."""
        numbers = ((tag, self._state.submission_number(tag)) for tag in tags)
        found = {tag: self._state.native_id(number, None) for tag, number in numbers if number is not None}
        return {"found": found}

    def query(self, *, ids: Sequence[str] | None) -> dict[str, Any]:
        """Return the states of these jobs, array elements one by one, or of all jobs that have not ended."""
        jobs_by_id = {it: self._state.find_jobs(it) for it in ids or ()}
        queried = (
            self._state.unfinished if ids is None else [job for jobs in jobs_by_id.values() for job in jobs]
        )
        return {
            "jobs": {job.native_id: self._describe_job(job) for job in queried},
            "unknown": [it for it, jobs in jobs_by_id.items() if not jobs],
        }

    def cancel(
        self, *, ids: Sequence[str], tags: Mapping[str, str] | None = None
    ) -> tuple[dict[str, Any], list[Job]]:
        """Cancel waiting jobs, and return the running jobs that the caller has to end.

        Args:
            ids: the native ids of jobs or arrays.
            tags: the tags that jobs must carry, for those ids whose tag the client knows.
        """
        jobs = [
            job
            for it in ids
            for job in self._state.find_jobs(it)
            if job.state not in FINAL and (tags or {}).get(it, job.submission.tag) == job.submission.tag
        ]
        ended = {"what": "ended", "state": "cancelled", "code": None, "time": self._now()}
        self._journal.write(
            {"what": "stopped", "ids": [job.native_id for job in jobs]},
            *({**ended, "id": job.native_id} for job in jobs if job.state == "waiting"),
            synced=True,
        )
        running = [job for job in jobs if job.state == "running"]
        return {"cancelled": {job.native_id: job.state for job in jobs}}, running

    def remove_unused_environments(self) -> None:
        """Remove environment files, which may hold secrets, that no known job needs any more."""
        needed = {it.environment for it in self._state.submissions.values()}
        for path in (self._folder / ENVIRONMENTS).glob("*"):
            if f"{ENVIRONMENTS}/{path.name}" not in needed:
                path.unlink(missing_ok=True)

    def _describe_job(self, job: Job) -> dict[str, Any]:
        has_ended, problem = job.state in FINAL, self._problems.get(job.submission.settings)
        values = {
            "restarts": job.restarts or None,
            "code": job.code,
            "ran": bool(job.nodes) and job.state != "unable" if has_ended else None,
            "message": (problem if job.state == "waiting" else None) or job.message or None,
            "place": job.nodes[0] if job.nodes else None,
            "nodes": [hostname_of(it) for it in job.nodes] or None,
        }
        answer = {"state": job.state, "time": job.time, "tag": job.submission.tag}
        return answer | {name: value for name, value in values.items() if value is not None}

    def _store_environment(self, environment: Mapping[str, str]) -> str:
        """Store this environment in a file, once for all jobs that have the same; return the file's name."""
        text = json.dumps(environment, sort_keys=True).encode()
        name = f"{ENVIRONMENTS}/{hashlib.sha256(text).hexdigest()[:24]}"
        path = self._folder / name
        if not path.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_private(path, text, synced=True)
        return name
