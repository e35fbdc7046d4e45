"""The executor `torque`: Torque, 4 or later.

The core loads the object `hooks` of this module by an entry point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from jpsi.plugin import Arrays, Command, CommandResult, JobSpec, ShellLine, Site, hookimpl
from jpsi.plugin.kit import Option, array_reader, attribute_option

from . import queue
from .directives import DIRECTORY, script_form
from .hooks import Hooks
from .native_ids import has_arrays_and_elements
from .nodes import CUSTOM, RESOURCE_OPTIONS, process_lines

# These scripts list all jobs, once or twice: with array elements, and with whole arrays. If there is no job,
# qstat prints nothing; the server's status after it then proves that the listing is complete.
_PRINT_SERVER = '"$0" -B -f'
_LIST_ONCE = f'"$0" "$@" && exec {_PRINT_SERVER}'
_LIST_TWICE = f'"$0" "$@" -t && {_LIST_ONCE}'
_SERVER = re.compile(r"^Server: \S", re.MULTILINE)
# src/include/pbs_ifl.h of Torque 6.1.3: PBS_MAXJOBARRAY
_MAX_ARRAY_SIZE = 99_999
# The most jobs that a query names; for more it lists all jobs.
_MAX_NAMED = 25


class Torque(Hooks):
    """The hooks of the executor `torque`."""

    name = "torque"
    form = script_form(
        CUSTOM,
        RESOURCE_OPTIONS,
        {
            # for Moab and Maui: "Resource Manager Extensions" of the Moab manual
            "l.qos": attribute_option("qos"),
            "t": Option(lambda it: it.indices, array_reader("PBS_ARRAYID")),
            "d": DIRECTORY,
        },
        missing={
            "reservation_id": "Torque has no reservations; for those of Moab set the custom attribute "
            "torque.W.x, such as FLAGS:ADVRES:name"
        },
    )
    # -x prints XML; Torque lists finished jobs for `keep_completed` seconds.
    qstat = ("qstat", "-f", "-x")
    # qstat opens a connection for each named id, so that listing all jobs is cheaper than naming many.
    max_ids = 100_000
    largest_array = "max_job_array_size"

    jobs = staticmethod(queue.parse_xml_jobs)
    derive_end = staticmethod(queue.derive_torque_end)

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
        if len(native_ids) <= _MAX_NAMED:
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
        return queue.wrap_listing(attrs.evolve(command, argv=["/bin/sh", "-c", script, *command.argv]))

    def parse_found_jobs(self, result: CommandResult) -> list[queue.ListedJob]:
        """Return the jobs in the output of `find`, or of `query` for many jobs."""
        _, listing = queue.unwrap_listing(result)
        return self.parse_all_jobs(listing)

    def parse_all_jobs(self, result: CommandResult) -> list[queue.ListedJob]:
        """Return the jobs in the output of a qstat that lists all jobs."""
        jobs = self.parse_jobs(result)
        if not _SERVER.search(result.stdout):
            raise result.no_answer
        return jobs

    def parse_queried_jobs(self, result: CommandResult, native_ids: Sequence[str]) -> list[queue.ListedJob]:
        """Return the jobs in the output of `query` for these ids; for many ids, all jobs."""
        if len(native_ids) > _MAX_NAMED:
            return self.parse_found_jobs(result)
        return self.parse_named_jobs(result, native_ids)

    def is_always_reported(self, native_id: str, native_ids: Sequence[str]) -> bool:  # noqa: ARG002  one by one
        """Return False for the id of a whole array, for which qstat lists whatever jobs exist."""
        return "[]" not in native_id

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> Command:
        """Return the qdel command, which ends pending and running jobs.

        Torque 6.1.3 skips elements of a range that are just starting, and ends one that is named alone.
        """
        if len(native_ids) == 1:
            return Command(["qdel", *native_ids])
        return queue.change_by_ranges("qdel", native_ids)

    @hookimpl
    def hold(self, native_ids: Sequence[str]) -> Command:
        """Return the command that keeps pending jobs from starting."""
        return queue.change_by_ranges("qhold", native_ids)

    @hookimpl
    def release(self, native_ids: Sequence[str]) -> Command:
        """Return the command that lets held jobs start."""
        return queue.change_by_ranges("qrls", native_ids)

    @hookimpl
    def nodes(self, spec: JobSpec, site: Site) -> list[ShellLine]:
        """Return shell that picks one line per process from the node file, which has one line per core."""
        return [process_lines(spec, site.config.cores_per_node)]


hooks = Torque()
