"""The hooks that the executors `pbs` and `torque` share."""

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
from jpsi.plugin.kit import ScriptForm, tagged

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

# qstat prints local time without saying which.
_UNIVERSAL_TIME = {"TZ": "UTC0"}
# They have Torque's qstat leave out jobs.
_MISLEADING = ("PBS_QSTAT_*",)


class Hooks(ABC):
    """What PBS and Torque have in common; they differ in what a subclass says."""

    #: How the names of custom attributes and of details begin.
    name: str
    #: How scripts are written.
    form: ScriptForm
    #: What becomes of the options in scripts that were not written by jpsi.
    readers: Mapping[str, Reader]
    #: The command that submits.
    qsub: Sequence[str] = ("qsub",)
    #: The command that lists the jobs that it is given, or all.
    qstat: Sequence[str]
    #: What it is given besides where the jobs of one server are named.
    express: Sequence[str] = ()
    #: How many jobs one command asks for, and how many of them it names rather than list all there are.
    most_ids: int
    most_named: int
    #: What qstat has listed; None if that is not whole.
    jobs: Callable[[str], list[Listed] | None]
    #: What qstat says of a job that has ended; None if that cannot be told.
    end_of: Callable[[Listed], End | None]

    #: The option of qsub that says which elements an array has.
    array_option: str
    #: What qstat calls the largest number of them.
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
        """The options of qsub for what a job needs of the machine."""

    @abstractmethod
    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """POSIX shell that prints the node of each process from the file that `PBS_NODEFILE` names."""

    def queue(self, asked: JobAttributes) -> str | None:
        """Where a job is sent."""
        return asked.queue_name

    @abstractmethod
    def queue_problems(self, asked: JobAttributes) -> Sequence[str]:
        """Why a job cannot be sent there."""

    def options(self, spec: JobSpec, context: SubmitContext) -> Options:
        """The options of qsub for a job."""
        needs = {**self.resources(spec, context.site), self.array_option: _array(context)}
        return qsub_options(spec, context, self.queue(attributes(spec)), needs)

    @abstractmethod
    def arrays(self, site: Site) -> Arrays | None:
        """What arrays there may be."""

    @abstractmethod
    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:
        """The command that asks for these jobs, or for all."""

    def naming(self, native_ids: Sequence[str], *arguments: str) -> Command:
        """A call of qstat for these jobs; without any, for all."""
        express = self.express if is_one_server(native_ids) else ()
        argv = [*self.qstat, *arguments, *express, *native_ids]
        return Command(argv, environment=_UNIVERSAL_TIME, unset=_MISLEADING)

    def all_jobs(self, result: CommandResult) -> list[Listed]:
        """The jobs that a call of qstat for all of them has listed.

        Raises:
            SubmitException: it has not answered, or not to its end.
        """
        return self.listed(result)

    def listed(self, result: CommandResult, native_ids: Sequence[str] = ()) -> list[Listed]:
        """The jobs that a call of qstat for these has listed, if only to say that it knows none of them.

        Raises:
            SubmitException: it has not answered, or not to its end.
        """
        jobs = self.jobs(result.stdout)
        if jobs is None or not is_answer(result, native_ids, has_jobs=bool(jobs)):
            raise result.no_answer
        return jobs

    def named(self, result: CommandResult, native_ids: Sequence[str]) -> list[Listed]:
        """The jobs that a call of qstat has listed which has named these.

        Raises:
            SubmitException: it has not answered, or has left out a job without a word.
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
        """Whether qstat, given these ids, lists a job or complains of it, whatever it says of the others."""

    @hookimpl
    def capabilities(self, site: Site) -> Capabilities:
        """What the batch system offers."""
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
        """The command that shows what the server is configured to do."""
        return Command(["qstat", "-B", "-f"])

    @hookimpl
    def parse_probe(self, result: CommandResult) -> Mapping[str, Any]:
        """How many elements an array may have, if `qstat -B -f` says so."""
        setting = re.compile(rf"^    {self.largest_array} = ([1-9][0-9]*)$", re.MULTILINE)
        found = setting.search(result.checked().stdout)
        return {} if found is None else {"largest_array": int(found[1])}

    @hookimpl
    def check_spec(self, spec: JobSpec, site: Site) -> list[str]:
        """Why the batch system can never be asked for this."""
        return [*self.queue_problems(attributes(spec)), *self.form.problems(spec, site, self.options)]

    @hookimpl
    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        """The directives for a spec."""
        return self.form.script(spec, context, self.options)

    @hookimpl
    def parse_queues(self, result: CommandResult) -> Sequence[Queue]:
        """The queues that qstat told of."""
        return read_queues(result, self.name)

    @hookimpl
    def read_script(self, text: str) -> ForeignScript:
        """What the directives of a script ask for."""
        return read_script(text, self.form.custom, self.readers)

    @hookimpl
    def submit(self, script: Script) -> Command:
        """The command that submits a script."""
        return submit(self.qsub, script)

    @hookimpl
    def nodes(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Shell that prints the node of each process."""
        return self.node_lines(spec)

    @hookimpl
    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None
    ) -> Mapping[str, Observation]:
        """What qstat said about each job."""
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
        """The jobs in the answer to `query` for these; there may be others besides.

        Raises:
            SubmitException: it is none, or not whole.
        """
        return self.named(result, native_ids)

    @hookimpl
    def find(self) -> Command:
        """The command that lists all jobs with their variables, among which the tags are."""
        return self.naming(())

    @hookimpl
    def parse_find(self, result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
        """The native ids of the jobs that carry the tags."""
        found = [(tag, job.native_id) for job in self.everything(result) for tag in tags_in(job.variables)]
        return tagged(found, tags)

    def everything(self, result: CommandResult) -> list[Listed]:
        """The jobs in the answer to `find`.

        Raises:
            SubmitException: it is none, or not whole.
        """
        return self.all_jobs(result)


def _array(context: SubmitContext) -> str | None:
    """The indices of an array, and how many of its elements may run at a time."""
    indices = None if context.elements is None else f"1-{context.elements}"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"
