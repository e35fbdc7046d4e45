"""The hooks that the executors `pbs` and `torque` share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from jpsi.plugin import (
    Capabilities,
    Command,
    CommandResult,
    DependencyKind,
    JobAttributes,
    JobSpec,
    Observation,
    Options,
    ResourceSpecV1,
    Script,
    ScriptForm,
    ShellLine,
    Site,
    SubmitContext,
    attributes,
    hookimpl,
    resources,
    tagged,
)

from . import config, failures, ids, requests, submission
from .ends import End
from .listed import Listed
from .names import tag_in
from .observing import observation
from .script import options

# qstat prints local time without saying which.
_UNIVERSAL_TIME = {"TZ": "UTC0"}
# What qstat says of jobs that it does not list: unknown, finished, somebody else's, another server's; and of
# all of them where no finished jobs are kept. Texts are those of OpenPBS 23.06.06 and Torque 6.1.3.
_NOT_LISTED = re.compile(
    r"qstat: (?:Unknown Job Id|\d\S* Job has finished|Unauthorized Request  \d"
    r"|illegally formed job identifier|PBS is not configured to maintain job history)"
)


class Hooks:
    """What PBS and Torque have in common; they differ in what a subclass says."""

    #: How the names of custom attributes and of details begin.
    name: str
    #: How scripts are written.
    form: ScriptForm
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
    #: What qstat says of a job that has ended.
    end_of: Callable[[Listed], End]

    config_class = staticmethod(config.config_class)
    canonical_id = staticmethod(ids.canonical_id)
    parse_submit = staticmethod(submission.parse_submit)
    classify_failure = staticmethod(failures.classify_failure)
    cancel = staticmethod(requests.cancel)
    hold = staticmethod(requests.hold)
    release = staticmethod(requests.release)
    parse_cancel = staticmethod(requests.parse_cancel)
    parse_hold = staticmethod(requests.parse_hold)
    parse_release = staticmethod(requests.parse_hold)

    def resources(self, asked: ResourceSpecV1) -> Options:
        """The options of qsub for what a job needs of the machine."""
        raise NotImplementedError

    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """POSIX shell that prints the node of each process from the file that `PBS_NODEFILE` names."""
        raise NotImplementedError

    def queue(self, asked: JobAttributes) -> str | None:
        """Where a job is sent."""
        return asked.queue_name

    def queue_problems(self, asked: JobAttributes) -> Sequence[str]:
        """Why a job cannot be sent there."""
        raise NotImplementedError

    def options(self, spec: JobSpec, context: SubmitContext) -> Options:
        """The options of qsub for a job."""
        return options(spec, context, self.queue(attributes(spec)), self.resources(resources(spec)))

    def naming(self, native_ids: Sequence[str], *arguments: str) -> Command:
        """A call of qstat for these jobs."""
        express = self.express if len(ids.servers(native_ids)) == 1 else ()
        return Command([*self.qstat, *arguments, *express, *native_ids], environment=_UNIVERSAL_TIME)

    def listed(self, result: CommandResult) -> list[Listed]:
        """The jobs that a call of qstat has listed, if only to say that it knows none of them.

        Raises:
            SubmitException: it has not answered.
        """
        said = [line for line in result.stderr.splitlines() if line.startswith("qstat:")]
        if result.timed_out or result.returncode < 0 or not all(map(_NOT_LISTED.match, said)):
            raise result.no_answer
        jobs = self.jobs(result.stdout if said else result.checked().stdout)
        if jobs is None:
            raise result.no_answer
        return jobs

    @hookimpl
    def capabilities(self) -> Capabilities:
        """What the batch system offers."""
        return Capabilities(
            default_launcher="mpirun",
            id_variable="PBS_JOBID",
            ids_per_query=self.most_ids,
            dependencies=frozenset(DependencyKind),
        )

    @hookimpl
    def check_spec(self, spec: JobSpec, site: Site) -> list[str]:
        """Why the batch system can never be asked for this."""
        return [*self.queue_problems(attributes(spec)), *self.form.problems(spec, site, self.options)]

    @hookimpl
    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        """The directives for a spec."""
        return self.form.script(spec, context, self.options)

    @hookimpl
    def submit(self, script: Script) -> Command:
        """The command that submits a script."""
        return submission.submit(self.qsub, script)

    @hookimpl
    def nodes(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Shell that prints the node of each process."""
        return self.node_lines(spec)

    @hookimpl
    def query(self, native_ids: Sequence[str] | None) -> Command:
        """The command that asks for these jobs, or for all."""
        return self.naming(() if native_ids is None or len(native_ids) > self.most_named else native_ids)

    @hookimpl
    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None
    ) -> Mapping[str, Observation]:
        """What qstat said about each job."""
        asked = ids.Asked(native_ids)
        named = {name: job for job in self.listed(result) for name in asked.names(job.native_id)}
        return {name: observation(job, self.name, self.end_of) for name, job in named.items()}

    @hookimpl
    def find(self) -> Command:
        """The command that lists all jobs with their variables, among which the tags are."""
        return self.naming(())

    @hookimpl
    def parse_find(self, result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
        """The native ids of the jobs that carry the tags."""
        return tagged(((tag_in(job.variables) or "", job.native_id) for job in self.listed(result)), tags)
