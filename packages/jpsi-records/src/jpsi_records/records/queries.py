"""Reads the records: queries and previews (`RecordsReader`). `Records` extends it by the changes.

`read_log` reads the logs of jobs. While a job runs, they are files of its attempt, which the job controls;
once it has ended, the last attempt's are in the blob store.
"""

from __future__ import annotations

import errno
import functools
import getpass
import os
from collections.abc import Callable, Sequence
from collections.abc import Collection as Container
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import attrs
from sqlalchemy import ColumnElement, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from jpsi.plugin import ConfigError
from jpsi_engine import make_private_directory, open_private

from .. import model, store
from ..errors import InvalidRequestError, NotFoundError, StoreError
from ..files import Blobs, Manifest, Reader, Repositories, digest_of, open_untrusted, read_manifest
from ..inbox import refuse_in_job
from ..jobs import AttemptFiles, engine_problem, find_engine, shortages
from ..model import Attempt, Execution
from ..reuse import (
    Evidence,
    NearMiss,
    Plan,
    Resolution,
    Resolver,
    describe_failed_predecessor,
    explain_inputs,
    passed_over,
    plan,
)


class RecordsReader:
    """Read access to requests, executions and their history, with previews of requests.

    Args:
        directory: the directory of the records' files, and of the SQLite database if no URL is given.
        url: a database URL of SQLAlchemy: `postgresql+psycopg://…`, or `sqlite:///…`.
        user: the user of the records; None is the PostgreSQL role if it is restricted, else the login name.
        now: returns the current time.

    Raises:
        StateError: this process belongs to the job of an execution, which opens no records.
        StoreError: the records cannot be reached, or were written by a newer version.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        url: str | None = None,
        user: str | None = None,
        now: Callable[[], datetime] = store.utc_now,
    ) -> None:
        refuse_in_job()
        self.directory = Path(directory).absolute()
        place = self.directory / "records.sqlite"
        if self.directory.exists() and url is None:
            self._make_private()
        else:
            self._check_ancestors()
        self.now = now
        self._written_names: dict[str, datetime] = {}
        self.blobs = Blobs(self.directory / "blobs", self.make_directory)
        self.repositories = Repositories(self.directory / "git", self.make_directory)
        self.database = self._opened(url or f"sqlite:///{place}", is_beside=url is None)
        self.user = user or self.database.restricted_to or getpass.getuser()
        self.database.user, self.database.now = self.user, now
        self.database.before_commit = self._write_copies

    def _opened(self, url: str, *, is_beside: bool) -> store.Database:
        """Open the database; one that does not exist yet is created by the first write."""
        path = store.sqlite_path(url)

        def make() -> None:
            self.make_directory()
            if is_beside and path is not None:
                os.close(open_private(path, os.O_RDWR | os.O_CREAT))

        return store.open_database(url, None if path is not None and path.exists() else make)

    def _write_copies(self, tx: store.Transaction) -> None:
        """Write copies of the records that a transaction has changed, before its commit."""

    def make_directory(self) -> None:
        """Create the directory of the records' files if it is missing.

        Raises:
            StoreError: the directory cannot be created.
        """
        if not self.directory.exists():
            self._make_private()

    def _make_private(self) -> None:
        try:
            # Private: who can change the database decides which commands the user's dispatcher runs.
            make_private_directory(self.directory, "the directory of the records")
        except ConfigError as e:
            raise StoreError(str(e), e) from e
        except OSError as e:
            raise self._cannot_be_made(e) from e

    def _check_ancestors(self) -> None:
        above = next(it for it in self.directory.parents if os.path.lexists(it))
        if not above.is_dir():
            raise self._cannot_be_made(NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))

    def _cannot_be_made(self, error: OSError) -> StoreError:
        msg = f"{self.directory}, the directory of the records, cannot be created: {error.strerror}"
        return StoreError(msg, error)

    @property
    def may_dispatch(self) -> bool:
        """True if this user may write executions; otherwise the dispatcher acts on the user's requests."""
        return self.database.restricted_to is None

    def request(self, request_id: str) -> model.Request:
        """Return a request by its id or by a unique prefix of it."""
        with self.database.reading() as tx:
            return store.requests.get(tx, store.full_id(tx, store.REQUEST.c.id, request_id))

    def requests(
        self,
        *,
        owner: str | None = None,
        state: model.RequestState | None = None,
        execution: str | None = None,
        parent: str | None = None,
    ) -> list[model.Request]:
        """Return requests, the oldest first, optionally only those with an owner, a state and so on."""
        state_value = None if state is None else state.value
        wanted = {"owner": owner, "state": state_value, "execution": execution, "parent": parent}
        conditions = _equal(store.REQUEST.c, **wanted)
        with self.database.reading() as tx:
            return store.requests.some(tx, *conditions)

    def newest_requests(
        self, most: int, *, owner: str | None = None, before: str | None = None
    ) -> list[model.Request]:
        """Return at most `most` requests, the newest first; optionally of one owner, or older than an id."""
        conditions = _equal(store.REQUEST.c, owner=owner)
        conditions += [] if before is None else [store.REQUEST.c.id < before]
        with self.database.reading() as tx:
            return store.requests.newest(tx, most, *conditions)

    def newest_executions(self, most: int, *, before: str | None = None) -> list[model.Execution]:
        """Return at most `most` executions, the newest first; optionally only those older than an id."""
        conditions = [] if before is None else [store.EXECUTION.c.id < before]
        with self.database.reading() as tx:
            return store.executions.newest(tx, most, *conditions)

    def executions(self, ids: Container[str]) -> dict[str, model.Execution]:
        """Return executions by id, without those that do not exist."""
        with self.database.reading() as tx:
            return {it.id: it for it in store.executions.of_ids(tx, ids)}

    def execution(self, execution_id: str) -> model.Execution:
        """Return an execution by its id or by a unique prefix of it."""
        with self.database.reading() as tx:
            return store.executions.get(tx, store.full_id(tx, store.EXECUTION.c.id, execution_id))

    def attempts(self, execution_id: str) -> list[model.Attempt]:
        """Return the attempts of an execution, the first one first."""
        with self.database.reading() as tx:
            return store.executions.attempts(tx, execution_id)

    def dispatchers(self) -> list[str]:
        """Return the dispatchers that run, such as `process 12 on node1`.

        One that was killed on another machine is among them until its lease expires, after a minute.
        """
        with self.database.reading() as tx:
            return [store.describe_process(it) for it in store.dispatchers.running(tx)]

    @property
    def executions_directory(self) -> Path:
        """The directory of all executions' files."""
        return self.directory / "executions"

    def attempt_directory(self, attempt: model.Attempt) -> Path:
        """Return the directory of an attempt's files."""
        return self.execution_directory(attempt.execution) / str(attempt.number)

    def execution_directory(self, execution_id: str) -> Path:
        """Return the directory of an execution's files."""
        return self.executions_directory / execution_id

    def events(self, *, request: str | None = None, execution: str | None = None) -> list[model.Event]:
        """Return events in order, optionally only those of a request and an execution."""
        with self.database.reading() as tx:
            return store.events.some(tx, *_equal(store.EVENT.c, request=request, execution=execution))

    def assignments(self) -> dict[tuple[str, str], model.Event]:
        """Return, by request and execution, the event that says whether the execution was new then."""
        with self.database.reading() as tx:
            found = store.events.some(tx, store.EVENT.c.kind == "assigned")
        # a commit repeats the event of a draft, and the first one counts
        return {(str(it.request), str(it.execution)): it for it in reversed(found)}

    def collection(self, name: str) -> str | None:
        """Return the digest of the collection with a name; None if there is none."""
        with self.database.reading() as tx:
            return digest_of_name(tx, name)

    def usage(self, *, execution: str | None = None, user: str | None = None) -> list[model.Interval]:
        """Return accounting intervals in order, optionally only those of an execution and a user."""
        with self.database.reading() as tx:
            return store.events.intervals(tx, *_equal(store.ACCOUNTING.c, execution=execution, owner=user))

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def preview(self, spec: model.RequestSpec) -> Plan:
        """Return how a request would be satisfied now. No record is written.

        Raises:
            InvalidRequestError: the request can never be satisfied.
        """
        spec = self._checked(spec)
        resolution = self._resolve(spec)
        with self.database.reading() as tx:
            found = plan(tx, spec, resolution, self._evidence(self.user))
            failed = describe_failed_predecessor(tx, spec)
        near_misses = self._explained(found.near_misses, spec, resolution.contents, is_past=False)
        found = attrs.evolve(found, near_misses=near_misses)
        if found.runs:
            check_containers(spec)
            never = [f"it would never run: {failed}"] if failed else []
            found = attrs.evolve(found, warnings=[*never, *self.warnings(spec)])
        return found

    def warnings(self, spec: model.RequestSpec) -> Sequence[str]:
        """Return warnings about a new execution on this machine: lack of space for temporary directories."""
        return list(shortages(spec.capacities, self.directory))

    def find(self, spec: model.RequestSpec) -> model.Execution | None:
        """Return a recorded execution that satisfies a request, or None. No record is written."""
        return self.preview(attrs.evolve(spec, reuse=model.Reuse.ONLY)).hit

    def passed_over(self, request_id: str) -> Sequence[NearMiss]:
        """Return the near misses among the executions that are older than that of a request."""
        with self.database.reading() as tx:
            request = store.requests.get(tx, store.full_id(tx, store.REQUEST.c.id, request_id))
            found = passed_over(tx, request, self._evidence(request.owner))
        return self._explained(found, request.spec, is_past=True)

    def _explained(
        self,
        near_misses: Sequence[NearMiss],
        spec: model.RequestSpec,
        contents: Sequence[bytes] = (),
        *,
        is_past: bool,
    ) -> Sequence[NearMiss]:
        """Return near misses that say which inputs differ; `contents` are those that are not stored yet."""
        own = {digest_of(it): it for it in contents}

        @functools.cache
        def read(digest: str) -> Manifest | None:
            try:
                return read_manifest(own[digest].decode()) if digest in own else self.blobs.manifest(digest)
            except StoreError:
                return None

        return [explain_inputs(it, spec.computation.mounts, read, is_past=is_past) for it in near_misses]

    def _checked(self, spec: model.RequestSpec) -> model.RequestSpec:
        """Return a valid request spec with full ids of other requests and absolute paths of repositories."""
        model.check_request_spec(spec)
        spec = model.with_absolute_urls(spec)
        if not spec.predecessors:
            return spec
        with self.database.reading() as tx:
            ids = {it: store.full_id(tx, store.REQUEST.c.id, it) for it in spec.predecessors}
        mounts = {
            target: attrs.evolve(it, request=ids[it.request]) if isinstance(it, model.Output) else it
            for target, it in spec.computation.mounts.items()
        }
        after = tuple(ids[it] for it in spec.after)
        return attrs.evolve(spec, after=after, computation=attrs.evolve(spec.computation, mounts=mounts))

    def _resolve(self, spec: model.RequestSpec) -> Resolution:
        # An earlier version, or another user of the database, may have recorded what is refused now.
        model.check_request_spec(spec)
        with self.database.reading() as tx:
            digests = {target: _current_digest(tx, it) for target, it in spec.computation.mounts.items()}
        # Outside the transaction: git may take minutes, and writers would have to wait.
        return Resolver(self.blobs, self.repositories, digests).resolve(spec.computation)

    def _evidence(self, user: str) -> Evidence:
        """Return a caching function that says why an execution's output is unusable for a user."""
        if user == self.user:
            trouble = functools.cache(self.blobs.trouble)
        else:
            reader = Reader.of_user_name(user)
            may_read = (lambda _: False) if reader is None else reader.may_read
            trouble = functools.cache(functools.partial(self.blobs.trouble, may_read=may_read))

        def evidence(execution: model.Execution) -> str | None:
            found = None if execution.output is None else trouble(execution.output)
            return None if found is None else f"of its output, {found}"

        return evidence


def _equal(columns: ReadOnlyColumnCollection[str, Any], **values: str | None) -> list[ColumnElement[bool]]:
    """Return the conditions that columns have the given values; None is no condition."""
    return [columns[name] == value for name, value in values.items() if value is not None]


def _current_digest(tx: store.Transaction, mount: model.Mount) -> str | None:
    """Return the digest of the collection that a mount names, or of the output of its request."""
    if isinstance(mount, model.Output):
        request = store.requests.get(tx, mount.request)
        return None if request.execution is None else store.executions.get(tx, request.execution).output
    if isinstance(mount, model.Collection | model.CollectionFile) and mount.name is not None:
        return digest_of_name(tx, mount.name)
    return None


def digest_of_name(tx: store.Transaction, name: str) -> str | None:
    """Return the digest of the collection with a name."""
    return tx.execute(select(store.COLLECTION.c.digest).where(store.COLLECTION.c.name == name)).scalar()


def check_containers(spec: model.RequestSpec) -> None:
    """Raise `InvalidRequestError` if the request needs a container and this machine cannot start one."""
    if spec.computation.container_image is None:
        return
    problem = engine_problem(find_engine(), says_cwd=spec.computation.cwd is not None)
    if problem is not None:
        raise InvalidRequestError.of([problem])


#: The names of the logs.
LOG_NAMES = ("stdout", "stderr")


def read_log(
    records: RecordsReader, execution: Execution, attempt: Attempt, name: str, most: int | None = None
) -> tuple[bytes, int]:
    """Return an attempt's standard output or error, and the number of bytes before what is returned.

    Args:
        records: those of the execution.
        execution: the execution of the attempt.
        attempt: the attempt.
        name: one of `LOG_NAMES`.
        most: the most bytes to return, the last ones; None is all.

    Raises:
        NotFoundError: the file does not exist or cannot be read.
    """
    stored = None if execution.log is None else records.blobs.manifest(execution.log).get(name)
    is_last = attempt.number == max((it.number for it in records.attempts(execution.id)), default=0)
    if stored is not None and stored.link is None and is_last:
        path = records.blobs.path(stored.digest)
    else:
        files = AttemptFiles(records.attempt_directory(attempt))
        path = files.stdout if name == "stdout" else files.stderr
    try:
        with open_untrusted(path) as file:
            skipped = 0 if most is None else max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(skipped)
            return file.read(-1 if most is None else most), skipped
    except OSError as e:
        raise NotFoundError(f"there is no {path.name} that can be read: {e.strerror}", e) from e
