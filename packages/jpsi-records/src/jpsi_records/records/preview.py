"""Previews: the result of a request, found in files, repositories and records without writing a record."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import attrs
from sqlalchemy import select

from ..errors import InvalidRequestError
from ..files import Reader
from ..jobs import engine_problem, find_engine, shortages
from ..model import (
    Collection,
    CollectionFile,
    Execution,
    Mount,
    Output,
    RequestSpec,
    Reuse,
    check_request_spec,
    with_absolute_urls,
)
from ..reuse import Evidence, NearMiss, Plan, Resolution, Resolver, passed_over, plan
from ..store import COLLECTION, REQUEST, Transaction, executions, full_id, requests
from .queries import RecordsReader


class RecordsPreview(RecordsReader):
    """Read access to the records, with previews of requests."""

    def preview(self, spec: RequestSpec) -> Plan:
        """Return how a request would be satisfied now. No record is written.

        Raises:
            InvalidRequestError: the request can never be satisfied.
        """
        spec = self._checked(spec)
        resolution = self._resolve(spec)
        with self.database.reading() as tx:
            found = plan(tx, spec, resolution, self._evidence(self.user))
        if found.runs:
            check_containers(spec)
            found = attrs.evolve(found, warnings=self.warnings(spec))
        return found

    def warnings(self, spec: RequestSpec) -> Sequence[str]:
        """Return warnings about a new execution on this machine: lack of space for temporary directories."""
        return list(shortages(spec.capacities, self.directory))

    def find(self, spec: RequestSpec) -> Execution | None:
        """Return a recorded execution that satisfies a request, or None. No record is written."""
        return self.preview(attrs.evolve(spec, reuse=Reuse.ONLY)).hit

    def passed_over(self, request_id: str) -> Sequence[NearMiss]:
        """Return the near misses among the executions that are older than that of a request."""
        with self.database.reading() as tx:
            request = requests.get(tx, full_id(tx, REQUEST.c.id, request_id))
            return passed_over(tx, request, self._evidence(request.owner))

    def _checked(self, spec: RequestSpec) -> RequestSpec:
        """Return a valid request spec with full ids of other requests and absolute paths of repositories."""
        check_request_spec(spec)
        spec = with_absolute_urls(spec)
        if not spec.predecessors:
            return spec
        with self.database.reading() as tx:
            ids = {it: full_id(tx, REQUEST.c.id, it) for it in spec.predecessors}
        mounts = {
            target: attrs.evolve(it, request=ids[it.request]) if isinstance(it, Output) else it
            for target, it in spec.computation.mounts.items()
        }
        after = tuple(ids[it] for it in spec.after)
        return attrs.evolve(spec, after=after, computation=attrs.evolve(spec.computation, mounts=mounts))

    def _resolve(self, spec: RequestSpec) -> Resolution:
        with self.database.reading() as tx:
            digests = {target: _current_digest(tx, it) for target, it in spec.computation.mounts.items()}
        # Outside the transaction: git may take minutes, and writers would have to wait.
        return Resolver(self.blobs, self.repositories, digests).resolve(spec.computation)

    def _evidence(self, user: str) -> Evidence:
        """Return a caching function that says why an execution's output is unusable for a user."""
        if user == self.user:
            trouble = functools.cache(self.blobs.trouble)
        else:
            reader = Reader.of(user)
            may_read = (lambda _: False) if reader is None else reader.may_read
            trouble = functools.cache(functools.partial(self.blobs.trouble, may_read=may_read))

        def evidence(execution: Execution) -> str | None:
            found = None if execution.output is None else trouble(execution.output)
            return None if found is None else f"of its output, {found}"

        return evidence


def _current_digest(tx: Transaction, mount: Mount) -> str | None:
    """Return the digest of the collection that a mount names, or of the output of its request."""
    if isinstance(mount, Output):
        request = requests.get(tx, mount.request)
        return None if request.execution is None else executions.get(tx, request.execution).output
    if isinstance(mount, Collection | CollectionFile) and mount.name is not None:
        return digest_of_name(tx, mount.name)
    return None


def digest_of_name(tx: Transaction, name: str) -> str | None:
    """Return the digest of the collection with a name."""
    return tx.execute(select(COLLECTION.c.digest).where(COLLECTION.c.name == name)).scalar()


def check_containers(spec: RequestSpec) -> None:
    """Raise `InvalidRequestError` if the request needs a container and this machine cannot start one."""
    if spec.computation.container_image is None:
        return
    problem = engine_problem(find_engine(), says_cwd=spec.computation.cwd is not None)
    if problem is not None:
        raise InvalidRequestError.of([problem])
