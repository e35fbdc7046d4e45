"""`Records`, the public interface of the package: makes, previews, commits, changes and cancels requests.

Applications and `jpsi request` open it; the dispatcher runs the executions that it assigns. Each use case is
one method.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from .. import model, reuse
from ..errors import InvalidRequestError, NothingToReuseError, StateError
from ..files import Captured
from ..inbox import NO_REPORT, Report, check_progress
from ..store import COLLECTION, EXECUTION, Transaction, events, executions, full_id, ledger, requests
from .copies import request_copy, write_changed_copies, write_copy, write_new_names, write_request_copy
from .queries import RecordsReader, check_containers, digest_of_name


class Records(RecordsReader):
    """Requests and executions, stored in a directory and a database. All methods are thread-safe."""

    def _write_copies(self, tx: Transaction) -> None:
        if self.may_dispatch:
            write_changed_copies(self, tx)

    # Collections.

    def put(self, source: Path | str, name: str | None = None) -> Captured:
        """Store a file or a directory as a collection and, if a name is given, make the name refer to it.

        Raises:
            StoreError: the source does not exist or cannot be read, or the records cannot be written.
        """
        captured = self.blobs.add_tree(Path(source))
        if name is not None:
            with self.database.writing() as tx:
                self._set_name(tx, name, captured.digest)
        return captured

    def _set_name(self, tx: Transaction, name: str, digest: str) -> None:
        values = {"digest": digest, "modified_at": tx.now, "modified_by": self.user}
        if digest_of_name(tx, name) is None:
            tx.execute(COLLECTION.insert().values(name=name, **values))
        elif not tx.execute(COLLECTION.update().where(COLLECTION.c.name == name).values(values)).rowcount:
            raise StateError(f"another user has a collection of the name {name}")
        tx.changed.collections.add(name)
        events.add(tx, "named", name=name, digest=digest, by=self.user)

    # Previews, drafts and commits.

    def draft(self, spec: model.RequestSpec, more: model.About = model.DEFAULT_ABOUT) -> model.Request:
        """Create a draft: a request for which nothing runs until it is committed."""
        spec = self._checked(spec)
        with self.database.writing() as tx:
            return self._add_draft(tx, spec, more)

    def _add_draft(self, tx: Transaction, spec: model.RequestSpec, more: model.About) -> model.Request:
        request_id = model.new_id(tx.now)
        return requests.create(
            tx, request_id, self.user, spec, _about(tx, more), state=model.RequestState.DRAFT
        )

    def update(
        self, request_id: str, spec: model.RequestSpec | None = None, more: model.About | None = None
    ) -> model.Request:
        """Change a draft; if the changed draft computes something else, its execution is detached.

        Args:
            request_id: the draft.
            spec: the new request spec; None keeps the old one.
            more: the new name, description, labels and so on; None keeps the old ones.

        Raises:
            StateError: the request is not a draft.
        """
        spec = None if spec is None else self._checked(spec)
        request_id = self._own(request_id).id
        with self.database.writing() as tx:
            request = self._draft(tx, request_id)
            about = {} if more is None else attrs.asdict(_about(tx, more, request.parent))
            values = {name: it for name, it in about.items() if it != getattr(request, name)}
            if spec is not None:
                values["request_spec"] = model.write_request_spec(spec)
                if spec != request.spec and request.execution is not None:
                    self._reset(tx, request)
            requests.change(tx, request_id, **values)
            return requests.get(tx, request_id)

    def satisfy(self, request_id: str) -> model.Request:
        """Assign a matching execution to a draft, or create one; it does not run before the commit.

        Raises:
            StateError: the request is not a draft, has an execution already, or waits for other requests; or
                the user may not dispatch.
            NothingToReuseError: no execution matches, and the request excludes a new run.
        """
        request = self._own(request_id)
        self._check_may_dispatch("satisfy a draft", _COMMIT)
        resolution = self._resolve_stored(request.spec)
        with self.database.writing() as tx:
            request = self._draft(tx, request.id)
            if request.execution is not None:
                raise StateError(f"request {request.id} has an execution already, {request.execution}")
            if resolution is None:
                msg = f"request {request.id} waits for others, and has no execution until those have ended"
                raise StateError(msg)
            execution, why = self._choose(tx, request, resolution, None)
            requests.change(tx, request.id, execution=execution.id)
            events.add(tx, "assigned", request=request.id, execution=execution.id, **why)
            return requests.get(tx, request.id)

    def reset(self, request_id: str) -> model.Request:
        """Detach the execution of a draft; cancel it if it is queued and no other request has it."""
        request_id = self._own(request_id).id
        self._check_may_dispatch("reset a draft", _COMMIT)
        with self.database.writing() as tx:
            self._reset(tx, self._draft(tx, request_id))
            return requests.get(tx, request_id)

    def _reset(self, tx: Transaction, request: model.Request) -> None:
        requests.change(tx, request.id, execution=None)
        events.add(tx, "reset", request=request.id, by=self.user)
        if request.execution is not None:
            ledger.discard(tx, request.execution)

    def _check_may_dispatch(self, what: str, instead: str = "") -> None:
        if not self.may_dispatch:
            owner = self.database.owner
            msg = f"the role {self.user} may not {what}: only {owner} may, which owns the tables{instead}"
            raise StateError(msg)

    def attach(self, request_id: str, execution_id: str) -> model.Request:
        """Assign the named execution to a draft, if the execution satisfies it.

        Raises:
            StateError: the request is not a draft, or the execution does not satisfy it; the message says
                why.
        """
        request = self._own(request_id)
        resolution = self._resolve(request.spec)
        with self.database.writing() as tx:
            return self._attach(tx, self._draft(tx, request.id), execution_id, resolution)

    def _attach(
        self, tx: Transaction, request: model.Request, execution_id: str, resolution: reuse.Resolution | None
    ) -> model.Request:
        execution_id = full_id(tx, EXECUTION.c.id, execution_id)
        chosen = executions.get(tx, execution_id)
        objections = list(reuse.Matcher(request.spec, tx.now, self._evidence(self.user)).objections(chosen))
        if resolution is None:
            objections.insert(0, "the request waits for others")
        elif chosen.fingerprint not in resolution.fingerprints:
            objections.insert(0, "it computes something else")
        if objections:
            msg = f"execution {execution_id} does not satisfy request {request.id}: {'; '.join(objections)}"
            raise StateError(msg)
        values: dict[str, Any] = {"execution": execution_id}
        if not self.may_dispatch:
            values = {
                "request_spec": model.write_request_spec(
                    reuse.with_chosen_execution(request.spec, execution_id)
                )
            }
        requests.change(tx, request.id, **values)
        return requests.get(tx, request.id)

    def commit(self, request_id: str, *, priority: float = 1, plan: str | None = None) -> model.Request:
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
        model.check_priority(priority)
        request = self._own(request_id)
        resolution = self._resolve_stored(request.spec)
        with self.database.writing() as tx:
            return self._commit(tx, self._draft(tx, request.id), resolution, priority, plan)

    def submit(
        self,
        spec: model.RequestSpec,
        more: model.About = model.DEFAULT_ABOUT,
        *,
        priority: float = 1,
        plan: str | None = None,
        execution: str | None = None,
    ) -> model.Request:
        """Create a request and commit it in the same transaction.

        Args:
            spec: the request spec.
            more: name, description, labels and other data of the request.
            priority: a higher number runs earlier; with zero or less, nothing runs.
            plan: the id of a preview; the submission fails if its result would differ from that preview.
            execution: the id of the execution to use; None finds or creates one.

        Raises the errors of `commit` and `attach`; then no request is created.
        """
        model.check_priority(priority)
        spec = self._checked(spec)
        resolution = self._resolve_stored(spec)
        with self.database.writing() as tx:
            request = self._add_draft(tx, spec, more)
            if execution is not None:
                request = self._attach(tx, request, execution, resolution)
            return self._commit(tx, request, resolution, priority, plan)

    def _resolve_stored(self, spec: model.RequestSpec) -> reuse.Resolution | None:
        """Resolve a request spec and store its own contents; None unless all predecessors have succeeded."""
        with self.database.reading() as tx:
            if reuse.outlook(tx, spec) is not reuse.Outlook.READY:
                return None
        resolution = self._resolve(spec)
        # A user who may not dispatch stores nothing: the dispatcher does, as it owns the files.
        for content in resolution.contents if self.may_dispatch else ():
            self.blobs.add_bytes(content)
        return resolution

    def _commit(
        self,
        tx: Transaction,
        request: model.Request,
        resolution: reuse.Resolution | None,
        priority: float,
        plan: str | None,
    ) -> model.Request:
        # A parent execution that ends withdraws its committed children, so none may be added after its end.
        _check_parent(tx, request.parent)
        values: dict[str, Any] = {"state": model.RequestState.COMMITTED.value, "priority": priority}
        if resolution is not None and not self.may_dispatch:
            hit = reuse.find_existing(tx, request, resolution, plan, self._evidence(self.user))
            if hit is not None and plan is not None:
                values["request_spec"] = model.write_request_spec(
                    reuse.with_chosen_execution(request.spec, hit.id)
                )
        requests.change(tx, request.id, **values)
        events.add(tx, "committed", request=request.id, priority=priority)
        if self.may_dispatch:
            committed = requests.get(tx, request.id)
            if resolution is not None:
                self._assign(tx, committed, resolution, plan)
            elif reuse.outlook(tx, request.spec) is reuse.Outlook.FAILED:
                _withdraw_behind_failure(tx, committed)
        return requests.get(tx, request.id)

    def _assign(
        self, tx: Transaction, request: model.Request, resolution: reuse.Resolution, plan: str | None
    ) -> None:
        execution, why = self._choose(tx, request, resolution, plan)
        ledger.assign(tx, request, execution, why)

    def _choose(
        self, tx: Transaction, request: model.Request, resolution: reuse.Resolution, plan: str | None
    ) -> tuple[model.Execution, Mapping[str, Any]]:
        execution, why = reuse.execution_for(tx, request, resolution, plan, self._evidence(request.owner))
        if why["is_new"]:
            check_containers(request.spec)
        return execution, why

    def advance(self) -> None:
        """Assign executions to requests whose predecessors have ended. The dispatcher calls this."""
        with self.database.reading() as tx:
            write_new_names(self, tx, self._written_names)
            waiting = ledger.waiting(tx)
            for it in waiting:
                # Users who may not dispatch write no copy of their requests.
                if not request_copy(self, it.id).exists():
                    write_request_copy(self, tx, it)
            ready = [it for it in waiting if _is_ready(tx, it)]
        for request in ready:
            self._advance_request(request)

    def _advance_request(self, request: model.Request) -> None:
        try:
            resolution = self._resolve_stored(request.spec)
            with self.database.writing() as tx:
                current = requests.get(tx, request.id)
                if current.state is not model.RequestState.COMMITTED or current.execution is not None:
                    return
                if resolution is None:
                    _withdraw_behind_failure(tx, current)
                else:
                    self._assign(tx, current, resolution, None)
        except (InvalidRequestError, NothingToReuseError) as e:
            with self.database.writing() as tx:
                events.add(tx, "refused", request=request.id, why=str(e))
                ledger.withdraw(tx, requests.get(tx, request.id), "refused")

    def rerun(self, execution_id: str, *, priority: float = 1) -> model.Request:
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
        spec = model.read_request_spec({**document, "placement": dict(execution.placement), "reuse": "never"})
        return self.submit(spec, priority=priority)

    # Changes of requests and executions.

    def set_priority(self, request_id: str, priority: float) -> model.Request:
        """Change the priority of a request that is committed or cancelled.

        With zero or less the request is cancelled; a priority above 0 takes that back, and if the request
        has lost its execution, it gets one as with `commit`. Zero or less is accepted for a finished request,
        too, and changes nothing.

        Raises:
            StateError: the request is a draft, or it is finished and the priority is above 0.
        """
        model.check_priority(priority)
        request_id = self._own(request_id).id
        with self.database.writing() as tx:
            request = requests.get(tx, request_id)
            if request.state is model.RequestState.FINAL:
                if priority <= 0:
                    return request
                outcome = f"over, {request.outcome}, and has no priority any more"
                raise StateError(f"request {request_id} is {outcome}; make another")
            if request.state is model.RequestState.DRAFT:
                msg = f"request {request_id} is {request.state.value}; only a committed one has a priority"
                raise StateError(msg)
            state = model.RequestState.COMMITTED if priority > 0 else model.RequestState.CANCELLED
            requests.change(tx, request_id, priority=priority, state=state.value)
            events.add(tx, "priority", request=request_id, priority=priority)
            if request.execution is not None and self.may_dispatch:
                ledger.settle(tx, request.execution)
            changed = requests.get(tx, request_id)
            is_ready = self.may_dispatch and _is_ready(tx, changed)
        if is_ready:
            # Its execution has got another placement meanwhile.
            self._advance_request(changed)
        return self.request(request_id)

    def cancel(self, request_id: str) -> model.Request:
        """Cancel a request: set its priority to zero; its execution goes on if another request needs it.

        This only records it: a dispatcher ends the job in its next round. If none runs,
        `Dispatcher.end_unwanted` ends the job, as `jpsi request cancel` does.

        `set_priority` undoes this: a running job continues unless it is being cancelled already; then
        the request gets another execution.

        Raises:
            StateError: the request is a draft.
        """
        return self.set_priority(request_id, 0)

    def invalidate(self, execution_id: str, why: str = "") -> model.Execution:
        """Exclude an execution from reuse by any further request."""
        execution_id = self.execution(execution_id).id
        self._check_may_dispatch("invalidate an execution")
        with self.database.writing() as tx:
            executions.change(tx, execution_id, invalidated_by=self.user, is_shared=0)
            events.add(tx, "invalidated", execution=execution_id, by=self.user, why=why)
        write_copy(self, execution_id)
        return self.execution(execution_id)

    def set_progress(
        self, execution_id: str, progress: float | None = None, report: Report = NO_REPORT
    ) -> model.Execution:
        """Record the progress of an execution, from 0 to 1, or a report of success or failure.

        An execution with a reported failure counts as failed, whatever its exit code: it satisfies only
        requests that accept failed executions.

        Raises:
            StateError: the execution is not running.
        """
        if progress is not None:
            check_progress(progress)
        execution_id = self.execution(execution_id).id
        self._check_may_dispatch("report the progress of an execution")
        with self.database.writing() as tx:
            state = executions.get(tx, execution_id).state
            if state is not model.ExecutionState.RUNNING:
                msg = f"execution {execution_id} is {state.value}; only a running one has progress"
                raise StateError(msg)
            ledger.record_progress(tx, execution_id, progress, report, by=self.user)
            return executions.get(tx, execution_id)

    def _own(self, request_id: str) -> model.Request:
        request = self.request(request_id)
        if request.owner != self.user:
            raise StateError(f"request {request_id} is {request.owner}'s")
        return request

    def _draft(self, tx: Transaction, request_id: str) -> model.Request:
        request = requests.get(tx, request_id)
        if request.state is not model.RequestState.DRAFT:
            raise StateError(f"request {request_id} is {request.state.value}, and not a draft any more")
        return request


_COMMIT = "; a request that is committed gets its execution from the dispatcher, a draft needs none before"


def _about(tx: Transaction, about: model.About, known_parent: str | None = None) -> model.About:
    """Return a description with the full id of the parent, which must not have ended."""
    parent = None if about.parent is None else full_id(tx, EXECUTION.c.id, about.parent)
    if parent != known_parent:
        _check_parent(tx, parent)
    return attrs.evolve(about, parent=parent)


def _is_ready(tx: Transaction, request: model.Request) -> bool:
    """Return True if a request can be assigned an execution, or be withdrawn behind a failure."""
    if request.state is not model.RequestState.COMMITTED or request.execution is not None:
        return False
    return reuse.outlook(tx, request.spec) is not reuse.Outlook.WAITS


def _withdraw_behind_failure(tx: Transaction, request: model.Request) -> None:
    why = reuse.describe_failed_predecessor(tx, request.spec)
    events.add(tx, "refused", request=request.id, why=why)
    ledger.withdraw(tx, request, reuse.Outlook.FAILED.value)


def _check_parent(tx: Transaction, parent: str | None) -> None:
    if parent is not None and executions.get(tx, parent).state.ended:
        raise StateError(f"execution {parent}, which is to be the parent, has ended")
