"""What a submit script asks for that was written for a batch system and not for jpsi."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from jpsi.contract.options import CustomOptions
from jpsi.model import JobAttributes, JobSpec, ResourceSpecV1, escape

#: Name and value of an option as a script has them, from those of `Options`.
Spelled: TypeAlias = Callable[[str, str | None], tuple[str, str | None]]


@attrs.frozen(slots=True, kw_only=True)
class ForeignScript:
    """What the directives of a script ask for."""

    #: The job without arguments. Its executable is the shell that they name, and its directory the one where
    #: the job runs, relative to where the script is submitted; None if they say nothing of it.
    spec: JobSpec
    #: How many directives there are; a script that has none was not written for this batch system.
    directives: int
    #: What the spec does not say, or says otherwise, one sentence each.
    lost: tuple[str, ...] = ()
    #: Whether relative paths of streams are relative to where the script is submitted, wherever it runs.
    is_output_here: bool = False


@attrs.define(slots=True, kw_only=True)
class Draft:
    """A spec that is filled in, option by option."""

    #: Every option of the script; of one that was given several times, what was given last.
    options: Mapping[str, str | None]
    #: What options are called in messages, such as `--`.
    dashes: str
    #: The options that a user may set past jpsi.
    custom: CustomOptions
    #: Name and value as a script has them, from those of options.
    spelled: Spelled
    spec: JobSpec = attrs.field(
        factory=lambda: JobSpec(resources=ResourceSpecV1(), attributes=JobAttributes())
    )
    lost: list[str] = attrs.field(factory=list)

    @property
    def resources(self) -> ResourceSpecV1:
        """The resources of the spec."""
        assert isinstance(self.spec.resources, ResourceSpecV1)  # noqa: S101  as it was made
        return self.spec.resources

    @property
    def attributes(self) -> JobAttributes:
        """The attributes of the spec."""
        assert self.spec.attributes is not None  # noqa: S101  as it was made
        return self.spec.attributes

    def set_variable(self, name: str, value: str) -> None:
        """Give the job an environment variable with just this value."""
        self.spec.environment = {**(self.spec.environment or {}), name: escape(value)}

    def keep(self, option: str, value: str | None, why_not: str | None = None) -> None:
        """Carry an option over as it is, as a custom attribute, or say that it is lost.

        Args:
            option: its name.
            value: its value, if it has one.
            why_not: why it is nothing that a spec has a field for.
        """
        refusal = self.custom.refused.get(option)
        if refusal is None and self.custom.name.fullmatch(option):
            name = f"{self.custom.systems[0]}.{option}"
            self.attributes.set_custom_attribute(name, True if value is None else value)
            return
        self.lose(option, value, why_not or refusal or "jpsi does not know the option")

    def lose(self, option: str, value: str | None, why: str) -> None:
        """Say that an option is not carried over."""
        name, text = self.spelled(option, value)
        said = "" if text is None else f" {text}"
        self.lost.append(f"{self.dashes}{name}{said}: {why}")


#: Takes an option's value into a draft; ValueError says why that has no field for it. A value of an option
#: that has none is empty.
Reader: TypeAlias = Callable[[Draft, str], None]
