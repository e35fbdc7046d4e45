"""Writes jobs as scripts of a batch system, and reads foreign scripts as jobs: both by one table of options.

Each backend has a `ScriptForm` in its module `directives`. An `Option` of its table says what jpsi writes,
and how it is read back from a script that was not written by jpsi.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from jpsi.contract import (
    SOME_TAG,
    CustomOptions,
    Directive,
    ForeignScript,
    Options,
    Script,
    Setting,
    Site,
    SubmitContext,
    set_options,
)
from jpsi.contract import resources as resources_of
from jpsi.model import JobAttributes, JobSpec, ResourceSpecV1, escape
from jpsi.plugin.kit.script_words import ParsedOption, directive_words, suggest_option

_UNKNOWN = "jpsi knows no such option, and leaves it to the batch system as it is"
_NO_OPTION = "jpsi knows no option of the batch system for it; a custom attribute may set one"
# A variable as a shell, Perl or Python reads it.
_VARIABLE = re.compile(r"""(?:\$\{?|(?:getenv|environ(?:\.get)?|ENV)[\[({]\s*["']?)(\w+)""")
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_COMMAND = re.compile(r"[ \t]*[^#\s]")


@attrs.frozen(slots=True)
class JobRequest:
    """A job to write as a script."""

    spec: JobSpec
    context: SubmitContext

    @functools.cached_property
    def resources(self) -> ResourceSpecV1:
        """The resources of a spec with slots of one kind."""
        return resources_of(self.spec)

    @property
    def config(self) -> Any:  # noqa: ANN401  an instance of the class that `config_class` returned
        """The executor's configuration."""
        return self.context.site.config

    @property
    def indices(self) -> str | None:
        """The indices of an array, as in `1-9%2`, with the limit of running elements; None for one job."""
        limit = "" if self.context.at_a_time is None else f"%{self.context.at_a_time}"
        return None if self.context.elements is None else f"1-{self.context.elements}{limit}"


#: Returns the setting of an option for a job; ValueError says what the option cannot express.
Writer: TypeAlias = Callable[[JobRequest], Setting]
#: Reads an option's value into a draft; ValueError says why no field can express it. For an option without a
#: value the text is empty.
Reader: TypeAlias = Callable[["Draft", str], None]
#: Returns name and value of an option as scripts spell them, from those in `Options`.
Spelled: TypeAlias = Callable[[str, str | None], tuple[str, str | None]]


@attrs.frozen(slots=True)
class Option:
    """An option of a submit command, in both directions."""

    #: The setting that jpsi writes for every job, or the function that returns it; None if it is only read.
    write: Setting | Writer = None
    #: The reader of its value; without one, the option becomes a custom attribute.
    read: Reader | None = None
    #: The names of the attributes that are texts which the value expresses.
    expresses: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    #: True if the reader relies on the results of the readers of all other options.
    is_read_last: bool = attrs.field(default=False, kw_only=True)


@attrs.frozen(slots=True, kw_only=True)
class ScriptForm:
    """The form of one batch system's scripts: for `check_spec`, `render_script` and `read_script`."""

    #: The beginning of each directive; a blank follows.
    mark: str
    #: The pattern of that beginning in scripts that were not written by jpsi. Plain comments may match it: if
    #: no directive stands before the first command, none is said to come too late.
    foreign_mark: str | None = None
    #: True if directives after the first command count too.
    is_read_whole: bool = False
    #: The prefix of an option's name.
    dashes: str = "--"
    #: The separator between name and value.
    joint: str = "="
    #: The largest number of bytes of a value; None is no limit.
    longest: int | None = None
    #: The options that jpsi knows, in the order in which it writes and reads them.
    options: Mapping[str, Option]
    #: The options that users may set past jpsi.
    custom: CustomOptions
    #: The names of all options of the command, of which the reader tells misspelt ones; empty if sites and
    #: versions have others.
    known: Collection[str] = ()
    #: Returns name and value as the system reads them, from those in `Options`; ValueError for values that it
    #: would misread.
    spelled: Spelled = lambda name, value: (name, value)
    #: Yields the options in the words of a directive; ValueError for a word that is no option.
    parse: Callable[[Sequence[str]], Iterator[ParsedOption]]
    #: For attributes that are texts, and that no option expresses: why.
    missing: Mapping[str, str] = attrs.field(factory=dict)
    #: For options whose values add up, the separator between them.
    joints: Mapping[str, str] = attrs.field(factory=dict)
    #: The variables in which the batch system passes the directory of the submission to a job.
    directory_variables: tuple[str, ...] = ()
    #: The pattern of the names of variables that the batch system sets in jobs.
    variables: str = ""

    @functools.cached_property
    def _constants(self) -> Options:
        return {name: None if callable(it.write) else it.write for name, it in self.options.items()}

    @functools.cached_property
    def _writers(self) -> Mapping[str, Writer]:
        return {name: it.write for name, it in self.options.items() if callable(it.write)}

    def render(self, spec: JobSpec, context: SubmitContext) -> Script:
        """Return the directives for a spec.

        Raises:
            ValueError: a directive cannot express a value; `problems` reports this earlier.
        """
        request = JobRequest(spec, context)
        settings = {**self._constants, **{name: write(request) for name, write in self._writers.items()}}
        merged = self.custom.merged(settings, spec)
        return Script([self._directive(name, value) for name, value in set_options(merged)])

    def problems(self, spec: JobSpec, site: Site) -> Iterator[str]:
        """Yield why a valid spec can never be written as a script, one sentence each."""
        for name in JobAttributes.text_names():
            value = getattr(spec.attributes, name)
            if value == "":  # no batch system has a queue without a name
                yield f"attributes.{name} is empty; None leaves the choice to the batch system"
            elif value is not None and not any(name in it.expresses for it in self.options.values()):
                yield f"attributes.{name}: {self.missing.get(name, _NO_OPTION)}"
        wrong = list(self.custom.problems(spec))
        yield from wrong
        if wrong:
            spec = attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, custom_attributes=None))
        request = JobRequest(spec, SubmitContext(site=site, job_id="", tag=SOME_TAG))
        settings, unwritten = dict(self._constants), {}
        for name, write in self._writers.items():
            try:
                settings[name] = write(request)
            except ValueError as e:
                unwritten[str(e)] = name
        yield from unwritten
        for name, value in set_options(self.custom.merged(settings, spec)):
            try:
                self._directive(name, value)
            except ValueError as e:
                yield str(e)

    def read(self, text: str, site: Site | None = None) -> ForeignScript:
        """Return the job that a script asks for."""
        directives, late = self._directives(text)
        options, unread = self._options(directives)
        draft = Draft(form=self, config=None if site is None else site.config, options=options, lost=unread)
        self._fill_in(draft)
        read = set(_VARIABLE.findall(_COMMENT.sub("", text)))
        draft.lost += self._lost_variables(read - set(draft.spec.environment or ()))
        return ForeignScript(
            spec=draft.spec,
            directives=len(directives),
            late_directives=tuple(late),
            lost=tuple(draft.lost),
            unread_limit=draft.unread_limit,
            directory_variables=tuple(it for it in self.directory_variables if it in read),
        )

    def _options(self, directives: Iterable[str]) -> tuple[dict[str, str | None], list[str]]:
        """Return the options of directives, and a sentence for each directive that cannot be read."""
        options: dict[str, str | None] = {}
        unread = []
        for directive in directives:
            try:
                # options before the mistake are kept
                for name, value in self.parse(directive_words(directive)):
                    earlier = options.pop(name, None)
                    adds_up = earlier is not None and value is not None and name in self.joints
                    options[name] = f"{earlier}{self.joints[name]}{value}" if adds_up else value
            except ValueError as e:
                unread.append(f"the directive {directive!r} was read only in part: {e}")
        return options, unread

    def _fill_in(self, draft: Draft) -> None:
        """Fill in a draft by the readers of its options; the other options become custom attributes."""
        in_order = sorted(self.options.items(), key=lambda item: item[1].is_read_last)
        readers = {name: option.read for name, option in in_order if option.read is not None}
        for name in filter(draft.options.__contains__, readers):
            try:
                readers[name](draft, draft.options[name] or "")
            except ValueError as e:
                draft.keep(name, draft.options[name], str(e))
        for name, value in draft.options.items():
            if name not in readers:
                draft.keep(name, value)
            if self.known and name not in self.known and self.custom.name.fullmatch(name):
                draft.lose(name, value, f"{_UNKNOWN}{suggest_option(name, self.known, self.dashes)}")

    def _lost_variables(self, read: Collection[str]) -> Iterator[str]:
        """Yield a sentence if a script reads variables that the batch system sets, and jpsi does not."""
        others = (name for name in read if self.variables and name not in self.directory_variables)
        if names := sorted(name for name in others if re.fullmatch(self.variables, name)):
            yield f"the script reads variables that no other batch system sets: {', '.join(names)}"

    def _directive(self, name: str, value: str | None) -> Directive:
        option, text = self.spelled(name, value)
        directive = Directive.of(self.mark, f"{self.dashes}{option}", text, joint=self.joint)
        try:
            length = len((text or "").encode())
        except UnicodeEncodeError as e:
            msg = f"{self.dashes}{option} cannot be {text!r}: it cannot be encoded in UTF-8"
            raise ValueError(msg) from e
        if self.longest is not None and length > self.longest:
            msg = f"{self.dashes}{option} has {length} bytes, more than the {self.longest} that are possible"
            raise ValueError(msg)
        return directive

    def _directives(self, text: str) -> tuple[list[str], list[str]]:
        """Return the directives of a script, without their marks, and the lines that come too late."""
        mark = re.compile(self.foreign_mark or rf"{re.escape(self.mark)}(?=\s|\Z)")
        directives: list[str] = []
        late: list[str] = []
        is_late = False
        for line in text.splitlines():
            found = mark.match(line)
            if found is None:
                is_late = is_late or (not self.is_read_whole and _COMMAND.match(line) is not None)
            elif is_late:
                late.append(line)
            else:
                directives.append(line[found.end() :].strip())
        may_be_comments = self.foreign_mark is not None and not directives
        return directives, [] if may_be_comments else late


@attrs.define(slots=True, kw_only=True)
class Draft:
    """A spec that the readers fill in, option by option."""

    form: ScriptForm
    #: The executor's configuration.
    config: Any
    #: Every option of the script; if one was given several times, its last value.
    options: Mapping[str, str | None]
    spec: JobSpec = attrs.field(
        factory=lambda: JobSpec(resources=ResourceSpecV1(), attributes=JobAttributes())
    )
    lost: list[str] = attrs.field(factory=list)
    #: Why the time limit is no duration.
    unread_limit: str = ""

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
        custom = self.form.custom
        refusal = custom.refused.get(option)
        if refusal is None and custom.name.fullmatch(option):
            name = f"{custom.systems[0]}.{option}"
            self.attributes.set_custom_attribute(name, True if value is None else value)
            return
        self.lose(option, value, why_not or refusal or "jpsi does not know the option")

    def lose(self, option: str, value: str | None, why: str) -> None:
        """Record that an option is not converted, or why that is doubtful."""
        try:
            name, text = self.form.spelled(option, value)
        except ValueError:  # jpsi would refuse to write it
            name, text = option, value
        shown_value = "" if text is None else f" {text}"
        self.lost.append(f"{self.form.dashes}{name}{shown_value}: {why}")
