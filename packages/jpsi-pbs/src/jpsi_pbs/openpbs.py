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
from .native_ids import arrays_of, is_element, is_one_server, kinds_of_arrays
from .queue import frame_listing, openpbs_end, parse_hold, parse_json_jobs
from .submission import CHUNK, Part, added_resources, laid_out, script_form

_KIBIBYTE = 1 << 10
# src/include/server_limits.h of OpenPBS 23.06.06: PBS_MAX_ARRAY_JOB_DFL
_MAX_ARRAY_SIZE = 10_000
# src/lib/Libattr/master_resc_def_all.xml of OpenPBS 23.06.06: ATR_DFLAG_CVTSLT, but for what replaces chunks;
# and what sites with GPUs define
_IN_CHUNKS = (
    *("l.accelerator", "l.accelerator_group", "l.accelerator_memory", "l.accelerator_model"),
    *("l.aoe", "l.arch", "l.eoe", "l.hbmem", "l.host", "l.mpiprocs", "l.naccelerators", "l.ngpus"),
    *("l.ompthreads", "l.vmem", "l.vnode", "l.vntype"),
)
_AS_A_WHOLE = "; PBS holds no element of an array, but the array as a whole"
_SERVER = re.compile(r"^Server: (\S+)$", re.MULTILINE)
_VERSION = re.compile(r"^    pbs_version = ([0-9]+)\.", re.MULTILINE)
# src/cmds/qsub.c of OpenPBS 22.05.11, but not of 20.0.1, the release before: `-J 1-9%2`
_YEAR_OF_ARRAY_LIMITS = 22
_CENTURY = 2000
_HISTORY = re.compile(r"^    job_history_enable = (\w+)$", re.MULTILINE)


class OpenPbs(Hooks):
    """What is said and asked in PBS's way."""

    name = "pbs"
    form = script_form(
        (name, "pbspro", "openpbs"),
        dict.fromkeys(_IN_CHUNKS, "PBS refuses it beside jpsi's l.select; set pbs.chunk or that"),
        indirect=(CHUNK,),
    )
    readers = OPENPBS_READERS
    # -f: no background process, which would keep what it inherits, the lock of the job's folder among it.
    qsub = ("qsub", "-f")
    qstat = ("qstat", "-f", "-F", "json")
    # -E asks for all jobs over one connection. Otherwise each has one of its own, from a port below 1024,
    # which then rests for a minute: after 512 of them every command of the machine hangs. But an id with the
    # name of a server that there is not may then cost all others their answer.
    express = ("-E",)
    most_ids = most_named = 200
    array_option = "J"
    largest_array = "max_array_size"

    jobs = staticmethod(parse_json_jobs)
    end_of = staticmethod(openpbs_end)
    arrays_of = staticmethod(arrays_of)

    def node_lines(self, spec: JobSpec) -> list[ShellLine]:  # noqa: ARG002  whatever a job asks for
        """A line of the file for each of `mpiprocs`, here grouped by node."""
        # two chunks on one node may stand apart
        grouped = (
            "{ if (!n[$0]++) o[++k] = $0 } END { for (i = 1; i <= k; i++) while (n[o[i]]--) print o[i] }"
        )
        return [ShellLine(f"awk '{grouped}' \"$PBS_NODEFILE\"")]

    def resources(self, spec: JobSpec, site: Site) -> Options:  # noqa: ARG002  sites are alike
        """The chunks that a job consists of, and how they are placed; pbs_resources(7B)."""
        kinds, more = laid_out(spec), added_resources(self.form.custom.of(spec))
        chunks = [
            ":".join([str(it.nodes), *_chunk(asked, it.processes), *more])
            for asked, parts in kinds
            # without a number of nodes each process is a chunk, which goes where there is room
            for it in parts or [Part(asked.computed_process_count, 1)]
        ]
        nodes = sum(it.nodes for _, parts in kinds for it in parts or ())
        # it is of the whole job, whichever of its chunks ask for it
        is_exclusive = any(asked.exclusive_node_use for asked, _ in kinds)
        placed = [*(["scatter"] if nodes > 1 else []), *(["exclhost"] if is_exclusive else [])]
        return {"l.select": "+".join(chunks), "l.place": ":".join(placed) or None}

    def queue(self, asked: JobAttributes) -> str | None:
        """Where a job is sent; a reservation is a queue of its own, and its id has that of the server too."""
        if asked.reservation_id is not None:
            return asked.reservation_id.partition(".")[0]
        return asked.queue_name

    def queue_problems(self, asked: JobAttributes) -> Sequence[str]:
        """Why a job cannot be sent there."""
        if asked.reservation_id is None or asked.queue_name is None:
            return []
        return ["attributes.queue_name and reservation_id cannot be given both: a reservation is a queue"]

    def arrays(self, site: Site) -> Arrays | None:
        """What arrays there may be; PBS must be free to run their elements again."""
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
        """The command that asks for these jobs, or for all; with -t, elements of arrays are told of."""
        if native_ids is None:
            return frame_listing(self.naming((), "-t"))
        # With -x, what was moved to another server is there too.
        return self._naming_elements(native_ids, *(["-x"] if site.offers.get("history") else []))

    def is_told_of(self, native_id: str, native_ids: Sequence[str]) -> bool:  # noqa: ARG002  each is told of
        """Not with -E, where something is said only if no job at all is listed."""
        return not is_one_server(native_ids)

    def _naming_elements(self, native_ids: Sequence[str], *arguments: str) -> Command:
        is_array = any(kinds_of_arrays(native_ids))
        return self.naming(native_ids, *(["-t"] if is_array else []), *arguments)

    @hookimpl
    def parse_hold(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Why which jobs were not held or released."""
        refused = parse_hold(result, native_ids)
        return {it: f"{why}{_AS_A_WHOLE if is_element(it) else ''}" for it, why in refused.items()}

    parse_release = parse_hold

    @hookimpl
    def parse_probe(self, result: CommandResult) -> Mapping[str, Any]:
        """What is told of arrays, the server's name, and whether it keeps finished jobs.

        It does not unless `qstat -B -f` says so. Limits of arrays go by the version.
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
        """The command that asks for these jobs, among the finished too."""
        if site.offers.get("history") is False:
            return NOT_OFFERED
        return self._naming_elements(native_ids, "-x")

    @hookimpl
    def parse_finished(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, Observation]:
        """What qstat said about each job."""
        return self.parse_status(result, native_ids)


def _has_array_limits(text: str) -> bool:
    """Whether a server is new enough: OpenPBS has two digits of the year, PBS Professional all four.

    >>> [_has_array_limits(f"    pbs_version = {it}.1") for it in (20, 22, 2021, 2022)]
    [False, True, False, True]
    """
    version = _VERSION.search(text)
    return version is not None and int(version[1]) % _CENTURY >= _YEAR_OF_ARRAY_LIMITS


def _chunk(asked: ResourceSpecV1, processes: int) -> list[str]:
    cores = asked.cpu_cores_per_process or 1
    parts = [f"ncpus={processes * cores}", f"mpiprocs={processes}"]
    if processes > 1:
        # otherwise OMP_NUM_THREADS is the number of all the cores of a chunk, in each of its processes
        parts.append(f"ompthreads={cores}")
    if asked.gpu_cores_per_process:
        parts.append(f"ngpus={processes * asked.gpu_cores_per_process}")
    if asked.memory is not None:
        share = units(asked.memory * processes, asked.computed_process_count * _KIBIBYTE)
        parts.append(f"mem={share}kb")
    return parts


hooks = OpenPbs()
