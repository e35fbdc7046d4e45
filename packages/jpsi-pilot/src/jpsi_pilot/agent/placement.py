"""Which waiting job runs where: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ..protocol import Need, pilot_of

#: Jobs that start: their kind, the names of the places that each of them takes, and how many there are.
Start = tuple["Kind", tuple[str, ...], int]


@attrs.frozen(slots=True, kw_only=True)
class Room:
    """What is free on a node of a pilot."""

    #: The name of the place.
    name: str
    cores: int
    gpus: int = 0
    #: In bytes; None if memory is not counted.
    memory: int | None = None
    #: How long a job that starts now may run there.
    seconds: float
    #: The settings of its pilot.
    settings: str = ""
    #: The client that the pilot takes jobs of; None if those of anybody.
    client: str | None = None

    def times(self, need: Need) -> int:
        """How many jobs of this kind can be there beside each other, if they get their other nodes.

        >>> Room(name="a", cores=4, seconds=60).times(Need(cores=2, seconds=60))
        2
        >>> Room(name="a", cores=4, seconds=60).times(Need(seconds=61))
        0
        """
        if need.seconds > self.seconds:
            return 0
        counts = [self.cores // need.cores] if need.cores else []
        if need.gpus:
            counts.append(self.gpus // need.gpus)
        if need.memory and self.memory is not None:
            counts.append(self.memory // need.memory)
        return max(0, min(counts, default=0))

    def without(self, need: Need, times: int = 1) -> Room:
        """What is left beside such jobs."""
        return attrs.evolve(
            self,
            cores=self.cores - times * need.cores,
            gpus=self.gpus - times * need.gpus,
            memory=None if self.memory is None else self.memory - times * need.memory,
        )


@attrs.frozen(slots=True, kw_only=True)
class Kind:
    """What jobs have in common between which placing sees no difference."""

    need: Need
    settings: str = ""
    #: Whose they are; None if the process that submitted them is gone, or shares pilots.
    client: str | None = None
    #: The array whose elements they are, where that allows only some to run at a time.
    array: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class Waiting:
    """How many jobs of a kind wait, and how many more of them may run now."""

    kind: Kind
    count: int


def takes(room: Room, kind: Kind) -> bool:
    """Whether a pilot is there for such jobs, however much of it is free."""
    return room.settings == kind.settings and room.client in {None, kind.client}


def placed(waiting: Iterable[Waiting], rooms: Sequence[Room]) -> list[Start]:
    """How many jobs of which kind start at which places.

    Those that have waited for longest come first. A job that fits nowhere now keeps no other from starting.

    Args:
        waiting: the kinds, in the order in which they are served.
        rooms: what is free; the pilot that ends first is filled first, so that others can become idle.
    """
    free = {room.name: room for room in sorted(rooms, key=lambda room: (room.seconds, room.name))}
    found: list[Start] = []
    for it in waiting:
        left, need = it.count, it.kind.need
        for group in _groups(it.kind, free.values()):
            while left and (fit := _fitting(need, [free[name] for name in group])):
                names, most = fit
                times = min(left, most)
                found.append((it.kind, names, times))
                left -= times
                for name in names:
                    free[name] = free[name].without(need, times)
    return found


def _groups(kind: Kind, rooms: Iterable[Room]) -> Iterable[Sequence[str]]:
    """The rooms among which one job finds its places: one by one, or all of a pilot if it needs several."""
    names = [room.name for room in rooms if takes(room, kind)]
    if kind.need.nodes == 1:
        return [(name,) for name in names]
    pilots: dict[str, list[str]] = {}
    for name in names:
        pilots.setdefault(pilot_of(name), []).append(name)
    return pilots.values()


def _fitting(need: Need, rooms: Sequence[Room]) -> tuple[tuple[str, ...], int] | None:
    """The places that a job gets, and how many such jobs fit there; None if it does not.

    It gets those with the most room, so that as many as possible go there at once.
    """
    roomy = sorted(rooms, key=lambda room: -room.times(need))[: need.nodes]
    if len(roomy) < need.nodes:
        return None
    times = roomy[-1].times(need)
    return (tuple(room.name for room in roomy), times) if times else None
