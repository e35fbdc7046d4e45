"""A plugin that is installed but not imported: a value by which the registry chooses among versions."""

from __future__ import annotations

import attrs

CONTAINERS = "jpsi.containers"
EXECUTORS = "jpsi.executors"
LAUNCHERS = "jpsi.launchers"
OBSERVERS = "jpsi.observers"
OVERRIDES = "jpsi.overrides"
TRANSPORTS = "jpsi.transports"
FAKES = "jpsi.fakes"
ENGINES = "jpsi.engines"
BARS = "jpsi.bars"
GROUPS = (EXECUTORS, LAUNCHERS, CONTAINERS, TRANSPORTS, OVERRIDES, OBSERVERS, FAKES, ENGINES)


def kind(group: str) -> str:
    """Return the word for a plugin of a group.

    >>> kind("jpsi.executors")
    'executor'
    """
    return group.rpartition(".")[2].removesuffix("s")


@attrs.frozen(slots=True, kw_only=True)
class Candidate:
    """A plugin that is installed, but not yet imported."""

    #: Its entry-point group.
    group: str
    #: The name by which callers request it.
    name: str
    #: All names under which the same distribution registers this plugin, including `name`.
    aliases: tuple[str, ...] = ()
    #: The distribution that provides it.
    distribution: str
    #: The version of that distribution.
    version: str
    #: The object to load: `module` or `module:attribute`.
    value: str
    #: The directory of the plugin path that contains it; None for the environment.
    origin: str | None = None
    #: The metadata directory of the distribution.
    folder: str = ""
    #: The requirements of that distribution.
    requires: tuple[str, ...] = ()
    #: The position of its directory in the search order; the environment is 0.
    place: int = 0
    #: Why it must not be loaded under any request; None if it may be.
    refusal: str | None = None

    def is_called(self, name: str) -> bool:
        """Return True if this is its name, case ignored."""
        return self.name.lower() == name.lower()

    @property
    def canonical(self) -> str:
        """The one name for it and its aliases: the one that its module's name ends with, if there is one."""
        names = sorted(self.aliases or (self.name,))
        module = self.value.partition(":")[0].lower()
        return next((name for name in names if module.endswith(name.lower())), names[0])

    @property
    def where(self) -> str:
        """Its directory, as the end of a sentence; empty for the environment."""
        return "" if self.origin is None else f" in {self.origin}"

    @property
    def label(self) -> str:
        """Its name in messages: `the executor 'pbs' of jpsi-pbs 0.2 in /opt/plugins`."""
        return f"the {kind(self.group)} {self.name!r} of {self.distribution} {self.version}{self.where}"
