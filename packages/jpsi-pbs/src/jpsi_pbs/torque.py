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
from .native_ids import has_arrays_and_elements
from .queue import (
    ListedJob,
    change_by_ranges,
    derive_torque_end,
    parse_xml_jobs,
    unwrap_listing,
    wrap_listing,
)
from .submission import Layout, Part, lay_out, script_form

_KIBIBYTE = 1 << 10
# The options that request nodes; jpsi sets `procs` only if the user sets neither.
_NODE_OPTIONS = frozenset({"l.nodes", "l.procs"})


# These scripts list all jobs, once or twice: with array elements, and with whole arrays. If there is no job,
# qstat prints nothing; the server's status after it then proves that the listing is complete.
_PRINT_SERVER = '"$0" -B -f'
_LIST_ONCE = f'"$0" "$@" && exec {_PRINT_SERVER}'
_LIST_TWICE = f'"$0" "$@" -t && {_LIST_ONCE}'
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
    max_ids = 100_000
    max_named = 25
    array_option = "t"
    largest_array = "max_job_array_size"

    jobs = staticmethod(parse_xml_jobs)
    derive_end = staticmethod(derive_torque_end)

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
            return self._listing_command(_LIST_ONCE, "-t")
        if len(native_ids) <= self.max_named:
            return self.qstat_command(native_ids)
        arrays, elements = has_arrays_and_elements(native_ids)
        if arrays and elements:
            return self._listing_command(_LIST_TWICE)
        return self._listing_command(_LIST_ONCE, *(["-t"] if elements else []))

    @hookimpl
    def find(self) -> Command:
        """Return the command that lists all jobs with their variables, which include the tags."""
        return self._listing_command(_LIST_ONCE)

    def _listing_command(self, script: str, *arguments: str) -> Command:
        command = self.qstat_command((), *arguments)
        return wrap_listing(attrs.evolve(command, argv=["/bin/sh", "-c", script, *command.argv]))

    def parse_found_jobs(self, result: CommandResult) -> list[ListedJob]:
        """Return the jobs in the output of `find`, or of `query` for many jobs."""
        _, listing = unwrap_listing(result)
        return self.parse_all_jobs(listing)

    def parse_all_jobs(self, result: CommandResult) -> list[ListedJob]:
        """Return the jobs in the output of a qstat that lists all jobs."""
        jobs = self.parse_jobs(result)
        if not _SERVER.search(result.stdout):
            raise result.no_answer
        return jobs

    def parse_queried_jobs(self, result: CommandResult, native_ids: Sequence[str]) -> list[ListedJob]:
        """Return the jobs in the output of `query` for these ids; for many ids, all jobs."""
        if len(native_ids) > self.max_named:
            return self.parse_found_jobs(result)
        return self.parse_named_jobs(result, native_ids)

    def is_always_reported(self, native_id: str, native_ids: Sequence[str]) -> bool:  # noqa: ARG002  one by one
        """Return False for the id of a whole array, for which qstat lists whatever jobs exist."""
        return "[]" not in native_id

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> Command:
        """Return the qdel command, which ends pending and running jobs."""
        return change_by_ranges("qdel", native_ids)

    @hookimpl
    def hold(self, native_ids: Sequence[str]) -> Command:
        """Return the command that keeps pending jobs from starting."""
        return change_by_ranges("qhold", native_ids)

    @hookimpl
    def release(self, native_ids: Sequence[str]) -> Command:
        """Return the command that lets held jobs start."""
        return change_by_ranges("qrls", native_ids)

    def render_node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """Return shell that picks one line per process from the node file, which has one line per core."""
        core_counts = [
            (it.computed_process_count, it.cpu_cores_per_process or 1) for it in components(spec.resources)
        ]
        if _may_run_anywhere(spec):
            # the file has one line more if the queue has a default for nodes, which Torque adds to procs
            return [ShellLine(f"awk 'NR <= {core_counts[0][0]}' \"$PBS_NODEFILE\"")]
        if len(core_counts) == 1:
            return [ShellLine(f"awk 'NR % {core_counts[0][1]} == 0' \"$PBS_NODEFILE\"")]
        return [ShellLine(f"awk '{_awk_rules(core_counts)}' \"$PBS_NODEFILE\"")]

    def resources(self, spec: JobSpec, site: Site) -> Options:
        """Return the options for nodes, with a virtual processor per core.

        Single-core processes that may run on any node are `procs`, which Torque places on any free cores; see
        "Requesting Resources" in the Torque manual.
        """
        layouts = _spread_layouts(lay_out(spec), site.config.cores_per_node)
        may_run_anywhere = (
            _may_run_anywhere(spec)
            and layouts[0].parts is None
            and not _NODE_OPTIONS & self._option_names(spec)
        )
        nodes = [
            f"{it.nodes}:{_node_request(requested, it.processes)}"
            for requested, parts in layouts
            # Torque cannot choose the number of nodes: it is one, or follows from `cores_per_node`.
            for it in parts or [Part(1, requested.computed_process_count)]
        ]
        memory = _total_memory([requested for requested, _ in layouts])
        return {
            "l.nodes": None if may_run_anywhere else "+".join(nodes),
            "l.procs": layouts[0].requested.computed_process_count if may_run_anywhere else None,
            "l.mem": None if memory is None else f"{units(memory, _KIBIBYTE)}kb",
            "n": any(requested.exclusive_node_use for requested, _ in layouts),
        }

    def _option_names(self, spec: JobSpec) -> set[str]:
        """Return the names of the qsub options that the job's custom attributes set."""
        return set(self.form.custom.of(spec))

    def queue_problems(self, requested: JobAttributes) -> Sequence[str]:
        """Return a problem if the job has a reservation, which Torque does not offer."""
        if requested.reservation_id is None:
            return []
        hint = "the custom attribute torque.W.x, such as FLAGS:ADVRES:name"
        return [f"attributes.reservation_id: Torque has no reservations; for those of Moab set {hint}"]


def _may_run_anywhere(spec: JobSpec) -> bool:
    """Return True if a job is a number of single-core processes that may run on any node."""
    layouts = lay_out(spec)
    requested, parts = layouts[0]
    cores, gpus = requested.cpu_cores_per_process or 1, requested.gpu_cores_per_process or 0
    return len(layouts) == 1 and parts is None and cores == 1 and not gpus


def _spread_layouts(layouts: Sequence[Layout], cores_per_node: int | None) -> list[Layout]:
    """Return the components, spread over as many nodes of `cores_per_node` cores as they need."""
    return list(layouts) if cores_per_node is None else [_spread_layout(it, cores_per_node) for it in layouts]


def _spread_layout(layout: Layout, cores_per_node: int) -> Layout:
    per_node = max(1, cores_per_node // (layout.requested.cpu_cores_per_process or 1))
    if layout.parts is not None or layout.requested.computed_process_count <= per_node:
        return layout
    full, remainder = divmod(layout.requested.computed_process_count, per_node)
    return Layout(layout.requested, [Part(full, per_node), *([Part(1, remainder)] if remainder else [])])


def _total_memory(requests: Sequence[ResourceSpecV1]) -> int | None:
    """Return the memory of the whole job, as Torque cannot reserve memory for a part of it.

    Raises:
        ValueError: only some components say how much memory they need.
    """
    amounts = [it.memory for it in requests]
    known = [it for it in amounts if it is not None]
    if known and len(known) < len(amounts):
        msg = (
            f"resources.components[{amounts.index(None)}].memory: Torque has one memory limit for the whole "
            "job; set it for every component, or for none"
        )
        raise ValueError(msg)
    return sum(known) if known else None


def _awk_rules(core_counts: Sequence[tuple[int, int]]) -> str:
    """Return awk that picks one line per process from the lines per core, component by component.

    >>> _awk_rules([(1, 4), (2, 1)])
    'NR <= 4 { if ((NR - 0) % 4 == 0) print; next } NR <= 6 { if ((NR - 4) % 1 == 0) print; next }'

    Args:
        core_counts: the number of processes of each component, and the cores per process.
    """
    rules, start = [], 0
    for processes, cores in core_counts:
        end = start + processes * cores
        rules.append(f"NR <= {end} {{ if ((NR - {start}) % {cores} == 0) print; next }}")
        start = end
    return " ".join(rules)


def _node_request(requested: ResourceSpecV1, processes: int) -> str:
    parts = [f"ppn={processes * (requested.cpu_cores_per_process or 1)}"]
    if requested.gpu_cores_per_process:
        parts.append(f"gpus={processes * requested.gpu_cores_per_process}")
    return ":".join(parts)


hooks = Torque()
