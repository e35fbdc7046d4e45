"""The executor `pbs`: OpenPBS and PBS Professional, 18.1 or later."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jpsi.plugin import (
    NOT_OFFERED,
    Arrays,
    Command,
    CommandResult,
    JobAttributes,
    JobSpec,
    NotOffered,
    Observation,
    Options,
    ResourceSpecV1,
    ShellLine,
    Site,
    hookimpl,
    units,
)

from .convert import OPENPBS_READERS
from .hooks import Hooks
from .native_ids import arrays_of, has_arrays_and_elements, is_element, is_one_server
from .queue import derive_openpbs_end, parse_hold, parse_json_jobs, wrap_listing
from .submission import CHUNK, Part, chunk_resources, lay_out, script_form

_KIBIBYTE = 1 << 10
# src/include/server_limits.h of OpenPBS 23.06.06: PBS_MAX_ARRAY_JOB_DFL
_MAX_ARRAY_SIZE = 10_000
# src/lib/Libattr/master_resc_def_all.xml of OpenPBS 23.06.06: ATR_DFLAG_CVTSLT, except the resources that
# replace chunks; and resources that sites with GPUs define
_CHUNK_RESOURCES = (
    *("l.accelerator", "l.accelerator_group", "l.accelerator_memory", "l.accelerator_model"),
    *("l.aoe", "l.arch", "l.eoe", "l.hbmem", "l.host", "l.mpiprocs", "l.naccelerators", "l.ngpus"),
    *("l.ompthreads", "l.vmem", "l.vnode", "l.vntype"),
)
_WHOLE_ARRAY_NOTE = "; PBS holds no element of an array, but the array as a whole"
_SERVER = re.compile(r"^Server: (\S+)$", re.MULTILINE)
_VERSION = re.compile(r"^    pbs_version = ([0-9]+)\.", re.MULTILINE)
# src/cmds/qsub.c of OpenPBS 22.05.11, but not of 20.0.1, the release before: `-J 1-9%2`
_YEAR_OF_ARRAY_LIMITS = 22
_CENTURY = 2000
_HISTORY = re.compile(r"^    job_history_enable = (\w+)$", re.MULTILINE)


class OpenPbs(Hooks):
    """The hooks of the executor `pbs`."""

    name = "pbs"
    form = script_form(
        (name, "pbspro", "openpbs"),
        dict.fromkeys(_CHUNK_RESOURCES, "PBS refuses it beside jpsi's l.select; set pbs.chunk or that"),
        indirect=(CHUNK,),
    )
    readers = OPENPBS_READERS
    # -f: no background process, which would keep inherited files open, e.g. the lock of the job's directory.
    qsub = ("qsub", "-f")
    qstat = ("qstat", "-f", "-F", "json")
    # -E queries all jobs over one connection. Otherwise qstat opens one per job from a port below 1024, which
    # is then blocked for a minute: after 512 of them every PBS command of the machine hangs. But with -E, one
    # id with the name of a nonexistent server may cost the answer for all others.
    express = ("-E",)
    max_ids = max_named = 200
    array_option = "J"
    largest_array = "max_array_size"

    jobs = staticmethod(parse_json_jobs)
    derive_end = staticmethod(derive_openpbs_end)
    arrays_of = staticmethod(arrays_of)

    def render_node_lines(self, spec: JobSpec) -> list[ShellLine]:  # noqa: ARG002  whatever a job asks for
        """Return shell that prints the node file, which has a line per `mpiprocs`, grouped by node."""
        # the lines of two chunks on one node need not be adjacent
        awk = "{ if (!n[$0]++) o[++k] = $0 } END { for (i = 1; i <= k; i++) while (n[o[i]]--) print o[i] }"
        return [ShellLine(f"awk '{awk}' \"$PBS_NODEFILE\"")]

    def resources(self, spec: JobSpec, site: Site) -> Options:  # noqa: ARG002  sites are alike
        """Return the options for the job's chunks and their placement; pbs_resources(7B)."""
        layouts, extra = lay_out(spec), chunk_resources(self.form.custom.of(spec))
        chunks = [
            ":".join([str(it.nodes), *_chunk_resources(requested, it.processes), *extra])
            for requested, parts in layouts
            # without a number of nodes each process is a chunk, which PBS may place anywhere
            for it in parts or [Part(requested.computed_process_count, 1)]
        ]
        nodes = sum(it.nodes for _, parts in layouts for it in parts or ())
        # exclusive use is a property of the whole job, if any of its chunks requests it
        is_exclusive = any(requested.exclusive_node_use for requested, _ in layouts)
        placement = [*(["scatter"] if nodes > 1 else []), *(["exclhost"] if is_exclusive else [])]
        return {"l.select": "+".join(chunks), "l.place": ":".join(placement) or None}

    def queue(self, requested: JobAttributes) -> str | None:
        """Return the queue for a job; a reservation is a queue, named by its id without the server."""
        if requested.reservation_id is not None:
            return requested.reservation_id.partition(".")[0]
        return requested.queue_name

    def queue_problems(self, requested: JobAttributes) -> Sequence[str]:
        """Return a problem if the job has both a queue and a reservation."""
        if requested.reservation_id is None or requested.queue_name is None:
            return []
        return ["attributes.queue_name and reservation_id cannot be given both: a reservation is a queue"]

    def arrays(self, site: Site) -> Arrays | None:
        """Return the capabilities for arrays; None if jobs may not be rerun, which PBS arrays require."""
        if site.config.rerun is False:
            return None
        return Arrays(
            largest=site.offers.get("largest_array", _MAX_ARRAY_SIZE),
            id_variable="PBS_ARRAY_ID",
            index_variable="PBS_ARRAY_INDEX",
            limits=site.offers.get("array_limits", False),
            heterogeneous=True,
        )

    @hookimpl
    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:
        """Return the command that queries these jobs, or all jobs if None; -t lists array elements."""
        if native_ids is None:
            return wrap_listing(self.qstat_command((), "-t"))
        # With -x, qstat also lists jobs that were moved to another server.
        return self._element_query(native_ids, *(["-x"] if site.offers.get("history") else []))

    def is_always_reported(self, native_id: str, native_ids: Sequence[str]) -> bool:  # noqa: ARG002  all are
        """Return False with -E: qstat then prints errors about jobs only if it lists no job at all."""
        return not is_one_server(native_ids)

    def _element_query(self, native_ids: Sequence[str], *arguments: str) -> Command:
        is_array = any(has_arrays_and_elements(native_ids))
        return self.qstat_command(native_ids, *(["-t"] if is_array else []), *arguments)

    @hookimpl
    def parse_hold(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the reason for each job that was not held or released."""
        reasons = parse_hold(result, native_ids)
        return {
            native_id: f"{reason}{_WHOLE_ARRAY_NOTE if is_element(native_id) else ''}"
            for native_id, reason in reasons.items()
        }

    parse_release = parse_hold

    @hookimpl
    def parse_probe(self, result: CommandResult) -> Mapping[str, Any]:
        """Return the limits of arrays, the server's name, and `history`, True if it keeps finished jobs.

        `history` is False unless `qstat -B -f` says otherwise. `array_limits` depends on the version.
        """
        text = result.checked().stdout
        history, server = _HISTORY.search(text), _SERVER.search(text)
        return {
            **super().parse_probe(result),
            "array_limits": _has_array_limits(text),
            "history": history is not None and history[1] == "True",
            **({} if server is None else {"server": server[1]}),
        }

    @hookimpl
    def query_finished(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """Return the command that queries jobs, including finished ones; NOT_OFFERED without history."""
        if site.offers.get("history") is False:
            return NOT_OFFERED
        return self._element_query(native_ids, "-x")

    @hookimpl
    def parse_finished(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, Observation]:
        """Return an Observation of each job in qstat's output or error messages."""
        return self.parse_status(result, native_ids)


def _has_array_limits(text: str) -> bool:
    """Return True if the server can limit the running elements of an array, judged by its version.

    OpenPBS versions begin with two digits of the year, those of PBS Professional with four.

    >>> [_has_array_limits(f"    pbs_version = {it}.1") for it in (20, 22, 2021, 2022)]
    [False, True, False, True]
    """
    version = _VERSION.search(text)
    return version is not None and int(version[1]) % _CENTURY >= _YEAR_OF_ARRAY_LIMITS


def _chunk_resources(requested: ResourceSpecV1, processes: int) -> list[str]:
    cores = requested.cpu_cores_per_process or 1
    parts = [f"ncpus={processes * cores}", f"mpiprocs={processes}"]
    if processes > 1:
        # otherwise PBS sets OMP_NUM_THREADS of each process to the number of all cores of the chunk
        parts.append(f"ompthreads={cores}")
    if requested.gpu_cores_per_process:
        parts.append(f"ngpus={processes * requested.gpu_cores_per_process}")
    if requested.memory is not None:
        share = units(requested.memory * processes, requested.computed_process_count * _KIBIBYTE)
        parts.append(f"mem={share}kb")
    return parts


hooks = OpenPbs()
