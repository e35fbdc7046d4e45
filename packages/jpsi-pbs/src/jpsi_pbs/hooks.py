"""The hook implementations that the executors `pbs` and `torque` share.

`openpbs` and `torque` add the hooks in which the two systems differ; the core calls the hooks to submit and
follow jobs.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi.plugin import (
    Arrays,
    Capabilities,
    Command,
    CommandResult,
    DependencyKind,
    ForeignScript,
    JobAttributes,
    JobSpec,
    Observation,
    Queue,
    Script,
    Site,
    SubmitContext,
    hookimpl,
)
from jpsi.plugin.kit import ScriptForm, ids_by_tag

from . import queue
from .config import config_class
from .job_names import find_tags
from .native_ids import QueriedIds, canonical_id, element_ids, map_to_queried
from .qsub import parse_submit, submit
from .submit_errors import classify_failure

# By default qstat prints local times without their zone.
_ENVIRONMENT = {"TZ": "UTC0"}
# These variables make Torque's qstat leave out jobs.
_CLIENT_VARIABLES = ("PBS_QSTAT_*",)


class Hooks(ABC):
    """The common hooks of PBS and Torque; subclasses define how the two systems differ."""

    #: The prefix of the names of custom attributes and details.
    name: str
    #: The form in which job scripts are written and read.
    form: ScriptForm
    #: The command that submits a job.
    qsub: Sequence[str] = ("qsub",)
    #: The command that lists the named jobs, or all.
    qstat: Sequence[str]
    #: The most jobs per query.
    max_ids: int
    #: The parser of qstat's listing; it returns None if the listing is incomplete.
    jobs: Callable[[str], list[queue.ListedJob] | None]
    #: The function that derives the end of a finished job; it returns None if the listing does not say.
    derive_end: Callable[[queue.ListedJob], queue.End | None]
    #: The server attribute with the largest number of array elements.
    largest_array: str

    config_class = staticmethod(config_class)
    canonical_id = staticmethod(canonical_id)
    element_ids = staticmethod(element_ids)
    parse_submit = staticmethod(parse_submit)
    classify_failure = staticmethod(classify_failure)
    cancel = staticmethod(queue.cancel)
    hold = staticmethod(queue.hold)
    release = staticmethod(queue.release)
    parse_cancel = staticmethod(queue.parse_cancel)
    parse_hold = staticmethod(queue.parse_hold)
    parse_release = staticmethod(queue.parse_hold)
    version = staticmethod(queue.version)
    queues = staticmethod(queue.queues)

    @abstractmethod
    def arrays(self, site: Site) -> Arrays | None:
        """Return the capabilities for arrays; None if the site allows none."""

    def qstat_command(self, native_ids: Sequence[str], *arguments: str) -> Command:
        """Return the qstat command that names these jobs, or lists all jobs if there are none."""
        argv = [*self.qstat, *arguments, *native_ids]
        return Command(argv, environment=_ENVIRONMENT, unset=_CLIENT_VARIABLES)

    def parse_all_jobs(self, result: CommandResult) -> list[queue.ListedJob]:
        """Return the jobs in the output of a qstat that lists all jobs.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        return self.parse_jobs(result)

    def parse_jobs(self, result: CommandResult, native_ids: Sequence[str] = ()) -> list[queue.ListedJob]:
        """Return the jobs in qstat's output; an answer that no named job is known yields an empty list.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        jobs = self.jobs(result.stdout)
        if jobs is None or not queue.is_valid_answer(result, native_ids, has_jobs=bool(jobs)):
            raise result.no_answer
        return jobs

    def parse_named_jobs(self, result: CommandResult, native_ids: Sequence[str]) -> list[queue.ListedJob]:
        """Return the jobs in the output of a qstat that named these jobs.

        Raises:
            SubmitException: qstat failed, or left out a job without an error message.
        """
        jobs = self.parse_jobs(result, native_ids)
        listed_ids = {job.native_id: "" for job in jobs}
        reported = {
            *map_to_queried(listed_ids, native_ids),
            *queue.parse_unknown_jobs(result, native_ids),
            *queue.parse_undecided_jobs(result, native_ids),
        }
        is_empty = not jobs and not reported
        if is_empty or not reported.issuperset(
            native_id for native_id in native_ids if self.is_always_reported(native_id, native_ids)
        ):
            raise result.no_answer
        return jobs

    @abstractmethod
    def is_always_reported(self, native_id: str, native_ids: Sequence[str]) -> bool:
        """Return True if a qstat for these ids always either lists this job or prints an error about it."""

    @hookimpl
    def capabilities(self, site: Site) -> Capabilities:
        """Return the capabilities of the batch system at this site."""
        return Capabilities(
            default_launcher="mpirun",
            id_variable="PBS_JOBID",
            ids_per_query=self.max_ids,
            dependencies=frozenset(DependencyKind),
            arrays=self.arrays(site),
            hold_option=f"{self.form.custom.systems[0]}.h",
            heterogeneous=True,
        )

    @hookimpl
    def probe(self) -> Command:
        """Return the command that prints the server's configuration."""
        return Command(["qstat", "-B", "-f"])

    @hookimpl
    def parse_probe(self, result: CommandResult) -> Mapping[str, Any]:
        """Return the largest number of array elements, if `qstat -B -f` prints it."""
        setting = re.compile(rf"^    {self.largest_array} = ([1-9][0-9]*)$", re.MULTILINE)
        found = setting.search(result.checked().stdout)
        return {} if found is None else {"largest_array": int(found[1])}

    @hookimpl
    def check_spec(self, spec: JobSpec, site: Site) -> list[str]:
        """Return the problems for which the batch system can never run this spec."""
        return list(self.form.problems(spec, site))

    @hookimpl
    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        """Render the directives for a spec."""
        return self.form.render(spec, context)

    @hookimpl
    def parse_queues(self, result: CommandResult) -> Sequence[Queue]:
        """Return the queues in qstat's output."""
        return queue.parse_queue_listing(result, self.name)

    @hookimpl
    def read_script(self, text: str) -> ForeignScript:
        """Return the job that the directives of a script describe."""
        script = self.form.read(text)
        # qsub(1B): a job runs in the home directory, and its output is copied to the directory of the
        # qsub call
        script.spec.directory = script.spec.directory or Path("~")
        return attrs.evolve(script, is_output_here=True)

    @hookimpl
    def submit(self, script: Script) -> Command:
        """Return the command that submits a script."""
        return submit(self.qsub, script)

    @hookimpl
    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None
    ) -> Mapping[str, Observation]:
        """Return an Observation of each job in qstat's output or error messages."""
        if native_ids is None:
            user, listing = queue.unwrap_listing(result)
            jobs = queue.own_jobs(user, self.parse_all_jobs(listing))
        else:
            jobs = self.parse_queried_jobs(result, native_ids)
        queried = QueriedIds(native_ids)
        observations = {
            native_id: Observation(state=None, native_state=message)
            for native_id, message in queue.parse_undecided_jobs(result, native_ids or ()).items()
        }
        denied = queue.parse_unknown_jobs(result, native_ids or ())
        observations |= {native_id: Observation.denied(message) for native_id, message in denied.items()}
        named_jobs = ((job, queried.names(job.native_id)) for job in jobs)
        return observations | queue.observe_jobs(named_jobs, self.name, self.derive_end)

    def parse_queried_jobs(self, result: CommandResult, native_ids: Sequence[str]) -> list[queue.ListedJob]:
        """Return the jobs in the output of `query` for these ids; it may contain other jobs too.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        return self.parse_named_jobs(result, native_ids)

    @hookimpl
    def find(self) -> Command:
        """Return the command that lists all jobs with their variables, which include the tags."""
        return self.qstat_command(())

    @hookimpl
    def parse_find(self, result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
        """Return the native ids of the jobs that carry the tags."""
        found = [
            (tag, job.native_id) for job in self.parse_found_jobs(result) for tag in find_tags(job.variables)
        ]
        return ids_by_tag(found, tags)

    def parse_found_jobs(self, result: CommandResult) -> list[queue.ListedJob]:
        """Return the jobs in the output of `find`.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        return self.parse_all_jobs(result)
