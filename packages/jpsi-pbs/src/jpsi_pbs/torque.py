"""The executor `torque`: Torque, 4 or later."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from jpsi.plugin import (
    Arrays,
    Command,
    CommandResult,
    JobAttributes,
    JobSpec,
    Options,
    ResourceSpecV1,
    ShellLine,
    Site,
    components,
    hookimpl,
    units,
)

from .convert import TORQUE_READERS
from .hooks import Hooks
from .native_ids import kinds_of_arrays
from .queue import Listed, frame_listing, parse_xml_jobs, request_by_ranges, torque_end, unframe_listing
from .submission import Laid, Part, laid_out, script_form

_KIBIBYTE = 1 << 10
# The options that request nodes; jpsi sets `procs` only if the user sets neither.
_NODES = frozenset({"l.nodes", "l.procs"})


# These scripts list all jobs, once or twice: with array elements, and with whole arrays. If there is no job,
# qstat prints nothing; the server's status after it then proves that the listing is complete.
_AND_SERVER = '"$0" -B -f'
_ONE = f'"$0" "$@" && exec {_AND_SERVER}'
_BOTH = f'"$0" "$@" -t && {_ONE}'
_SERVER = re.compile(r"^Server: \S", re.MULTILINE)
# src/include/pbs_ifl.h of Torque 6.1.3: PBS_MAXJOBARRAY
_MAX_ARRAY_SIZE = 99_999


class Torque(Hooks):
    """The hooks of the executor `torque`."""

    name = "torque"
    form = script_form((name, "pbs_classic"), {})
    readers = TORQUE_READERS
    # -x prints XML; Torque lists finished jobs for `keep_completed` seconds.
    qstat = ("qstat", "-f", "-x")
    # qstat opens a connection for each named id, so that listing all jobs is cheaper than naming many.
    most_ids = 100_000
    most_named = 25
    array_option = "t"
    largest_array = "max_job_array_size"

    jobs = staticmethod(parse_xml_jobs)
    end_of = staticmethod(torque_end)

    def arrays(self, site: Site) -> Arrays:
        """Return the capabilities for arrays."""
        return Arrays(
            largest=site.offers.get("largest_array", _MAX_ARRAY_SIZE),
            # PBS_ARRAYID is the index; no variable has the array's id, so it is derived from the element's.
            id_variable="PBS_JOBID",
            id_brackets="[]",
            index_variable="PBS_ARRAYID",
            limits=True,
            heterogeneous=True,
        )

    @hookimpl
    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:  # noqa: ARG002  sites are alike
        """Return the command that queries these jobs, or all if None; with -t qstat lists array elements."""
        if native_ids is None:
            return self._listing(_ONE, "-t")
        if len(native_ids) <= self.most_named:
            return self.naming(native_ids)
        arrays, elements = kinds_of_arrays(native_ids)
        if arrays and elements:
            return self._listing(_BOTH)
        return self._listing(_ONE, *(["-t"] if elements else []))

    @hookimpl
    def find(self) -> Command:
        """Return the command that lists all jobs with their variables, which include the tags."""
        return self._listing(_ONE)

    def _listing(self, script: str, *arguments: str) -> Command:
        command = self.naming((), *arguments)
        return frame_listing(attrs.evolve(command, argv=["/bin/sh", "-c", script, *command.argv]))

    def everything(self, result: CommandResult) -> list[Listed]:
        """Return the jobs in the output of `find`, or of `query` for many jobs."""
        _, answer = unframe_listing(result)
        return self.all_jobs(answer)

    def all_jobs(self, result: CommandResult) -> list[Listed]:
        """Return the jobs in the output of a qstat that lists all jobs."""
        jobs = self.listed(result)
        if not _SERVER.search(result.stdout):
            raise result.no_answer
        return jobs

    def asked_for(self, result: CommandResult, native_ids: Sequence[str]) -> list[Listed]:
        """Return the jobs in the output of `query` for these ids; for many ids, all jobs."""
        if len(native_ids) > self.most_named:
            return self.everything(result)
        return self.named(result, native_ids)

    def is_told_of(self, native_id: str, native_ids: Sequence[str]) -> bool:  # noqa: ARG002  one by one
        """Return False for the id of a whole array, for which qstat lists whatever jobs exist."""
        return "[]" not in native_id

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> Command:
        """Return the qdel command, which ends pending and running jobs."""
        return request_by_ranges("qdel", native_ids)

    @hookimpl
    def hold(self, native_ids: Sequence[str]) -> Command:
        """Return the command that keeps pending jobs from starting."""
        return request_by_ranges("qhold", native_ids)

    @hookimpl
    def release(self, native_ids: Sequence[str]) -> Command:
        """Return the command that lets held jobs start."""
        return request_by_ranges("qrls", native_ids)

    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """Return shell that picks one line per process from the node file, which has one line per core."""
        kinds = [
            (it.computed_process_count, it.cpu_cores_per_process or 1) for it in components(spec.resources)
        ]
        if _is_anywhere(spec):
            # the file has one line more if the queue has a default for nodes, which Torque adds to procs
            return [ShellLine(f"awk 'NR <= {kinds[0][0]}' \"$PBS_NODEFILE\"")]
        if len(kinds) == 1:
            return [ShellLine(f"awk 'NR % {kinds[0][1]} == 0' \"$PBS_NODEFILE\"")]
        return [ShellLine(f"awk '{_lines(kinds)}' \"$PBS_NODEFILE\"")]

    def resources(self, spec: JobSpec, site: Site) -> Options:
        """Return the options for nodes, with a virtual processor per core.

        Single-core processes that may run on any node are `procs`, which Torque places on any free cores; see
        "Requesting Resources" in the Torque manual.
        """
        kinds = _spread(laid_out(spec), site.config.cores_per_node)
        is_anywhere = _is_anywhere(spec) and kinds[0].parts is None and not _NODES & self._chosen(spec)
        nodes = [
            f"{it.nodes}:{_node(asked, it.processes)}"
            for asked, parts in kinds
            # Torque cannot choose the number of nodes: it is one, or follows from `cores_per_node`.
            for it in parts or [Part(1, asked.computed_process_count)]
        ]
        memory = _memory([asked for asked, _ in kinds])
        return {
            "l.nodes": None if is_anywhere else "+".join(nodes),
            "l.procs": kinds[0].asked.computed_process_count if is_anywhere else None,
            "l.mem": None if memory is None else f"{units(memory, _KIBIBYTE)}kb",
            "n": any(asked.exclusive_node_use for asked, _ in kinds),
        }

    def _chosen(self, spec: JobSpec) -> set[str]:
        """Return the names of the qsub options that the job's custom attributes set."""
        return set(self.form.custom.of(spec))

    def queue_problems(self, asked: JobAttributes) -> Sequence[str]:
        """Return a problem if the job has a reservation, which Torque does not offer."""
        if asked.reservation_id is None:
            return []
        moab = "the custom attribute torque.W.x, such as FLAGS:ADVRES:name"
        return [f"attributes.reservation_id: Torque has no reservations; for those of Moab set {moab}"]


def _is_anywhere(spec: JobSpec) -> bool:
    """Return True if a job is a number of single-core processes that may run on any node."""
    kinds = laid_out(spec)
    asked, parts = kinds[0]
    cores, gpus = asked.cpu_cores_per_process or 1, asked.gpu_cores_per_process or 0
    return len(kinds) == 1 and parts is None and cores == 1 and not gpus


def _spread(kinds: Sequence[Laid], cores_per_node: int | None) -> list[Laid]:
    """Return the components, spread over as many nodes of `cores_per_node` cores as they need."""
    return list(kinds) if cores_per_node is None else [_spread_kind(it, cores_per_node) for it in kinds]


def _spread_kind(kind: Laid, cores_per_node: int) -> Laid:
    fitting = max(1, cores_per_node // (kind.asked.cpu_cores_per_process or 1))
    if kind.parts is not None or kind.asked.computed_process_count <= fitting:
        return kind
    full, rest = divmod(kind.asked.computed_process_count, fitting)
    return Laid(kind.asked, [Part(full, fitting), *([Part(1, rest)] if rest else [])])


def _memory(kinds: Sequence[ResourceSpecV1]) -> int | None:
    """Return the memory of the whole job, as Torque cannot reserve memory for a part of it.

    Raises:
        ValueError: only some components say how much memory they need.
    """
    amounts = [it.memory for it in kinds]
    known = [it for it in amounts if it is not None]
    if known and len(known) < len(amounts):
        msg = (
            f"resources.components[{amounts.index(None)}].memory: Torque has memory for the whole job alone; "
            "say it of every component, or of none"
        )
        raise ValueError(msg)
    return sum(known) if known else None


def _lines(kinds: Sequence[tuple[int, int]]) -> str:
    """Return awk that picks one line per process from the lines per core, component by component.

    >>> _lines([(1, 4), (2, 1)])
    'NR <= 4 { if ((NR - 0) % 4 == 0) print; next } NR <= 6 { if ((NR - 4) % 1 == 0) print; next }'

    Args:
        kinds: the number of processes of each component, and the cores per process.
    """
    rules, before = [], 0
    for processes, cores in kinds:
        end = before + processes * cores
        rules.append(f"NR <= {end} {{ if ((NR - {before}) % {cores} == 0) print; next }}")
        before = end
    return " ".join(rules)


def _node(asked: ResourceSpecV1, processes: int) -> str:
    parts = [f"ppn={processes * (asked.cpu_cores_per_process or 1)}"]
    if asked.gpu_cores_per_process:
        parts.append(f"gpus={processes * asked.gpu_cores_per_process}")
    return ":".join(parts)


hooks = Torque()
