"""Renders a job spec into `#PBS` lines, and reads those of scripts that were written for qsub.

`hooks` renders the script of each job by it, and converts scripts of users into jobs of jpsi. The directives
for resources are in `chunks` (PBS) and `nodes` (Torque).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from jpsi.plugin import CustomOptions, kit, parse_duration

from .job_names import legal_name, tag_variables
from .native_ids import is_element

_YES_OR_NO = {None: None, True: "y", False: "n"}
#: Options without a value; only Torque has `n`.
FLAGS = frozenset("IVXfhnz")
# Options whose value may set several resources or attributes: `-l nodes=1,walltime=60`
_REPEATED = frozenset("lW")
_NEXT = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_.]*=)")
# The characters that PBS replaces in paths
_PATTERN = re.compile(r"[$^]|\A-")
# The prefix of a path that names another host
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")


def script_form(
    custom: CustomOptions,
    resources: Mapping[str, kit.Option],
    others: Mapping[str, kit.Option],
    missing: Mapping[str, str] | None = None,
) -> kit.ScriptForm:
    """Return the form of the scripts of one batch system, with its own options."""
    return kit.ScriptForm(
        mark="#PBS",
        # qsub(1B): environment variables
        directory_variables=("PBS_O_WORKDIR",),
        variables=r"PBS_\w+",
        dashes="-",
        joint=" ",
        options={**_OPTIONS, **resources, **others, "W.depend": _DEPENDENCIES},
        custom=custom,
        spelled=split_option,
        parse=parse_options,
        missing=missing or {},
    )


def split_option(option: str, value: str | None) -> tuple[str, str | None]:
    """Return an option in qsub's notation: `l.walltime` with value 60 is `l` with value `walltime=60`."""
    letter, _, name = option.partition(".")
    return letter, f"{name}={value or ''}" if name else value


def parse_options(words: Sequence[str]) -> Iterator[kit.ParsedOption]:
    """Yield options in the form of custom attributes: `-l walltime=60` is `l.walltime` with the value 60."""
    for name, value in kit.gnu_options(words, {}, FLAGS):
        if name in _REPEATED and value:
            for part in _NEXT.split(value):
                resource, _, text = part.strip().partition("=")
                yield f"{name}.{resource}", text
        else:
            yield name, value


def _path(value: str) -> Path:
    if value.endswith("/"):
        raise ValueError("a path of jpsi is that of a file")
    return kit.read_path(_HOST.sub("", value), _PATTERN)


def _is_joined(draft: kit.Draft) -> bool:
    return set("oe") <= set(draft.options.get("j") or "")


def _read_error(draft: kit.Draft, value: str) -> None:
    if not _is_joined(draft):
        draft.spec.stderr_path = _path(value)


def _read_shell(draft: kit.Draft, value: str) -> None:
    draft.spec.executable = str(kit.read_path(value.partition("@")[0], _PATTERN))


def _write_dependencies(request: kit.JobRequest) -> str | None:
    """Return the value of `depend`; all dependencies must be satisfied.

    Raises:
        ValueError: a dependency is on an array element.
    """
    dependencies: dict[str, list[str]] = {}
    for dependency in request.context.after:
        if is_element(dependency.native_id or ""):
            raise ValueError(
                f"attributes.after: {dependency.native_id} is an element of an array, and jobs wait for jobs "
                "or whole arrays alone; submit it by itself, or with `array_size` 1 in the configuration"
            )
        dependencies.setdefault(f"after{dependency.kind.value}", []).append(dependency.native_id or "")
    # each kind appears once, as a second list of one kind replaces the first
    return ",".join(":".join([word, *native_ids]) for word, native_ids in dependencies.items()) or None


# qsub(1B), OPTIONS, in the order in which they are written; all others become custom attributes.
_OPTIONS = {
    "N": kit.Option(lambda it: legal_name(it.spec.name), kit.read_name),
    "v": kit.Option(
        lambda it: tag_variables(it.context.tag, it.spec.name),
        kit.variables_reader(r"(?<!\\),"),
    ),
    # -v does not preserve all values with commas, quotes or backslashes.
    "V": kit.Option(write=True, read=kit.ignore_option),
    # Otherwise the user's login shell runs the script, which may be any shell.
    "S": kit.Option("/bin/sh", _read_shell),
    # The runner opens the job's streams. A file that PBS cannot copy delays the job's end for half a
    # minute, and a file that it cannot open holds the job.
    "o": kit.Option("/dev/null", kit.output_reader(_path, _is_joined)),
    "e": kit.Option("/dev/null", _read_error),
    **kit.mail_options("M", "m", {"begin": "b", "end": "ae"}, without="n"),
    "q": kit.attribute_option("queue_name"),
    "A": kit.attribute_option("project_name"),
    "l.walltime": kit.duration_option(timedelta(seconds=1), parse_duration),
    "W.umask": kit.Option(lambda it: it.config.umask),
    "r": kit.Option(lambda it: _YES_OR_NO[it.config.rerun]),
    "l.ncpus": kit.Option(None, kit.count_option("cpu_cores_per_process").read),
    # jpsi does this anyway, or with its own files
    "j": kit.Option(None, kit.join_reader(_is_joined)),
    **dict.fromkeys(("k", "f"), kit.Option(None, kit.ignore_option)),
}
#: The option for the directory of the job, which only Torque has.
DIRECTORY = kit.Option(None, kit.path_reader("directory", lambda value: kit.read_path(value, _PATTERN)))
# an id begins with a digit
_DEPENDENCIES = kit.Option(
    _write_dependencies, kit.dependencies_reader(r"(?P<word>\w+):(?P<ids>\d[^:]*(?::\d[^:]*)*)")
)
