"""The executor `pbs`: OpenPBS and PBS Professional, 18.1 or later.

The core loads the object `hooks` of this module by an entry point.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jpsi.plugin import (
    NOT_OFFERED,
    Arrays,
    Command,
    CommandResult,
    NotOffered,
    ShellLine,
    Site,
    hookimpl,
)
from jpsi.plugin.kit import JobRequest, Option, array_reader, attribute_option

from . import queue
from .chunks import CUSTOM, RESOURCE_OPTIONS
from .directives import script_form
from .hooks import Hooks
from .native_ids import arrays_of, has_arrays_and_elements, is_element, is_one_server

# src/include/server_limits.h of OpenPBS 23.06.06: PBS_MAX_ARRAY_JOB_DFL
_MAX_ARRAY_SIZE = 10_000
_WHOLE_ARRAY_NOTE = "; PBS holds no element of an array, but the array as a whole"
_SERVER = re.compile(r"^Server: (\S+)$", re.MULTILINE)
_VERSION = re.compile(r"^    pbs_version = ([0-9]+)\.", re.MULTILINE)
# src/cmds/qsub.c of OpenPBS 22.05.11, but not of 20.0.1, the release before: `-J 1-9%2`
_YEAR_OF_ARRAY_LIMITS = 22
_CENTURY = 2000
# pbs_resources(7B): what has a meaning of its own in `-l`
_OWN_RESOURCE = re.compile(
    "arch|cput|file|host|(min_|max_)?walltime|p?v?mem|mpiprocs|nchunk|ncpus|nice|nodect|nodes|ompthreads|pcput|"
    "place|preempt_targets|select|site|software|start_time|vnode|vntype"
)
_HISTORY = re.compile(r"^    job_history_enable = (\w+)$", re.MULTILINE)


def _write_queue(request: JobRequest) -> str | None:
    """Return the queue for a job; a reservation is a queue, named by its id without the server."""
    requested = request.spec.attributes
    if requested.reservation_id is None:
        return requested.queue_name
    if requested.queue_name is not None:
        msg = "attributes.queue_name and reservation_id cannot both be set: a reservation is a queue"
        raise ValueError(msg)
    return requested.reservation_id.partition(".")[0]


def _write_licenses(request: JobRequest) -> tuple[str, ...]:
    """Return a resource of the whole job for each license; pbs_resources(7B)."""
    counts = request.spec.attributes.license_counts()
    if own := sorted(filter(_OWN_RESOURCE.fullmatch, counts)):
        raise ValueError(f"attributes.licenses: {', '.join(own)} is a resource of PBS, and no license")
    return tuple(f"{name}={count}" for name, count in counts.items())


class OpenPbs(Hooks):
    """The hooks of the executor `pbs`."""

    name = "pbs"
    form = script_form(
        CUSTOM,
        RESOURCE_OPTIONS,
        {
            "q": Option(
                _write_queue,
                attribute_option("queue_name").read,
                expresses=("queue_name", "reservation_id"),
            ),
            "l": Option(_write_licenses, expresses=("licenses",)),
            "J": Option(lambda it: it.indices, array_reader("PBS_ARRAY_INDEX")),
        },
    )
    # -f: no background process, which would keep inherited files open, e.g. the lock of the job's directory.
    qsub = ("qsub", "-f")
    qstat = ("qstat", "-f", "-F", "json")
    max_ids = 200
    largest_array = "max_array_size"

    jobs = staticmethod(queue.parse_json_jobs)
    derive_end = staticmethod(queue.derive_openpbs_end)
    arrays_of = staticmethod(arrays_of)

    @hookimpl
    def nodes(self) -> list[ShellLine]:
        """Return shell that prints the node file, which has a line per `mpiprocs`, grouped by node."""
        # the lines of two chunks on one node need not be adjacent
        awk = "{ if (!n[$0]++) o[++k] = $0 } END { for (i = 1; i <= k; i++) while (n[o[i]]--) print o[i] }"
        return [ShellLine(f"awk '{awk}' \"$PBS_NODEFILE\"")]

    def arrays(self, site: Site) -> Arrays | None:
        """Return the capabilities for arrays; None if jobs may not be rerun, which PBS arrays require."""
        if site.config.rerun is False:
            return None
        return Arrays(
            largest=site.offers.get("largest_array", _MAX_ARRAY_SIZE),
            # PBS_ARRAY_ID is that of the array; the control group of an element has the element's id
            id_variable="PBS_JOBID",
            id_brackets="[]",
            index_variable="PBS_ARRAY_INDEX",
            limits=site.offers.get("array_limits", False),
            heterogeneous=True,
        )

    @hookimpl
    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:
        """Return the command that queries these jobs, or all jobs if None; -t lists array elements."""
        if native_ids is None:
            return queue.wrap_listing(self.qstat_command((), "-t"))
        # With -x, qstat also lists jobs that were moved to another server.
        return self._element_query(native_ids, *(["-x"] if site.offers.get("history") else []))

    def is_always_reported(self, native_id: str, native_ids: Sequence[str]) -> bool:  # noqa: ARG002  all are
        """Return False with -E: qstat then prints errors about jobs only if it lists no job at all."""
        return not is_one_server(native_ids)

    def _element_query(self, native_ids: Sequence[str], *arguments: str) -> Command:
        is_array = any(has_arrays_and_elements(native_ids))
        # -E queries all jobs over one connection. Otherwise qstat opens one per job from a port below 1024,
        # which is then blocked for a minute: after 512 of them every PBS command of the machine hangs. But
        # with -E, one id with the name of a nonexistent server may cost the answer for all others.
        express = ["-E"] if is_one_server(native_ids) else []
        return self.qstat_command(native_ids, *(["-t"] if is_array else []), *arguments, *express)

    @hookimpl
    def parse_hold(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the reason for each job that was not held or released."""
        reasons = queue.parse_hold(result, native_ids)
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

    parse_finished = Hooks.parse_status


def _has_array_limits(text: str) -> bool:
    """Return True if the server can limit the running elements of an array, judged by its version.

    OpenPBS versions begin with two digits of the year, those of PBS Professional with four.

    >>> [_has_array_limits(f"    pbs_version = {it}.1") for it in (20, 22, 2021, 2022)]
    [False, True, False, True]
    """
    version = _VERSION.search(text)
    return version is not None and int(version[1]) % _CENTURY >= _YEAR_OF_ARRAY_LIMITS


hooks = OpenPbs()
