"""Writes a job's script for a batch system: directives, each an option of its submit command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs

from jpsi.contract import (
    SOME_TAG,
    CustomOptions,
    Directive,
    Options,
    Script,
    Site,
    Spelled,
    SubmitContext,
    attributes,
    set_options,
)
from jpsi.model import JobSpec

#: Returns the options that a backend sets for a job; ValueError says what the options cannot express.
OptionsOf: TypeAlias = Callable[[JobSpec, SubmitContext], Options]


def unchanged(name: str, value: str | None) -> tuple[str, str | None]:
    """Return name and value of an option that scripts spell as `Options` do."""
    return name, value


@attrs.frozen(slots=True, kw_only=True)
class ScriptForm:
    """The form of one batch system's scripts: for the hooks `check_spec` and `render_script`."""

    #: The beginning of each directive; a blank follows.
    mark: str
    #: The prefix of an option's name.
    dashes: str = "--"
    #: The separator between name and value.
    joint: str = "="
    #: The largest number of bytes of a value; None is no limit.
    longest: int | None = None
    #: The options that users may set past jpsi.
    custom: CustomOptions
    #: Returns name and value as the system reads them, from those in `Options`; ValueError for values that it
    #: would misread.
    spelled: Spelled = unchanged

    def render(self, spec: JobSpec, context: SubmitContext, options: OptionsOf) -> Script:
        """Return the directives for a spec.

        Raises:
            ValueError: a directive cannot express a value; `problems` reports this earlier.
        """
        merged = self.custom.merged(options(spec, context), spec)
        return Script([self._directive(name, value) for name, value in set_options(merged)])

    def problems(self, spec: JobSpec, site: Site, options: OptionsOf) -> Iterator[str]:
        """Yield why a valid spec can never be written as a script, one sentence each."""
        yield from _empty_names(spec)
        wrong = list(self.custom.problems(spec))
        yield from wrong
        if wrong:
            spec = attrs.evolve(spec, attributes=attrs.evolve(attributes(spec), custom_attributes=None))
        try:
            own = options(spec, SubmitContext(site=site, job_id="", tag=SOME_TAG))
        except ValueError as e:
            yield str(e)
            return
        for name, value in set_options(self.custom.merged(own, spec)):
            try:
                self._directive(name, value)
            except ValueError as e:
                yield str(e)

    def _directive(self, name: str, value: str | None) -> Directive:
        option, text = self.spelled(name, value)
        directive = Directive.of(self.mark, f"{self.dashes}{option}", text, joint=self.joint)
        try:
            length = len((text or "").encode())
        except UnicodeEncodeError as e:
            msg = f"{self.dashes}{option} cannot be {text!r}: it is no text that UTF-8 can express"
            raise ValueError(msg) from e
        if self.longest is not None and length > self.longest:
            msg = f"{self.dashes}{option} has {length} bytes, more than the {self.longest} that are possible"
            raise ValueError(msg)
        return directive


def _empty_names(spec: JobSpec) -> Iterator[str]:
    """Yield a problem for each name that is given and empty; no batch system has a queue without a name."""
    for name in ("queue_name", "project_name", "reservation_id"):
        if getattr(attributes(spec), name) == "":
            yield f"attributes.{name} is empty; None leaves the choice to the batch system"
