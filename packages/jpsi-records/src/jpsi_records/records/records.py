"""The public interface to the records: each use case is one method of `Records`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from sqlalchemy import Connection, Update

from ..errors import InvalidRequestError, NothingToReuseError, StateError
from ..files import Captured
from ..inbox import NO_REPORT, Report, check_progress
from ..model import (
    DEFAULT_ABOUT,
    About,
    Execution,
    ExecutionState,
    Request,
    RequestSpec,
    RequestState,
    check_priority,
    check_request_spec,
    new_id,
    read_request_spec,
    write_request_spec,
)
from ..reuse import (
    Outlook,
    Resolution,
    execution_for,
    find_existing,
    objections,
    outlook,
    with_chosen_execution,
)
from ..store import COLLECTION, EXECUTION, changed_in, events, executions, full_id, ledger, requests
from .copies import NameCopies, request_copy, write_changed_copies, write_copy, write_request_copy
from .preview import RecordsPreview, check_containers
from .queries import utc_now


class Records(RecordsPreview):
    """Requests and executions, stored in a directory and a database. All methods are thread-safe."""

    def __init__(
        self,
        directory: Path | str,
        *,
        url: str | None = None,
        user: str | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(directory, url=url, user=user, now=now)
        if self.may_dispatch:
            self.database.before_commit = functools.partial(write_changed_copies, self)
        self._names = NameCopies(self)

    # Collections.

    def put(self, source: Path | str, name: str | None = None) -> Captured:
        """Store a file or a directory as a collection and, if a name is given, make the name refer to it."""
        captured = self.blobs.add_tree(Path(source))
        if name is not None:
            with self.database.writing() as connection:
                self._set_name(connection, name, captured.digest)
        return captured

    def _set_name(self, connection: Connection, name: str, digest: str) -> None:
        values = {"digest": digest, "modified_at": self.now(), "modified_by": self.user}
        if self._digest(connection, name) is None:
            connection.execute(COLLECTION.insert().values(name=name, **values))
        elif not _was_done(connection, COLLECTION.update().where(COLLECTION.c.name == name).values(values)):
            msg = f"{name} is the name that somebody else has given to a collection"
            raise StateError(msg)
        changed_in(connection).collections.add(name)
        events.add(connection, self.now(), "named", data={"name": name, "digest": digest, "by": self.user})

    # Previews, drafts and commits.

    def draft(self, spec: RequestSpec, more: About = DEFAULT_ABOUT) -> Request:
        """Create a draft: a request for which nothing runs until it is committed."""
        check_request_spec(spec)
        spec = self._with_full_ids(spec)
        with self.database.writing() as connection:
            return self._add_draft(connection, spec, more)

    def update(self, request_id: str, spec: RequestSpec | None = None, more: About | None = None) -> Request:
        """Change a draft; if the changed draft computes something else, its execution is detached.

        Args:
            request_id: the draft.
            spec: the new request spec; None keeps the old one.
            more: the new name, description, labels and so on; None keeps the old ones.

        Raises:
            StateError: the request is not a draft.
        """
        if spec is not None:
            check_request_spec(spec)
            spec = self._with_full_ids(spec)
        request_id = self._own(request_id).id
        with self.database.writing() as connection:
            request = self._draft(connection, request_id)
            said = {} if more is None else attrs.asdict(self._with_full_parent(connection, more))
            values = {name: it for name, it in said.items() if it != getattr(request, name)}
            values |= {} if spec is None else {"wish": write_request_spec(spec)}
            self._check_parent(connection, values.get("parent"))
            wants_another = spec is not None and spec != request.spec
            if wants_another and request.execution is not None:
                self._reset(connection, request)
            requests.change(connection, request_id, self.now(), **values)
            return requests.get(connection, request_id)

    def _with_full_parent(self, connection: Connection, more: About) -> About:
        if more.parent is None:
            return more
        return attrs.evolve(more, parent=full_id(connection, EXECUTION.c.id, more.parent))

    def _check_parent(self, connection: Connection, parent: str | None) -> None:
        if parent is not None and executions.get(connection, parent).state.ended:
            msg = f"execution {parent}, which is to be the parent, has ended"
            raise StateError(msg)

    def _add_draft(self, connection: Connection, spec: RequestSpec, more: About) -> Request:
        more = self._with_full_parent(connection, more)
        self._check_parent(connection, more.parent)
        now = self.now()
        request = Request(
            id=new_id(now),
            owner=self.user,
            state=RequestState.DRAFT,
            spec=spec,
            created_at=now,
            modified_at=now,
            modified_by=self.user,
            **attrs.asdict(more),
        )
        requests.add(connection, request)
        events.add(connection, now, "created", request=request.id, data={"by": self.user})
        return request

    def satisfy(self, request_id: str) -> Request:
        """Assign a matching execution to a draft, or create one; it does not run before the commit.

        Raises:
            StateError: the request is not a draft, has an execution already, or waits for other requests; or
                the user may not dispatch.
            NothingToReuseError: no execution matches, and the request excludes a new run.
        """
        request = self._own(request_id)
        self._check_may_dispatch("satisfy a draft", _COMMIT)
        resolution = self._resolve_stored(request.spec)
        with self.database.writing() as connection:
            request = self._draft(connection, request.id)
            if request.execution is not None:
                msg = f"request {request.id} has an execution already, {request.execution}"
                raise StateError(msg)
            if resolution is None:
                msg = f"request {request.id} waits for others, and has no execution until those have ended"
                raise StateError(msg)
            now = self.now()
            execution, why = execution_for(
                connection, request, resolution, now, None, self._evidence(self.user)
            )
            if why["is_new"]:
                check_containers(request.spec)
            requests.change(connection, request.id, now, execution=execution.id)
            events.add(connection, now, "assigned", request=request.id, execution=execution.id, data=why)
            return requests.get(connection, request.id)

    def reset(self, request_id: str) -> Request:
        """Detach the execution of a draft; cancel it if it is queued and no other request has it."""
        request_id = self._own(request_id).id
        self._check_may_dispatch("reset a draft", _COMMIT)
        with self.database.writing() as connection:
            self._reset(connection, self._draft(connection, request_id))
            return requests.get(connection, request_id)

    def _reset(self, connection: Connection, request: Request) -> None:
        now = self.now()
        requests.change(connection, request.id, now, execution=None)
        events.add(connection, now, "reset", request=request.id, data={"by": self.user})
        if request.execution is not None:
            ledger.discard(connection, request.execution, now)

    def _check_may_dispatch(self, what: str, instead: str = "") -> None:
        if not self.may_dispatch:
            owner = self.database.owner
            msg = f"the role {self.user} may not {what}: only {owner} may, which owns the tables{instead}"
            raise StateError(msg)

    def attach(self, request_id: str, execution_id: str) -> Request:
        """Assign the named execution to a draft, if the execution satisfies it.

        Raises:
            StateError: the request is not a draft, or the execution does not satisfy it; the message says
                why.
        """
        request = self._own(request_id)
        resolution = self._resolve(request.spec)
        with self.database.writing() as connection:
            return self._attach(connection, self._draft(connection, request.id), execution_id, resolution)

    def _attach(
        self, connection: Connection, request: Request, execution_id: str, resolution: Resolution | None
    ) -> Request:
        execution_id = full_id(connection, EXECUTION.c.id, execution_id)
        chosen = executions.get(connection, execution_id)
        wrong = list(objections(chosen, request.spec, self.now(), self._evidence(self.user)))
        if resolution is None:
            wrong.insert(0, "the request waits for others")
        elif chosen.fingerprint not in resolution.fingerprints:
            wrong.insert(0, "it computes something else")
        if wrong:
            msg = f"execution {execution_id} does not satisfy request {request.id}: {'; '.join(wrong)}"
            raise StateError(msg)
        values: dict[str, Any] = {"execution": execution_id}
        if not self.may_dispatch:
            values = {"wish": write_request_spec(with_chosen_execution(request.spec, execution_id))}
        requests.change(connection, request.id, self.now(), **values)
        return requests.get(connection, request.id)

    def commit(self, request_id: str, *, priority: float = 1, plan: str | None = None) -> Request:
        """Commit a draft: it gets an execution, which runs while one of its requests has a priority above 0.

        If the user may not dispatch, the dispatcher assigns the execution in its next round.

        Args:
            request_id: the draft.
            priority: a higher number runs earlier; with zero or less, nothing runs.
            plan: the id of a preview; the commit fails if its result would differ from that preview.

        Raises:
            StateError: the request is not a draft, or its parent execution has ended.
            ChangedError: the result would differ from the preview.
            NothingToReuseError: no execution matches, and the request excludes a new run.
        """
        check_priority(priority)
        request = self._own(request_id)
        resolution = self._resolve_stored(request.spec)
        with self.database.writing() as connection:
            return self._commit(connection, self._draft(connection, request.id), resolution, priority, plan)

    def submit(
        self,
        spec: RequestSpec,
        more: About = DEFAULT_ABOUT,
        *,
        priority: float = 1,
        plan: str | None = None,
        execution: str | None = None,
    ) -> Request:
        """Create a request and commit it in the same transaction.

        Args:
            spec: the request spec.
            more: name, description, labels and other data of the request.
            priority: a higher number runs earlier; with zero or less, nothing runs.
            plan: the id of a preview; the submission fails if its result would differ from that preview.
            execution: the id of the execution to use; None finds or creates one.

        Raises the errors of `commit` and `attach`; then no request is created.
        """
        check_request_spec(spec)
        check_priority(priority)
        spec = self._with_full_ids(spec)
        resolution = self._resolve_stored(spec)
        with self.database.writing() as connection:
            request = self._add_draft(connection, spec, more)
            if execution is not None:
                request = self._attach(connection, request, execution, resolution)
            return self._commit(connection, request, resolution, priority, plan)

    def _resolve_stored(self, spec: RequestSpec) -> Resolution | None:
        """Resolve a request spec and store its own contents; None unless all predecessors have succeeded."""
        with self.database.reading() as connection:
            if outlook(connection, spec) is not Outlook.READY:
                return None
        resolution = self._resolve(spec)
        # A user who may not dispatch stores nothing: the dispatcher does, as it owns the files.
        for content in resolution.contents if self.may_dispatch else ():
            self.blobs.add_bytes(content)
        return resolution

    def _commit(
        self,
        connection: Connection,
        request: Request,
        resolution: Resolution | None,
        priority: float,
        plan: str | None,
    ) -> Request:
        # A parent execution that ends withdraws its committed children, so none may be added after its end.
        self._check_parent(connection, request.parent)
        now = self.now()
        values: dict[str, Any] = {"state": RequestState.COMMITTED.value, "priority": priority}
        if resolution is not None and not self.may_dispatch:
            evidence = self._evidence(self.user)
            hit = find_existing(connection, request, resolution, now, plan, evidence)
            if hit is not None and plan is not None:
                values["wish"] = write_request_spec(with_chosen_execution(request.spec, hit.id))
        requests.change(connection, request.id, now, **values)
        events.add(connection, now, "committed", request=request.id, data={"priority": priority})
        committed = requests.get(connection, request.id)
        if not self.may_dispatch:
            return committed
        if resolution is not None:
            self._assign(connection, committed, resolution, plan)
        elif outlook(connection, request.spec) is Outlook.FAILED:
            ledger.withdraw(connection, committed, now, Outlook.FAILED.value)
        return requests.get(connection, request.id)

    def _assign(
        self, connection: Connection, request: Request, resolution: Resolution, plan: str | None
    ) -> None:
        now = self.now()
        execution, why = execution_for(
            connection, request, resolution, now, plan, self._evidence(request.owner)
        )
        if why["is_new"]:
            check_containers(request.spec)
        ledger.assign(connection, request, execution, now, why)

    def advance(self) -> None:
        """Assign executions to requests whose predecessors have ended. The dispatcher calls this."""
        with self.database.reading() as connection:
            self._names.keep(connection)
            waiting = ledger.waiting(connection)
            for it in waiting:
                # Users who may not dispatch write no copy of their requests.
                if not request_copy(self, it.id).exists():
                    write_request_copy(self, connection, it)
            found = {it.id: outlook(connection, it.spec) for it in waiting}
        for request in waiting:
            if found[request.id] is not Outlook.WAITS:
                self._advance_request(request)

    def _advance_request(self, request: Request) -> None:
        try:
            resolution = self._resolve_stored(request.spec)
            with self.database.writing() as connection:
                now = requests.get(connection, request.id)
                if now.state is not RequestState.COMMITTED or now.execution is not None:
                    return
                if resolution is None:
                    ledger.withdraw(connection, now, self.now(), Outlook.FAILED.value)
                else:
                    self._assign(connection, now, resolution, None)
        except (InvalidRequestError, NothingToReuseError) as e:
            with self.database.writing() as connection:
                told = {"why": str(e)}
                events.add(connection, self.now(), "refused", request=request.id, data=told)
                ledger.withdraw(connection, requests.get(connection, request.id), self.now(), "refused")

    def rerun(self, execution_id: str, *, priority: float = 1) -> Request:
        """Submit a new run of exactly what an execution has computed."""
        execution = self.execution(execution_id)
        document = json.loads(execution.preimage)
        del document["v"]
        for name in ("processes", "threads"):
            if document.get(name) == "any":
                document |= {name: 1, "topology": "any"}
        if "container_image" in document:
            document["container_image"] = execution.recorded["container_image"]
        if document.get("cwd", "/") is None:
            del document["cwd"]
        for target, capacity in execution.capacities.items():
            document["mounts"][target]["capacity"] = capacity
        spec = read_request_spec({**document, "placement": dict(execution.placement), "reuse": "never"})
        return self.submit(spec, priority=priority)

    # Changes of requests and executions.

    def set_priority(self, request_id: str, priority: float) -> Request:
        """Change the priority of a committed request.

        Zero or less is accepted for a finished request, too, and changes nothing.

        Raises:
            StateError: the request is a draft, or it is finished and the priority is above 0.
        """
        check_priority(priority)
        request_id = self._own(request_id).id
        with self.database.writing() as connection:
            return self._set_priority(connection, request_id, priority)

    def _set_priority(self, connection: Connection, request_id: str, priority: float) -> Request:
        request = requests.get(connection, request_id)
        if request.state is RequestState.FINAL and priority <= 0:
            return request
        if request.state is RequestState.FINAL:
            over = f"over, {request.outcome}, and has no priority any more"
            msg = f"request {request_id} is {over}; make another"
            raise StateError(msg)
        if request.state is not RequestState.COMMITTED:
            msg = f"request {request_id} is {request.state.value}; only a committed one has a priority"
            raise StateError(msg)
        now = self.now()
        requests.change(connection, request_id, now, priority=priority)
        events.add(connection, now, "priority", request=request_id, data={"priority": priority})
        if request.execution is not None and self.may_dispatch:
            ledger.settle(connection, request.execution, now)
        return requests.get(connection, request_id)

    def cancel(self, request_id: str) -> Request:
        """Set the priority of a request to zero; the execution goes on if another request needs it.

        `set_priority` undoes this: a running job continues unless it is being cancelled already; then
        the request gets another execution.

        Raises:
            StateError: the request is a draft.
        """
        return self.set_priority(request_id, 0)

    def invalidate(self, execution_id: str, why: str = "") -> Execution:
        """Exclude an execution from reuse by any further request."""
        execution_id = self.execution(execution_id).id
        self._check_may_dispatch("invalidate an execution")
        with self.database.writing() as connection:
            now = self.now()
            executions.change(connection, execution_id, now, invalidated_by=self.user, is_shared=0)
            told = {"by": self.user, "why": why}
            events.add(connection, now, "invalidated", execution=execution_id, data=told)
        write_copy(self, execution_id)
        return self.execution(execution_id)

    def set_progress(
        self, execution_id: str, progress: float | None = None, report: Report = NO_REPORT
    ) -> Execution:
        """Record the progress of an execution, from 0 to 1, or a report of success or failure.

        An execution with a reported failure counts as failed, whatever its exit code: it satisfies only
        requests that accept failed executions.

        Raises:
            StateError: the execution is not running.
        """
        if progress is not None:
            check_progress(progress)
        execution_id = self.execution(execution_id).id
        self._check_may_dispatch("tell the progress of an execution")
        with self.database.writing() as connection:
            execution = executions.get(connection, execution_id)
            if execution.state is not ExecutionState.RUNNING:
                msg = f"execution {execution_id} is {execution.state.value}; only a running one has progress"
                raise StateError(msg)
            values: dict[str, Any] = {} if progress is None else {"progress": progress}
            values["status"] = report.added_to(execution.status)
            now = self.now()
            executions.change(connection, execution_id, now, **values)
            if report.is_success is not None:
                data = {"reported": report.word, "message": report.message, "by": self.user}
                events.add(connection, now, "reported", execution=execution_id, data=data)
            return executions.get(connection, execution_id)

    def _own(self, request_id: str) -> Request:
        request = self.request(request_id)
        if request.owner != self.user:
            msg = f"request {request_id} is {request.owner}'s"
            raise StateError(msg)
        return request

    def _draft(self, connection: Connection, request_id: str) -> Request:
        request = requests.get(connection, request_id)
        if request.owner != self.user:
            msg = f"request {request_id} is {request.owner}'s"
            raise StateError(msg)
        if request.state is not RequestState.DRAFT:
            msg = f"request {request_id} is {request.state.value}, and not a draft any more"
            raise StateError(msg)
        return request


_COMMIT = "; a request that is committed gets its execution from the dispatcher, a draft needs none before"


def _was_done(connection: Connection, change: Update) -> bool:
    return connection.execute(change).rowcount == 1
