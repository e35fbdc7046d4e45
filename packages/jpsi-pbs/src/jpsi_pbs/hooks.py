"""The hook implementations that the executors `pbs` and `torque` share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    Options,
    Queue,
    Reader,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    attributes,
    hookimpl,
)
from jpsi.plugin.kit import ScriptForm, ids_by_tag

from .config import config_class
from .convert import read_script
from .failures import classify_failure
from .job_names import tags_in
from .native_ids import Asked, by_asked, canonical_id, element_ids, is_one_server
from .queue import (
    End,
    Listed,
    cancel,
    denied_jobs,
    hold,
    is_answer,
    observe_jobs,
    own_jobs,
    parse_cancel,
    parse_hold,
    queues,
    read_queues,
    release,
    undecided_jobs,
    unframe_listing,
    version,
)
from .submission import parse_submit, qsub_options, submit

# By default qstat prints local times without their zone.
_UNIVERSAL_TIME = {"TZ": "UTC0"}
# These variables make Torque's qstat leave out jobs.
_MISLEADING = ("PBS_QSTAT_*",)


class Hooks(ABC):
    """The common hooks of PBS and Torque; subclasses define how the two systems differ."""

    #: The prefix of the names of custom attributes and details.
    name: str
    #: The form in which job scripts are written.
    form: ScriptForm
    #: The readers of options in scripts that were not written by jpsi.
    readers: Mapping[str, Reader]
    #: The command that submits a job.
    qsub: Sequence[str] = ("qsub",)
    #: The command that lists the named jobs, or all.
    qstat: Sequence[str]
    #: Additional arguments of qstat if all named jobs belong to one server.
    express: Sequence[str] = ()
    #: The most jobs per query, and the most that a query names; for more it lists all jobs.
    most_ids: int
    most_named: int
    #: The parser of qstat's listing; it returns None if the listing is incomplete.
    jobs: Callable[[str], list[Listed] | None]
    #: The function that derives the end of a finished job; it returns None if the listing does not say.
    end_of: Callable[[Listed], End | None]

    #: The option of qsub for the indices of an array.
    array_option: str
    #: The server attribute with the largest number of array elements.
    largest_array: str

    config_class = staticmethod(config_class)
    canonical_id = staticmethod(canonical_id)
    element_ids = staticmethod(element_ids)
    parse_submit = staticmethod(parse_submit)
    classify_failure = staticmethod(classify_failure)
    cancel = staticmethod(cancel)
    hold = staticmethod(hold)
    release = staticmethod(release)
    parse_cancel = staticmethod(parse_cancel)
    parse_hold = staticmethod(parse_hold)
    parse_release = staticmethod(parse_hold)
    version = staticmethod(version)
    queues = staticmethod(queues)

    @abstractmethod
    def resources(self, spec: JobSpec, site: Site) -> Options:
        """Return the qsub options for the job's resources."""

    @abstractmethod
    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """Return POSIX shell that prints the node of each process from the file that `PBS_NODEFILE` names."""

    def queue(self, asked: JobAttributes) -> str | None:
        """Return the queue to which the job is submitted; None is the default queue."""
        return asked.queue_name

    @abstractmethod
    def queue_problems(self, asked: JobAttributes) -> Sequence[str]:
        """Return the problems with the job's queue or reservation."""

    def options(self, spec: JobSpec, context: SubmitContext) -> Options:
        """Return the qsub options for a job."""
        needs = {**self.resources(spec, context.site), self.array_option: _array(context)}
        return qsub_options(spec, context, self.queue(attributes(spec)), needs)

    @abstractmethod
    def arrays(self, site: Site) -> Arrays | None:
        """Return the capabilities for arrays; None if the site allows none."""

    @abstractmethod
    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:
        """Return the command that queries these jobs, or all jobs if None."""

    def naming(self, native_ids: Sequence[str], *arguments: str) -> Command:
        """Return the qstat command that names these jobs, or lists all jobs if there are none."""
        express = self.express if is_one_server(native_ids) else ()
        argv = [*self.qstat, *arguments, *express, *native_ids]
        return Command(argv, environment=_UNIVERSAL_TIME, unset=_MISLEADING)

    def all_jobs(self, result: CommandResult) -> list[Listed]:
        """Return the jobs in the output of a qstat that lists all jobs.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        return self.listed(result)

    def listed(self, result: CommandResult, native_ids: Sequence[str] = ()) -> list[Listed]:
        """Return the jobs in qstat's output; an answer that no named job is known yields an empty list.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        jobs = self.jobs(result.stdout)
        if jobs is None or not is_answer(result, native_ids, has_jobs=bool(jobs)):
            raise result.no_answer
        return jobs

    def named(self, result: CommandResult, native_ids: Sequence[str]) -> list[Listed]:
        """Return the jobs in the output of a qstat that named these jobs.

        Raises:
            SubmitException: qstat failed, or left out a job without an error message.
        """
        jobs = self.listed(result, native_ids)
        shown = {job.native_id: "" for job in jobs}
        said = {
            *by_asked(shown, native_ids),
            *denied_jobs(result, native_ids),
            *undecided_jobs(result, native_ids),
        }
        is_silent = not jobs and not said
        if is_silent or not said.issuperset(it for it in native_ids if self.is_told_of(it, native_ids)):
            raise result.no_answer
        return jobs

    @abstractmethod
    def is_told_of(self, native_id: str, native_ids: Sequence[str]) -> bool:
        """Return True if a qstat for these ids always either lists this job or prints an error about it."""

    @hookimpl
    def capabilities(self, site: Site) -> Capabilities:
        """Return the capabilities of the batch system at this site."""
        return Capabilities(
            default_launcher="mpirun",
            id_variable="PBS_JOBID",
            ids_per_query=self.most_ids,
            dependencies=frozenset(DependencyKind),
            arrays=self.arrays(site),
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
        return [*self.queue_problems(attributes(spec)), *self.form.problems(spec, site, self.options)]

    @hookimpl
    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        """Render the directives for a spec."""
        return self.form.render(spec, context, self.options)

    @hookimpl
    def parse_queues(self, result: CommandResult) -> Sequence[Queue]:
        """Return the queues in qstat's output."""
        return read_queues(result, self.name)

    @hookimpl
    def read_script(self, text: str) -> ForeignScript:
        """Return the job that the directives of a script describe."""
        return read_script(text, self.form.custom, self.readers)

    @hookimpl
    def submit(self, script: Script) -> Command:
        """Return the command that submits a script."""
        return submit(self.qsub, script)

    @hookimpl
    def nodes(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Return shell lines that print the node of each process."""
        return self.node_lines(spec)

    @hookimpl
    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None
    ) -> Mapping[str, Observation]:
        """Return an Observation of each job in qstat's output or error messages."""
        if native_ids is None:
            user, answer = unframe_listing(result)
            jobs = own_jobs(user, self.all_jobs(answer))
        else:
            jobs = self.asked_for(result, native_ids)
        asked = Asked(native_ids)
        found = {
            it: Observation(state=None, word=why)
            for it, why in undecided_jobs(result, native_ids or ()).items()
        }
        denied = denied_jobs(result, native_ids or ())
        found |= {it: Observation.denied(why) for it, why in denied.items()}
        there = ((job, asked.names(job.native_id)) for job in jobs)
        return found | observe_jobs(there, self.name, self.end_of)

    def asked_for(self, result: CommandResult, native_ids: Sequence[str]) -> list[Listed]:
        """Return the jobs in the output of `query` for these ids; it may contain other jobs too.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        return self.named(result, native_ids)

    @hookimpl
    def find(self) -> Command:
        """Return the command that lists all jobs with their variables, which include the tags."""
        return self.naming(())

    @hookimpl
    def parse_find(self, result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
        """Return the native ids of the jobs that carry the tags."""
        found = [(tag, job.native_id) for job in self.everything(result) for tag in tags_in(job.variables)]
        return ids_by_tag(found, tags)

    def everything(self, result: CommandResult) -> list[Listed]:
        """Return the jobs in the output of `find`.

        Raises:
            SubmitException: qstat failed, or its output is incomplete.
        """
        return self.all_jobs(result)


def _array(context: SubmitContext) -> str | None:
    """Return the array's indices, with the limit of elements that may run at a time."""
    indices = None if context.elements is None else f"1-{context.elements}"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"
