"""The hooks that the executors `pbs` and `torque` share, each a line that calls what knows the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jpsi.plugin import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    Failure,
    JobAttributes,
    JobSpec,
    Observation,
    ResourceSpecV1,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    SubmitException,
    hookimpl,
)

from . import complaints, submission
from . import script as scripts
from .config import PbsConfig
from .dependencies import KINDS
from .ends import End
from .failures import failure
from .ids import askable, servers
from .listed import Listed, named, tagged
from .observing import observation
from .options import Options

# qstat prints local time without saying which.
_UNIVERSAL_TIME = {"TZ": "UTC0"}


class Hooks:
    """What PBS and Torque have in common; they differ in what a subclass says."""

    #: How the names of custom attributes and of details begin.
    name: str
    #: The command that submits.
    qsub: Sequence[str] = ("qsub",)
    #: The command that lists the jobs that it is given, or all.
    qstat: Sequence[str]
    #: What it is given besides where the jobs of one server are named.
    express: Sequence[str] = ()
    #: How many jobs one command asks for, and how many of them it names rather than list all there are.
    most_ids: int
    most_named: int

    def jobs(self, output: str) -> list[Listed] | None:
        """What qstat has listed; None if that is not whole."""
        raise NotImplementedError

    def end_of(self, job: Listed) -> End:
        """What qstat says of a job that has ended."""
        raise NotImplementedError

    def resources(self, resources: ResourceSpecV1) -> Options:
        """The options of qsub for what a job needs of the machine."""
        raise NotImplementedError

    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """POSIX shell that prints the node of each process from the file that `PBS_NODEFILE` names."""
        raise NotImplementedError

    def queue(self, attributes: JobAttributes) -> str | None:
        """Where a job is sent."""
        return attributes.queue_name

    def queue_problems(self, attributes: JobAttributes) -> Sequence[str]:
        """Why a job cannot be sent there."""
        raise NotImplementedError

    def listing(self, *arguments: str) -> Command:
        """A call of qstat."""
        return Command([*self.qstat, *arguments], environment=_UNIVERSAL_TIME)

    def naming(self, native_ids: Sequence[str], *arguments: str) -> Command:
        """A call of qstat for these jobs; without an id it would list all, and 0 is passed over."""
        ids = askable(native_ids) or ["0"]
        return self.listing(*arguments, *(self.express if len(servers(ids)) == 1 else ()), *ids)

    def listed(self, result: CommandResult) -> list[Listed]:
        """The jobs that a call of qstat has listed.

        Raises:
            SubmitException: it has not answered.
        """
        jobs = self.jobs(complaints.answered(result).stdout)
        if jobs is None:
            msg = f"qstat gave half an answer, or none: {result.complaint}"
            raise SubmitException(msg, transient=True)
        return jobs

    @hookimpl
    def config_class(self) -> type[BatchConfig]:
        return PbsConfig

    @hookimpl
    def capabilities(self) -> Capabilities:
        return Capabilities(
            default_launcher="mpirun",
            id_variable="PBS_JOBID",
            ids_per_query=self.most_ids,
            dependencies=KINDS,
        )

    @hookimpl
    def check_spec(self, spec: JobSpec, site: Site) -> list[str]:
        return list(scripts.spec_problems(spec, site, self))

    @hookimpl
    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        return scripts.script(spec, context, self)

    @hookimpl
    def submit(self, script: Script) -> Command:
        return submission.submit(self.qsub, script)

    @hookimpl
    def parse_submit(self, result: CommandResult) -> str:
        return submission.native_id(result.stdout)

    @hookimpl
    def classify_failure(self, result: CommandResult) -> Failure:
        return failure(result)

    @hookimpl
    def nodes(self, spec: JobSpec) -> Sequence[ShellLine]:
        return self.node_lines(spec)

    @hookimpl
    def find(self) -> Command:
        return self.listing()

    @hookimpl
    def parse_find(self, result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
        return tagged(self.listed(result), tags)

    @hookimpl
    def query(self, native_ids: Sequence[str] | None) -> Command:
        if native_ids is None or len(native_ids) > self.most_named:
            return self.listing()
        return self.naming(native_ids)

    @hookimpl
    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None
    ) -> Mapping[str, Observation]:
        jobs = named(self.listed(result), native_ids)
        return {name: observation(job, self.name, self.end_of) for name, job in jobs.items()}

    @hookimpl
    def cancel(self, native_ids: Sequence[str]) -> Command:
        return Command(["qdel", *(askable(native_ids) or native_ids)])

    @hookimpl
    def parse_cancel(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
        return complaints.not_cancelled(result, native_ids)

    @hookimpl
    def hold(self, native_ids: Sequence[str]) -> Command:
        return Command(["qhold", *(askable(native_ids) or native_ids)])

    @hookimpl
    def parse_hold(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
        return complaints.refused(result, native_ids)

    @hookimpl
    def release(self, native_ids: Sequence[str]) -> Command:
        return Command(["qrls", *(askable(native_ids) or native_ids)])

    @hookimpl
    def parse_release(self, result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
        return complaints.refused(result, native_ids)
