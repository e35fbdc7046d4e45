"""The specification of a job: JobSpec and its parts."""

from __future__ import annotations

import enum
import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any, ClassVar, cast

import attrs

from jpsi.model.dependencies import Dependency, OtherJob
from jpsi.model.resources import HeterogeneousResources, ResourceSpec, ResourceSpecV1

_BIND = re.compile(r"([^:]+)(?::(?!r[ow]$)([^:]+))?(?::(ro|rw))?")
#: The events of which a job can send mail: its start, any end of it, and an end that is not well.
MAIL_EVENTS = ("begin", "end", "fail")
_MAIL = re.compile(r"(?:(?P<events>[a-z,]+):)?(?P<address>[A-Za-z0-9][\w.+-]*(?:@[\w.-]+)?)", re.ASCII)
_LICENSE = re.compile(r"(?P<name>[A-Za-z][\w.@-]*)(?::(?P<count>[1-9][0-9]{0,8}))?", re.ASCII)


def _path(value: str | Path | None) -> Path | None:
    # Any other value stays as it was assigned: `problems` reports it at submit.
    return Path(value) if isinstance(value, str) else value


def _name(value: str | Path | None) -> str | None:
    if isinstance(value, Path):
        # Path drops the ./ that marks a file, as opposed to a name that is looked up on the PATH
        return str(value) if value.is_absolute() or len(value.parts) > 1 else f"./{value}"
    return value


# The following two keep the identity of values that are text already.
def _arguments(values: Sequence[str | PurePath] | None) -> list[str] | None:
    has_paths = isinstance(values, list | tuple) and any(isinstance(it, PurePath) for it in values)
    texts = [str(it) if isinstance(it, PurePath) else it for it in values or ()] if has_paths else values
    return cast("list[str] | None", texts)


def _environment(values: Mapping[str, str | float | PurePath | None] | None) -> dict[str, str | None] | None:
    kinds = int | float | PurePath
    has_others = isinstance(values, Mapping) and any(isinstance(it, kinds) for it in values.values())
    pairs = (values or {}).items() if has_others else ()
    texts = {name: str(it) if isinstance(it, kinds) else it for name, it in pairs} or values
    return cast("dict[str, str | None] | None", texts)


def _location(value: str | Path | None) -> str | None:
    return str(value) if isinstance(value, Path) else value


class StagingMode(enum.Enum):
    """The way in which a file gets from its source to its target."""

    COPY = "copy"
    #: A symbolic link to the source.
    LINK = "link"
    MOVE = "move"


class StageOutFlags(enum.Flag):
    """The conditions under which a file is staged out, or a path cleaned up; combine with `|`.

    Without `ON_SUCCESS`, `ON_ERROR` and `ON_CANCEL` it is `ON_SUCCESS`.
    """

    NONE = 0
    #: A missing source is no error.
    IF_PRESENT = 1
    #: The exit code is 0.
    ON_SUCCESS = 2
    #: The exit code is not 0, or the job could not be set up.
    ON_ERROR = 4
    #: The job was cancelled.
    ON_CANCEL = 8
    ALWAYS = ON_SUCCESS | ON_ERROR | ON_CANCEL


@attrs.define(slots=True, unsafe_hash=True)
class StageIn:
    """A file or directory to stage in before the job runs."""

    #: Its origin: a path or URL on the submitting side; relative to the directory of the submitting program.
    source: str = attrs.field(converter=_location)
    #: Its destination, relative to the job's directory.
    target: Path = attrs.field(converter=_path)
    mode: StagingMode = StagingMode.COPY


@attrs.define(slots=True, unsafe_hash=True)
class StageOut:
    """A file or directory to stage out after the job ran."""

    #: Its origin, relative to the job's directory.
    source: Path = attrs.field(converter=_path)
    #: Its destination: a path or URL on the submitting side, relative as `StageIn.source`.
    target: str = attrs.field(converter=_location)
    flags: StageOutFlags = StageOutFlags.ON_SUCCESS
    mode: StagingMode = StagingMode.COPY


@attrs.define(slots=True, unsafe_hash=True)
class Bind:
    """A file or directory of the host that a container shows at a path of its own."""

    #: Its path on the host; `${NAME}` is replaced as in arguments, here and in `target`.
    source: str = attrs.field(converter=_location)
    #: Its path in the container; by default that on the host.
    target: str = attrs.field(
        default=attrs.Factory(lambda self: self.source, takes_self=True), converter=_location
    )
    read_only: bool = False


def _binds(values: Sequence[Bind | str | Mapping[str, Any]] | None) -> list[Bind] | None:
    # as texts `SOURCE[:TARGET][:ro]` and as a document has them
    return [_bind(it) for it in values] if isinstance(values, list | tuple) else cast("None", values)


def _bind(value: Bind | str | Mapping[str, Any]) -> Bind:
    if isinstance(value, str) and (match := _BIND.fullmatch(value)):
        source, target, mode = match.groups()
        return Bind(source, target or source, mode == "ro")
    return Bind(**value) if isinstance(value, Mapping) else cast("Bind", value)


@attrs.define(slots=True)
class Container:
    """A container that the processes of a job run in; each starts one.

    The job's directory is visible in it, at the same path. The program also gets the variables of
    `JobSpec.environment`, and all others of the job's environment unless `inherit_environment` is False;
    then it sees little else of the host, either.
    """

    #: The image: a path, or a name such as `docker://debian@sha256:...`, as the runtime takes it.
    image: str = attrs.field(converter=_location)
    #: The runtime: `apptainer`, `singularity`, `podman`, `charliecloud`, `docker`, or a plugin's; `auto` is
    #: the configured one, or the first of these on the PATH where the job runs.
    runtime: str = "auto"
    #: Files and directories to show in the container; a text is `SOURCE[:TARGET][:ro]`.
    binds: list[Bind] | None = attrs.field(default=None, converter=_binds)
    #: The working directory in the container; None is the job's directory.
    directory: str | None = attrs.field(default=None, converter=_location)
    #: True to make the GPUs of the host visible.
    gpu: bool = False
    #: Variables to set in the container alone, such as PATH; `${NAME}` is one of the host.
    environment: dict[str, str | None] | None = attrs.field(default=None, converter=_environment)


@attrs.define(slots=True, init=False)
class JobAttributes:
    """Properties of a job for the batch system, apart from the resources it needs."""

    #: The `queue_name` of a job for which jpsi chooses the queue.
    AUTO_QUEUE: ClassVar[str] = "auto"
    #: The walltime of the job. None means the target's default (10 minutes on batch systems, no limit on
    #: `local`); zero means no limit.
    duration: timedelta | None
    #: The queue or partition; None lets the batch system choose, and `auto` lets jpsi choose one that fits.
    queue_name: str | None
    #: The project or account that is charged; also available as `account`.
    project_name: str | None
    #: The advance reservation to run in.
    reservation_id: str | None
    #: The licenses that the job needs, as names with counts: `matlab:2,abaqus`; without a count it is one.
    licenses: str | None
    #: The quality of service; it decides on priority and limits.
    qos: str | None
    #: The kind of the GPUs, as the batch system names it, such as `a100`; a job without GPUs needs none.
    gpu_type: str | None
    #: The address to which the batch system sends mail when the job ends, `ann@example.org`; or events of
    #: `MAIL_EVENTS` and the address, `begin,end:ann@example.org`.
    mail: str | None
    #: A warning before the end: a signal, and how many seconds before the end of its walltime the job gets
    #: it, as in `("USR1", 60)`.
    warn: tuple[str, float] | None
    #: How often the job is submitted again for which reason or after which exit code, and how its requests
    #: grow, as in `{"out_of_memory": 3, "grow_memory": 2, 75: 1}`; the guide has all keys.
    retry: dict[Any, Any] | None
    #: The dependencies: jobs that must have ended before this one starts, each a `Dependency`; a Job or a
    #: native id alone must be COMPLETED. A Job must have been submitted, to the same batch system.
    after: list[Dependency | OtherJob | str] | None
    #: Options of one batch system, named `<system>.<option>`; other batch systems ignore them.
    custom_attributes: dict[str, Any] | None
    #: The `attributes.user` mapping of the job document; jpsi keeps it and never reads it.
    user: dict[str, Any] | None

    def __init__(  # noqa: PLR0913  the specification's attributes, each by its name
        self,
        *,
        duration: timedelta | None = None,
        queue_name: str | None = None,
        project_name: str | None = None,
        account: str | None = None,
        reservation_id: str | None = None,
        licenses: str | None = None,
        qos: str | None = None,
        gpu_type: str | None = None,
        mail: str | None = None,
        warn: tuple[str, float] | list[Any] | None = None,
        retry: dict[Any, Any] | None = None,
        after: list[Dependency | OtherJob | str] | None = None,
        custom_attributes: dict[str, Any] | None = None,
        user: dict[str, Any] | None = None,
    ) -> None:
        if account is not None and project_name not in (None, account):
            raise ValueError("project_name and account are one attribute and were given different values")
        self.duration = duration
        self.queue_name = queue_name
        self.project_name = account if project_name is None else project_name
        self.reservation_id = reservation_id
        self.licenses = licenses
        self.qos = qos
        self.gpu_type = gpu_type
        self.mail = mail
        # what was read from JSON, or copied, is a list
        self.warn = tuple(warn) if isinstance(warn, list) else warn
        # a document has texts for keys
        self.retry = {str(name): it for name, it in retry.items()} if isinstance(retry, dict) else retry
        self.after = after
        self.custom_attributes = custom_attributes
        self.user = user

    @classmethod
    @functools.cache
    def text_names(cls) -> Sequence[str]:
        """Return the names of the attributes that are texts; a backend expresses or refuses each."""
        return [field.name for field in attrs.fields(cls) if field.type == "str | None"]

    def license_counts(self) -> Mapping[str, int]:
        """Return how many of each license the job needs; ValueError if `licenses` has another form."""
        counts: Counter[str] = Counter()
        for item in self.licenses.split(",") if self.licenses else ():
            match = _LICENSE.fullmatch(item)
            if match is None:
                msg = f"attributes.licenses must be names with counts, such as matlab:2,abaqus, not {item!r}"
                raise ValueError(msg)
            counts[match["name"]] += int(match["count"] or 1)
        return counts

    def mail_request(self) -> tuple[Sequence[str], str | None]:
        """Return the events that send mail, and its address, if any; ValueError if `mail` has another form.

        >>> JobAttributes(mail="ann@example.org").mail_request()
        (('end',), 'ann@example.org')
        """
        if self.mail is None:
            return (), None
        match = _MAIL.fullmatch(self.mail)
        asked = set() if match is None else set((match["events"] or "end").split(","))
        if match is None or not asked <= {*MAIL_EVENTS}:
            form = f"an address, or {','.join(MAIL_EVENTS)} (or some of these), a colon and an address"
            raise ValueError(f"attributes.mail must be {form}, not {self.mail!r}")
        if "end" in asked:
            asked.discard("fail")
        return tuple(it for it in MAIL_EVENTS if it in asked), match["address"]

    @property
    def account(self) -> str | None:
        """Another name of `project_name`."""
        return self.project_name

    @account.setter
    def account(self, value: str | None) -> None:
        self.project_name = value

    def set_custom_attribute(self, name: str, value: Any) -> None:  # noqa: ANN401  any JSON value
        """Set the custom attribute `name`."""
        if self.custom_attributes is None:
            self.custom_attributes = {}
        self.custom_attributes[name] = value

    def get_custom_attribute(self, name: str) -> Any:  # noqa: ANN401  any JSON value
        """Return the custom attribute `name`, or None if it was never set."""
        return (self.custom_attributes or {}).get(name)


def _attributes(value: JobAttributes | None) -> JobAttributes:
    # any other value stays as it was assigned: `problems` reports it at submit
    return JobAttributes() if value is None else value


@attrs.define(slots=True)
class JobSpec:
    """A job's program, and everything about its execution.

    Fields may be assigned one by one. An unknown name raises AttributeError; `submit` reports all wrong
    values together. Lists and maps are kept by identity until `submit` copies them.

    On the machine where the job runs, `${NAME}` in `arguments` and in the values of `environment` is replaced
    by that environment variable; `$${NAME}` is the literal text `${NAME}`; nothing else is expanded.
    """

    #: The program: without a slash found on the job's PATH, else a path relative to the job's directory.
    executable: str | None = attrs.field(default=None, converter=_name)
    #: The arguments of the program: argv[1], argv[2], ...; a path becomes text.
    arguments: list[str] | None = attrs.field(default=None, converter=_arguments)
    #: A name for users and for the batch system's listings; it has no other effect.
    name: str | None = attrs.field(default=None, kw_only=True)
    #: The working directory: absolute, or starting with `~/` for the home directory of the machine
    #: where the job runs. None leaves the choice to the executor.
    directory: Path | None = attrs.field(default=None, kw_only=True, converter=_path)
    #: True to make the directory if it does not exist.
    create_directory: bool = attrs.field(default=False, kw_only=True)
    #: True if the job sees the environment of the machine where it runs, besides `environment`.
    inherit_environment: bool = attrs.field(default=True, kw_only=True)
    #: Variables to set; None as a value unsets the variable, and a number or a path becomes text.
    environment: dict[str, str | None] | None = attrs.field(
        default=None, kw_only=True, converter=_environment
    )
    #: The file to read standard input from; None is /dev/null.
    stdin_path: Path | None = attrs.field(default=None, kw_only=True, converter=_path)
    #: The file to write standard output to; None is a file in jpsi's own folder of the job.
    stdout_path: Path | None = attrs.field(default=None, kw_only=True, converter=_path)
    #: The file to write standard error to; None is a file in jpsi's own folder of the job.
    stderr_path: Path | None = attrs.field(default=None, kw_only=True, converter=_path)
    #: The parts of the job's environment, which are set up in this order before pre_launch: `module:gcc/12`,
    #: `conda:NAME`, `venv:DIRECTORY`, `spack:SPEC`, and `source:FILE`, a POSIX shell script.
    environment_setup: list[str] | None = attrs.field(default=None, kw_only=True)
    #: A POSIX shell script that is sourced once, before anything is launched.
    pre_launch: Path | None = attrs.field(default=None, kw_only=True, converter=_path)
    #: A POSIX shell script that is sourced once, after every process has ended.
    post_launch: Path | None = attrs.field(default=None, kw_only=True, converter=_path)
    #: The container to run in; None runs the program on the host. Launchers and scripts run outside of it.
    container: Container | None = attrs.field(default=None, kw_only=True)
    #: The launcher's name; None lets the executor choose.
    launcher: str | None = attrs.field(default=None, kw_only=True)
    resources: ResourceSpec | None = attrs.field(default=None, kw_only=True)
    #: The attributes; never None, so that `spec.attributes.queue_name = "debug"` works.
    attributes: JobAttributes = attrs.field(default=None, kw_only=True, converter=_attributes)
    stage_in: list[StageIn] | None = attrs.field(default=None, kw_only=True)
    stage_out: list[StageOut] | None = attrs.field(default=None, kw_only=True)
    #: Paths below the job's directory that are removed after stage out.
    cleanup: list[Path] | None = attrs.field(default=None, kw_only=True)
    #: The conditions for `cleanup`.
    cleanup_flags: StageOutFlags = attrs.field(default=StageOutFlags.ALWAYS, kw_only=True)


# The classes of a spec and of its parts.
_PARTS = (
    *(JobSpec, JobAttributes, Container, Bind, StageIn, StageOut),
    *(ResourceSpecV1, HeterogeneousResources),
)


def copy_spec(spec: JobSpec) -> JobSpec:
    """Return a copy of a valid spec that shares no mutable value with it."""
    return cast("JobSpec", _copy(spec))


def _copy(value: Any) -> Any:  # noqa: ANN401  a spec, or whatever is in one
    if value is None or isinstance(value, str):
        return value
    kind: type = type(value)
    names = _field_names(kind)
    if names is not None:
        # the constructor of resources refuses counts that were assigned
        construct = kind.uneven if issubclass(kind, ResourceSpecV1) else kind
        return construct(**{name: _copy(getattr(value, name)) for name in names})
    if isinstance(value, list | tuple):
        return [_copy(it) for it in value]
    return {key: _copy(it) for key, it in value.items()} if isinstance(value, Mapping) else value


@functools.cache
def _field_names(kind: type) -> Sequence[str] | None:
    return [field.name for field in attrs.fields(kind)] if issubclass(kind, _PARTS) else None
