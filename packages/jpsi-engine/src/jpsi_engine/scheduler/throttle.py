"""Lets submissions to a batch system in, as many at a time as there is room for."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

from jpsi.plugin import JpsiError
from jpsi.plugin.engine import Submission
from jpsi_engine.host import Entrance, GivenUpError, not_admitted
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import Tracked
from jpsi_engine.scheduler.quota import Grant, Limits, Room, wave
from jpsi_engine.scheduler.shared_poll import Sharing

#: Some jobs that are submitted at once, as parts, each with how many of it may run at a time; None is all.
Wave = Sequence[tuple[Sequence[Submission], int | None]]


def admission(
    backend: Backend, sharing: Sharing, own: Callable[[], Collection[Tracked]], now: Callable[[], float]
) -> Admission:
    """The admission that the configuration of an executor asks for.

    Args:
        backend: the batch system.
        sharing: what processes tell one another of, in a folder for nothing else.
        own: the jobs that are followed here.
        now: the clock that all processes of the machine share.
    """
    config = backend.config

    def can_limit() -> bool:
        arrays = backend.capabilities.arrays
        return arrays is not None and arrays.limits

    if config.max_queued is None and config.max_active is None:
        return Admission(Entrance(now), None, can_limit)
    limits = Limits(
        queued=math.inf if config.max_queued is None else config.max_queued,
        active=math.inf if config.max_active is None else config.max_active,
        shortest=config.shortest_interval.total_seconds(),
        longest=config.longest_interval.total_seconds(),
    )
    room = Room(
        backend.name,
        limits,
        ask=backend.everything,
        system=backend.system,
        own=own,
        sharing=sharing,
        now=now,
    )
    return Admission(Entrance(now), room, can_limit)


class Admission:
    """The entrance of one executor and the room behind it. Methods may be called from any thread.

    Args:
        entrance: where those wait that find no room.
        room: the room; None if there is no limit.
        can_limit: says whether the batch system can be told how many elements of an array run at a time.
    """

    def __init__(self, entrance: Entrance, room: Room | None, can_limit: Callable[[], bool]) -> None:
        self._entrance = entrance
        self._room = room
        self._can_limit = can_limit

    @contextlib.contextmanager
    def one(self, job_id: str) -> Iterator[None]:
        """Submit one job in the context, which is entered once there is room.

        Raises:
            SubmitException: the job was given up, or it is not known whether there is room.
        """
        room = self._room
        if room is None:
            yield
            return
        try:
            grant = self._entrance.enter([job_id], lambda: room.look(1))
        except GivenUpError as e:
            raise not_admitted(job_id) from e
        try:
            yield
        finally:
            room.release(grant)

    def waves(
        self, parts: Sequence[Sequence[Submission]], refused: Callable[[str, JpsiError], None]
    ) -> Generator[Wave]:
        """What is to be submitted now, as often as there is room; when the next is asked for, it was.

        Args:
            parts: the jobs, those together that are one submission.
            refused: told of each job that is not submitted, and why.
        """
        room, left = self._room, list(parts)
        if room is None:
            yield [(part, None) for part in left]
            return
        while left:
            grant, out = self._enter(room, [it.job_id for part in left for it in part])
            for job_id, why in out.items():
                refused(job_id, why)
            if grant is None:
                rest = ([it for it in part if it.job_id not in out] for part in left)
                left = [part for part in rest if part]
                continue
            try:
                now, left = wave(left, grant, can_limit=self._can_limit())
                yield now
            finally:
                room.release(grant)

    def _enter(self, room: Room, job_ids: Sequence[str]) -> tuple[Grant | None, Mapping[str, JpsiError]]:
        """Room for jobs, or why some of them are not to be submitted."""
        try:
            return self._entrance.enter(job_ids, lambda: room.look(len(job_ids))), {}
        except GivenUpError as e:
            return None, {job_id: not_admitted(job_id) for job_id in e.job_ids}
        except JpsiError as e:
            return None, dict.fromkeys(job_ids, e)

    def limit(self, array: str, at_a_time: int) -> None:
        """Know that no more elements of an array run at a time."""
        if self._room is not None:
            self._room.limit(array, at_a_time)

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Let jobs wait no more; see `Entrance`."""
        self._entrance.give_up(job_ids)
