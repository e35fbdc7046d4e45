"""Renders a job spec into `#SBATCH` lines, and reads those of scripts that were written for sbatch.

`render_script` writes the script of each job; `check_spec` reports before that what no directive can express;
`read_script` converts a script of a user into a job of jpsi.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import attrs

from jpsi.plugin import (
    Directive,
    ForeignScript,
    JobSpec,
    ResourceSpecV1,
    Script,
    Site,
    SubmitContext,
    components,
    hookimpl,
    kit,
    node_count,
    units,
)

from .custom_options import ARRAY_RANGE, CUSTOM, WALLTIME_UNIT, parse_time

_MEBIBYTE = 1 << 20
# sbatch(1): --mem; without a unit it is megabytes, and all of them are powers of 1024
_UNITS = {"": _MEBIBYTE} | {
    spelling: 1 << 10 * power
    for power, unit in enumerate("kmgt", 1)
    for spelling in (unit, unit.upper(), f"{unit}b", f"{unit.upper()}B")
}
# sbatch(1): --gres, --gpus, --gpus-per-node, --gpus-per-task
_GRES = re.compile(r"gpu(?::(?P<gpus>.+))?")
_GPUS = re.compile(r"(?:(?P<kind>[A-Za-z][\w.-]*):)?(?P<count>[0-9]+)|(?P<only>[A-Za-z][\w.-]*)", re.ASCII)
# sbatch(1): --mail-type
_MAIL = {"begin": ["BEGIN"], "end": ["END"], "fail": ["FAIL"]}
# sbatch(1), OPTIONS: the short options
_LETTERS = dict(
    pair.split("=")
    for pair in (
        *("A=account", "a=array", "B=extra-node-info", "b=begin", "C=constraint", "c=cpus-per-task"),
        *("D=chdir", "d=dependency", "e=error", "F=nodefile", "G=gpus", "H=hold", "h=help", "I=immediate"),
        *("i=input", "J=job-name", "k=no-kill", "L=licenses", "M=clusters", "m=distribution", "N=nodes"),
        *("n=ntasks", "O=overcommit", "o=output", "p=partition", "Q=quiet", "q=qos", "S=core-spec"),
        *("s=oversubscribe", "t=time", "u=usage", "V=version", "v=verbose", "W=wait", "w=nodelist"),
        "x=exclude",
    )
)
# src/common/slurm_opt.c, and src/sbatch/opt.c until Slurm 18.08: other long names of the same options
_SYNONYMS = {"share": "oversubscribe", "tasks-per-node": "ntasks-per-node", "workdir": "chdir"}
# Options without a value, or with an optional one that follows `=`
_FLAGS = frozenset(
    {"consolidate-segments", "contiguous", "disable-stdout-job-summary", "exclusive", "external"}
    | {"get-user-env", "help", "hold", "ignore-pbs", "immediate", "nice", "no-kill", "no-requeue"}
    | {"oom-kill-step", "overcommit", "oversubscribe", "parsable", "propagate", "quiet", "reboot", "requeue"}
    | {"resv-ports", "share", "spread-job", "spread-segments", "stepmgr", "test-only", "usage"}
    | {"use-min-nodes", "verbose", "version", "wait"}
)
# sbatch(1): further options, of any version
_OTHERS = (
    "acctg-freq batch bb bbf checkpoint checkpoint-dir cluster cluster-constraint comment constraint "
    "container container-id context cores-per-socket cpu-freq cpus-per-gpu deadline delay-boot extra "
    "gpu-bind gpu-freq gpus-per-socket gres-flags hint jobid mcs-label mem-bind mem-per-gpu mem-update "
    "mincpus network ntasks-per-core ntasks-per-gpu ntasks-per-socket ntasks-per-tres power prefer "
    "priority profile resources runtime segment signal sockets-per-node switches thread-spec "
    "threads-per-core time-min tmp tres-bind tres-per-task wait-all-nodes wckey"
)
# sbatch(1): FILENAME PATTERN
_path = partial(kit.read_path, patterns=re.compile("%"))
# The patterns but `%a`, which is the index for jpsi, too; with the separator that follows.
_OTHER_PATTERN = re.compile(r"%(?!a)[0-9]*.?[._-]?")
# Characters that no directive can hold, as a shell or sbatch may take them for more than text.
_ILLEGAL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f'\"\\`$\u2028\u2029\ud800-\udfff]")


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which Slurm can never run this spec."""
    problems = [problem for part, form in _components(spec) for problem in form.problems(part, site)]
    return list(dict.fromkeys(problems))


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    first, *others = (form.render(part, context) for part, form in _components(spec))
    separator = Directive.of("#SBATCH", "hetjob")
    directives = [directive for script in others for directive in (separator, *script.directives)]
    return Script([*first.directives, *directives])


@hookimpl
def read_script(text: str) -> ForeignScript:
    """Return the job that the `#SBATCH` lines before the first command describe."""
    return _FORM.read(text)


def _components(spec: JobSpec) -> list[tuple[JobSpec, kit.ScriptForm]]:
    """Return each component's spec as if it were a job, with the form of its script.

    Each component gets all options, as it inherits only some from the component before (sbatch(1), hetjob).
    """
    kinds = components(spec.resources)
    # sbatch.c of Slurm 22.05 resets --licenses for each component: the first one has those of the job.
    others = attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, licenses=None, mail=None))
    # --mem is inherited, and a component with --mem excludes --mem-per-cpu in all components.
    has_memory_per_node = all(kind.memory is not None and _known_nodes(kind) for kind in kinds)
    return [
        (
            attrs.evolve(others if index else spec, resources=kind) if len(kinds) > 1 else spec,
            _FORM if len(kinds) == 1 or has_memory_per_node or not _known_nodes(kind) else _CPU_MEMORY_FORM,
        )
        for index, kind in enumerate(kinds)
    ]


def _known_nodes(requested: ResourceSpecV1) -> int | None:
    """Return the number of nodes; None if Slurm chooses it when the job starts."""
    return node_count(requested) or (1 if requested.computed_process_count == 1 else None)


def _require_nodes(draft: kit.Draft) -> int:
    nodes = _known_nodes(draft.resources)
    if nodes is None:
        raise ValueError("Slurm chooses the number of nodes")
    return nodes


def _tasks_per_node(request: kit.JobRequest) -> int | None:
    # Together with --ntasks this is a maximum per node (sbatch(1)), so that the last node may have fewer.
    return request.resources.computed_processes_per_node if node_count(request.resources) else None


def _read_tasks_per_node(draft: kit.Draft, value: str) -> None:
    per_node, resources = kit.read_count(value), draft.resources
    nodes, processes = resources.node_count, resources.process_count
    if nodes is not None and processes is not None and -(-processes // per_node) != nodes:
        raise ValueError(f"{processes} tasks on {nodes} nodes are not {per_node} on each")
    resources.processes_per_node = per_node


def _write_gpus(request: kit.JobRequest) -> str | None:
    gpus, kind = request.resources.gpu_cores_per_process, kit.gpu_type(request)
    return (f"{kind}:{gpus}" if kind else str(gpus)) if gpus else None


def _read_gpus_per_task(draft: kit.Draft, value: str) -> None:
    _read_gpus(draft, value, draft.resources.computed_process_count)


def _read_gpus_per_node(draft: kit.Draft, value: str) -> None:
    _read_gpus(draft, value, _require_nodes(draft))


def _read_gres(draft: kit.Draft, value: str) -> None:
    match = _GRES.fullmatch(value)
    if match is None:
        raise ValueError("jpsi can request GPUs, and no other generic resources")
    _read_gpus(draft, match["gpus"] or "1", _require_nodes(draft))


def _read_gpus(draft: kit.Draft, value: str, shares: int = 1) -> None:
    match = _GPUS.fullmatch(value)
    if match is None:
        raise ValueError("jpsi can request only GPUs of one type")
    gpus = kit.read_count(match["count"] or "1") * shares
    draft.resources.gpu_cores_per_process = kit.share_gpus(gpus, draft.resources)
    draft.attributes.gpu_type = match["kind"] or match["only"]


def _memory_per_node(request: kit.JobRequest) -> str | None:
    requested = request.resources
    size = requested.computed_memory_per_node if requested.memory and _known_nodes(requested) else None
    return None if size is None else f"{units(size, _MEBIBYTE)}M"


def _memory_per_cpu(request: kit.JobRequest) -> str | None:
    size, cpus = request.resources.memory, request.resources.computed_core_count
    return None if size is None else f"{units(size, cpus * _MEBIBYTE)}M"


def _read_memory(draft: kit.Draft, value: str) -> None:
    _require_nodes(draft)
    processes = draft.resources.computed_process_count
    per_node = min(draft.resources.computed_processes_per_node, processes)
    draft.resources.memory = kit.read_amount(value, _UNITS) * processes // per_node


def _read_memory_per_cpu(draft: kit.Draft, value: str) -> None:
    draft.resources.memory = kit.read_amount(value, _UNITS) * draft.resources.computed_core_count


def _read_export(draft: kit.Draft, value: str) -> None:
    kit.variables_reader()(draft, value)
    if "ALL" not in value.split(","):
        reason = "the job has the whole environment; without it, it would lack the variables of Slurm too"
        draft.lose("export", value, reason)


def _stream_reader(make: Callable[[Callable[[str], Path]], kit.Reader]) -> kit.Reader:
    """Return the reader of a stream's path; `make` returns it for the function that reads paths."""

    def read(draft: kit.Draft, value: str) -> None:
        make(_path_in_array if "array" in draft.options else _path)(draft, value)

    return read


def _path_in_array(value: str) -> Path:
    """Return a path in which `%a` is the index; ValueError if it has other patterns."""
    if value and not _OTHER_PATTERN.search(value):
        return Path(value)
    rest = _OTHER_PATTERN.sub("", value)
    instead = f": {rest} is such a path, for --stdout or --stderr of jpsi submit" if "%a" in rest else ""
    raise ValueError(
        f"a path of jpsi has no pattern but %a, the index of a job of an array{instead}; "
        "without one the output is kept in the job's own folder"
    )


def legal_name(name: str) -> str:
    """Return the name with illegal characters replaced, as a directive can hold it; jpsi shows the original.

    >>> legal_name('heat flow "1"')
    'heat flow _1_'
    """
    return _ILLEGAL_CHARACTERS.sub("_", name)


def _write_licenses(request: kit.JobRequest) -> str | None:
    counts = request.spec.attributes.license_counts()
    return ",".join(f"{name}:{count}" for name, count in counts.items()) or None


def _dependency(request: kit.JobRequest) -> str | None:
    """Return the dependencies, all of which must be satisfied."""
    return ",".join(f"after{it.kind.value}:{it.native_id}" for it in request.context.after) or None


# sbatch(1), OPTIONS, in the order in which they are written and read; a reader may use the results of those
# before it. All others become custom attributes or are not supported by jpsi.
_OPTIONS = {
    "job-name": kit.Option(lambda it: legal_name(it.spec.name or "jpsi"), kit.read_name),
    "comment": kit.Option(lambda it: it.context.tag),
    "array": kit.Option(
        lambda it: it.indices, kit.array_reader("SLURM_ARRAY_TASK_ID", range_variables=ARRAY_RANGE)
    ),
    # The runner opens the job's streams. A directory or file that Slurm cannot open would end the job before
    # it starts, without any message.
    "chdir": kit.Option("/", kit.path_reader("directory", _path)),
    "input": kit.Option(None, _stream_reader(partial(kit.path_reader, "stdin_path"))),
    "output": kit.Option(
        "/dev/null",
        _stream_reader(partial(kit.output_reader, is_joined=lambda draft: "error" not in draft.options)),
    ),
    "error": kit.Option("/dev/null", _stream_reader(partial(kit.path_reader, "stderr_path"))),
    # Any other value than ALL runs a login shell and sets SLURM_EXPORT_ENV, through which srun's tasks lose
    # their environment; and sbatch cuts values with commas in this option.
    "export": kit.Option("ALL", _read_export),
    "partition": kit.attribute_option("queue_name"),
    "account": kit.attribute_option("project_name"),
    "reservation": kit.attribute_option("reservation_id"),
    "licenses": kit.Option(_write_licenses, kit.attribute_option("licenses").read, expresses=("licenses",)),
    "qos": kit.attribute_option("qos"),
    **kit.mail_options("mail-user", "mail-type", _MAIL, ","),
    # `--time=0` means UNLIMITED; partitions with a limit never start such a job.
    "time": kit.duration_option(WALLTIME_UNIT, parse_time),
    "nodes": kit.count_option("node_count", lambda it: node_count(it.resources)),
    "ntasks": kit.count_option("process_count", lambda it: it.resources.computed_process_count),
    "ntasks-per-node": kit.Option(_tasks_per_node, _read_tasks_per_node),
    "cpus-per-task": kit.count_option("cpu_cores_per_process"),
    # The only option that counts GPUs per process however many nodes Slurm chooses.
    "gpus-per-task": kit.Option(_write_gpus, _read_gpus_per_task, expresses=("gpu_type",)),
    "gpus": kit.Option(None, _read_gpus),
    "gpus-per-node": kit.Option(None, _read_gpus_per_node),
    "gres": kit.Option(None, _read_gres),
    "exclusive": kit.Option(lambda it: it.resources.exclusive_node_use, kit.read_exclusive),
    "mem": kit.Option(_memory_per_node, _read_memory),
    "mem-per-cpu": kit.Option(
        lambda it: None if _known_nodes(it.resources) else _memory_per_cpu(it), _read_memory_per_cpu
    ),
    "requeue": kit.Option(lambda it: it.config.requeue is True),
    "no-requeue": kit.Option(lambda it: it.config.requeue is False),
    "dependency": kit.Option(_dependency, kit.dependencies_reader(r"(?P<word>\w+):(?P<ids>\d+(?::\d+)*)")),
    # Otherwise a job whose dependency can no longer be satisfied stays pending for ever.
    "kill-on-invalid-dep": kit.Option(lambda it: "yes" if it.context.after else None),
    **dict.fromkeys(("parsable", "quiet", "verbose"), kit.Option(None, kit.ignore_option)),
}


def _parse_options(words: Sequence[str]) -> Iterator[kit.ParsedOption]:
    if words[:1] in (["hetjob"], ["packjob"]):
        raise ValueError("the parts of a heterogeneous job are several jobs")
    for name, value in kit.gnu_options(words, _LETTERS, _FLAGS, _KNOWN):
        yield _SYNONYMS.get(name, name), value


_KNOWN = frozenset({*_LETTERS.values(), *_SYNONYMS, *_FLAGS, *_OPTIONS, *CUSTOM.refused, *_OTHERS.split()})
# slurmctld refuses values of more bytes (src/slurmctld/job_mgr.c, _test_strlen)
_FORM = kit.ScriptForm(
    mark="#SBATCH",
    # sbatch(1): output environment variables
    directory_variables=("SLURM_SUBMIT_DIR",),
    variables=r"SLURM_\w+",
    longest=1024,
    options=_OPTIONS,
    known=_KNOWN,
    # sbatch accepts abbreviations, which would set the options of jpsi twice.
    custom=attrs.evolve(CUSTOM, abbreviated=[name for name, it in _OPTIONS.items() if it.write is not None]),
    parse=_parse_options,
)
# For a component that has --mem-per-cpu in place of --mem
_CPU_MEMORY_FORM = attrs.evolve(
    _FORM,
    options={
        **{name: option for name, option in _OPTIONS.items() if name not in ("mem", "mem-per-cpu")},
        "mem-per-cpu": kit.Option(_memory_per_cpu),
    },
)
