"""A plugin that is installed, not yet imported."""

from __future__ import annotations

import attrs

EXECUTORS = "jpsi.executors"
LAUNCHERS = "jpsi.launchers"
OBSERVERS = "jpsi.observers"
OVERRIDES = "jpsi.overrides"
TRANSPORTS = "jpsi.transports"
FAKES = "jpsi.fakes"
ENGINES = "jpsi.engines"
BARS = "jpsi.bars"
GROUPS = (EXECUTORS, LAUNCHERS, TRANSPORTS, OVERRIDES, OBSERVERS, FAKES, ENGINES)


def kind(group: str) -> str:
    """What a plugin of a group is called.

    >>> kind("jpsi.executors")
    'executor'
    """
    return group.rpartition(".")[2].removesuffix("s")


@attrs.frozen(slots=True, kw_only=True)
class Candidate:
    """A plugin that is installed, not yet imported."""

    #: The entry-point group that it was found in.
    group: str
    #: The name it is asked for by.
    name: str
    #: Every name that the same distribution gives the same plugin, this one included.
    aliases: tuple[str, ...] = ()
    #: The distribution that offers it.
    distribution: str
    #: The version of that distribution.
    version: str
    #: What is to be loaded: `module` or `module:attribute`.
    value: str
    #: The directory of the plugin path that it lies in; None in the environment.
    origin: str | None = None
    #: The metadata folder of the distribution.
    folder: str = ""
    #: What that distribution requires.
    requires: tuple[str, ...] = ()
    #: How far down in the order of places it lies; the environment is 0.
    place: int = 0
    #: Why it cannot be taken, whatever is asked for.
    refusal: str | None = None

    def is_called(self, name: str) -> bool:
        """Whether this is its name, case ignored."""
        return self.name.lower() == name.lower()

    @property
    def canonical(self) -> str:
        """The one name that stands for it and its aliases: the one that its module ends with, if one does."""
        names = sorted(self.aliases or (self.name,))
        module = self.value.partition(":")[0].lower()
        return next((name for name in names if module.endswith(name.lower())), names[0])

    @property
    def where(self) -> str:
        """Where it lies, as the end of a sentence; empty for the environment."""
        return "" if self.origin is None else f" in {self.origin}"

    @property
    def label(self) -> str:
        """What messages call it: `the executor 'pbs' of jpsi-pbs 0.2 in /opt/plugins`."""
        return f"the {kind(self.group)} {self.name!r} of {self.distribution} {self.version}{self.where}"
