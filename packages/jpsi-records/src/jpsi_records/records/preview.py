"""What would come of wishes: what looks into files and repositories for that, and writes no record."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import attrs
from sqlalchemy import Connection, select

from ..errors import InvalidRequestError
from ..files import Reader
from ..jobs import engine_problem, find_engine, shortages
from ..model import Execution, Output, Reuse, Wish, check_wish, with_absolute_urls
from ..reuse import Lookup, NearMiss, Plan, Resolution, Resolver, passed_over, plan
from ..store import COLLECTION, REQUEST, executions, full_id, requests
from .queries import Reading


class Previewing(Reading):
    """Requests and executions as they are, and as they would be."""

    def preview(self, wish: Wish) -> Plan:
        """What would come of a wish now. No record is written.

        Raises:
            InvalidRequestError: it can never be satisfied as it stands.
        """
        check_wish(wish)
        wish = self._with_full_ids(wish)
        resolution = self._resolve(wish)
        with self.database.reading() as connection:
            found = plan(connection, wish, resolution, self.now(), self._evidence(self.user))
        if found.runs:
            check_containers(wish)
            found = attrs.evolve(found, warnings=self.warnings(wish))
        return found

    def warnings(self, wish: Wish) -> Sequence[str]:
        """What a new execution of a wish may lack here, a sentence each: room for temporary directories."""
        return list(shortages(wish.capacities, self.directory))

    def find(self, wish: Wish) -> Execution | None:
        """The execution that satisfies a wish already; None if there is none. No record is written."""
        return self.preview(attrs.evolve(wish, reuse=Reuse.ONLY)).hit

    def passed_over(self, request_id: str) -> Sequence[NearMiss]:
        """What was there before the execution of a request was made, and comes closest to it."""
        with self.database.reading() as connection:
            request = requests.get(connection, full_id(connection, REQUEST.c.id, request_id))
            return passed_over(connection, request, self.now(), self._evidence(request.owner))

    def _with_full_ids(self, wish: Wish) -> Wish:
        """A wish that names other requests by the whole of their ids, and repositories from everywhere."""
        wish = with_absolute_urls(wish)
        if not wish.predecessors:
            return wish
        with self.database.reading() as connection:
            ids = {it: full_id(connection, REQUEST.c.id, it) for it in wish.predecessors}
        mounts = {
            target: attrs.evolve(it, request=ids[it.request]) if isinstance(it, Output) else it
            for target, it in wish.computation.mounts.items()
        }
        after = tuple(ids[it] for it in wish.after)
        return attrs.evolve(wish, after=after, computation=attrs.evolve(wish.computation, mounts=mounts))

    def _resolve(self, wish: Wish) -> Resolution:
        with self.database.reading() as connection:
            lookup = Lookup.of(
                wish.computation,
                collection=functools.partial(self._digest, connection),
                output=functools.partial(_output, connection),
            )
        # Git may take minutes, for which nobody is to wait who wants to write.
        return Resolver(self.blobs, self.repositories).resolve(wish.computation, lookup)

    def _evidence(self, user: str) -> Callable[[Execution], str | None]:
        """What is wrong with the outputs of an execution for a user; each is looked at once."""
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

    def _digest(self, connection: Connection, name: str) -> str | None:
        return connection.execute(select(COLLECTION.c.digest).where(COLLECTION.c.name == name)).scalar()


def _output(connection: Connection, request_id: str) -> str | None:
    request = requests.get(connection, request_id)
    return None if request.execution is None else executions.get(connection, request.execution).output


def check_containers(wish: Wish) -> None:
    """Refuse a run in a container where none can be started."""
    if wish.computation.container_image is None:
        return
    wrong = engine_problem(find_engine(), says_cwd=wish.computation.cwd is not None)
    if wrong is not None:
        raise InvalidRequestError.of([wrong])
