"""The requests in a submit script that was written for a batch system and not for jpsi."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from jpsi.contract.options import CustomOptions
from jpsi.model import JobAttributes, JobSpec, ResourceSpecV1, escape

#: Returns the name and value of an option as scripts spell them, from those in `Options`.
Spelled: TypeAlias = Callable[[str, str | None], tuple[str, str | None]]


@attrs.frozen(slots=True, kw_only=True)
class ForeignScript:
    """The job that the directives of a script ask for."""

    #: The job without arguments. Its executable is the shell that the directives name, and its directory the
    #: one where the job runs, relative to the directory of the submission; None if they do not name one.
    spec: JobSpec
    #: The number of directives; a script without any was not written for this batch system.
    directives: int
    #: The requests that the spec does not express, or expresses differently, one sentence each.
    lost: tuple[str, ...] = ()
    #: True if relative paths of streams are relative to the directory of the submission, wherever the job
    #: runs.
    is_output_here: bool = False


@attrs.define(slots=True, kw_only=True)
class Draft:
    """A spec that the readers fill in, option by option."""

    #: Every option of the script; if one was given several times, its last value.
    options: Mapping[str, str | None]
    #: The prefix of options in messages, such as `--`.
    dashes: str
    #: The options that a user may set past jpsi.
    custom: CustomOptions
    #: Returns name and value as scripts spell them, from those of an option.
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
        return self.spec.attributes

    def set_variable(self, name: str, value: str) -> None:
        """Set an environment variable of the job to exactly this value."""
        self.spec.environment = {**(self.spec.environment or {}), name: escape(value)}

    def keep(self, option: str, value: str | None, why_not: str | None = None) -> None:
        """Keep an option unchanged as a custom attribute, or record that it is lost.

        `why_not` is why no field of a spec can express it.
        """
        refusal = self.custom.refused.get(option)
        if refusal is None and self.custom.name.fullmatch(option):
            name = f"{self.custom.systems[0]}.{option}"
            self.attributes.set_custom_attribute(name, True if value is None else value)
            return
        self.lose(option, value, why_not or refusal or "jpsi does not know the option")

    def lose(self, option: str, value: str | None, why: str) -> None:
        """Record that an option is not converted."""
        name, text = self.spelled(option, value)
        said = "" if text is None else f" {text}"
        self.lost.append(f"{self.dashes}{name}{said}: {why}")


#: Reads an option's value into a draft; ValueError says why no field can express it. For an option without a
#: value the text is empty.
Reader: TypeAlias = Callable[[Draft, str], None]
