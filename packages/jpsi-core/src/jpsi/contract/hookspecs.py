"""The hooks: everything that the core ever asks of a plugin, as typed protocols.

Hooks take values and return values; they run nothing, read no file, know no clock and never sleep, so that
they may be called from any thread and tested with strings. An implementation is a function decorated with
`hookimpl` that asks only for the arguments it uses, by their names here.

The native ids that a hook is given are never none, and each is one that `canonical_id` accepts. What it
answers about others is passed over.

Layers are asked from the top: what the user's and the site's overrides answer comes before the backend's
answer, and that before the core's default. None means "ask the next layer"; `NOT_OFFERED` is an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import pluggy

from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import ExecutorConfig
from jpsi.contract.foreign_scripts import ForeignScript
from jpsi.contract.job_files import JobFiles
from jpsi.contract.observation import Failure, NotOffered, Observation
from jpsi.contract.protocols import Engine, EngineSetup, Transport
from jpsi.contract.queue import Queue
from jpsi.contract.shell import Script, ShellLine
from jpsi.model import Dependency, DependencyKind, JobSpec, JobStatus

#: The project name that pluggy knows jpsi by.
PROJECT = "jpsi"

hookspec = pluggy.HookspecMarker(PROJECT)
#: Decorates the functions of a plugin that implement hooks.
hookimpl = pluggy.HookimplMarker(PROJECT)

#: The hooks without which an executor cannot work, unless it has `make_engine`.
REQUIRED_BATCH_HOOKS = ("render_script", "submit", "parse_submit", "query", "parse_status", "cancel")
REQUIRED_LAUNCHER_HOOKS = ("launch",)
REQUIRED_OBSERVER_HOOKS = ("status_changed",)
REQUIRED_TRANSPORT_HOOKS = ("open_transport",)
#: The hooks that an engine must implement.
REQUIRED_ENGINE_HOOKS = ("local_transport", "batch_engine", "process_engine", "open_files")


@attrs.frozen(slots=True, kw_only=True)
class Arrays:
    """How a backend runs many jobs that are submitted as one; their indices are 1, 2, 3 and so on."""

    #: How many elements an array may have.
    largest: int
    #: The variable that tells a running element the native id of its array, in any spelling that all elements
    #: have in common. Several are separated by blanks: the first that is set counts.
    id_variable: str
    #: The variable that tells it its index.
    index_variable: str
    #: The two characters between which that id has the index, for systems that tell elements their own ids
    #: alone: with `[]`, `17[3].server` is taken for the `17[].server` that all of them have in common.
    id_brackets: str = ""
    #: Whether the batch system can be told how many elements may run at a time: `SubmitContext.at_a_time`.
    limits: bool = False
    #: Whether elements may have slots of several kinds; jobs that do are submitted one by one otherwise.
    heterogeneous: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Capabilities:
    """What a backend offers, and what the core must know to use it well."""

    #: The launcher for jobs of more than one process that name none.
    default_launcher: str
    #: The one for those that need more than one node; empty if it is the same.
    nodes_launcher: str = ""
    #: The variable that tells a running job its native id; empty if there is none. Several are separated by
    #: blanks: the first that is set counts.
    id_variable: str = ""
    #: The variable that tells a running job how often it was put back to run again; unset is zero. Empty if
    #: there is none, or one that does not count: where it is the same for two runs of a job, the batch system
    #: does not know of the first.
    restart_variable: str = ""
    #: How many native ids one query may name; None if a query always lists all of the user's jobs.
    ids_per_query: int | None = 200
    #: How many native ids one question to the accounting may name; None if as many as a query.
    ids_per_accounting: int | None = None
    #: Exit codes by which a job asks the system to run it again.
    requeue_exit_codes: frozenset[int] = frozenset()
    #: Within how many seconds the batch system tells of every job that it has: its queue since the
    #: submission, its accounting since the end. An id that neither has told of for so long is that of no job,
    #: as `attach` says then. None if that is not known: then it takes the configured grace. Not needed where
    #: `parse_status` says of an id that there is no such job, by `Observation.denied`.
    visible_within: float | None = None
    #: How a job can wait for others; what is not among them is refused.
    dependencies: frozenset[DependencyKind] = frozenset()
    #: How many jobs are submitted as one; None if that cannot be done.
    arrays: Arrays | None = None
    #: How many jobs one command submits that stay jobs by themselves, where there are no arrays; see the hook
    #: `submit_several`.
    jobs_per_submission: int = 1
    #: Whether a job may have slots of several kinds, `HeterogeneousResources`; hooks see none otherwise.
    heterogeneous: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Site:
    """Where hooks are asked for: what is configured, and what was found out."""

    #: An instance of what `config_class` answered.
    config: Any
    #: What `parse_probe` found; empty before the first probe.
    offers: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(slots=True, kw_only=True)
class SubmitContext:
    """What a submission is to be sent with, besides its spec."""

    site: Site
    job_id: str
    #: What the batch system must carry for the job, so that it can be found again: up to 60 characters
    #: of A-Z, a-z, 0-9 and `-`, unique to this attempt.
    tag: str
    #: The jobs of the batch system that must have ended first, each by its native id. None of them had ended
    #: a moment ago; those that had are not among them.
    after: tuple[Dependency, ...] = ()
    #: How many elements it has, if it is an array, whose native id `parse_submit` then tells; None for a
    #: single job. Never set unless the backend's `Capabilities.arrays` are.
    elements: int | None = None
    #: How many of these elements may run at a time; None is all. Never set unless `Arrays.limits` is.
    at_a_time: int | None = None


class ExecutorHooks(Protocol):
    """What an executor plugin may implement (entry-point groups `jpsi.executors` and `jpsi.overrides`)."""

    @hookspec(firstresult=True)
    def config_class(self) -> type[ExecutorConfig]:
        """The configuration class of this executor; `BatchConfig`, or a subclass with fields of its own."""

    @hookspec(firstresult=True)
    def capabilities(self, site: Site) -> Capabilities:
        """What this backend offers."""

    @hookspec(firstresult=True)
    def probe(self, site: Site) -> Command | NotOffered:
        """The command that tells what this site's installation offers; run once per executor."""

    @hookspec(firstresult=True)
    def parse_probe(self, result: CommandResult, site: Site) -> Mapping[str, Any]:
        """What `probe` found; it is `site.offers` for every later hook."""

    @hookspec
    def check_spec(self, spec: JobSpec, site: Site) -> Iterable[str]:
        """Why `spec`, which is valid in itself, can never run here; one sentence each.

        All layers are asked. Of jobs that are submitted together and differ only in what is none of the
        business of `render_script`, a backend is asked about the first alone, unless there is an override of
        this hook, which may look at all of each: then they are asked about each.
        """

    @hookspec(firstresult=True)
    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        """The directives for `spec`; the core adds the line that runs the job.

        Whatever the user may choose freely (command, arguments, environment, streams, pre_launch) is none of
        this hook's business, nor that of `submit` and `nodes`: for jobs that differ in nothing else these are
        asked once, and such jobs may become one array. ValueError, as `Directive.of` raises it, makes the job
        invalid.
        """

    @hookspec(firstresult=True)
    def submit(self, script: Script, spec: JobSpec, context: SubmitContext) -> Command:
        """The command that submits `script.text`, best on its standard input.

        Unset there what variables of the caller would override (`Command.unset`).
        """

    @hookspec(firstresult=True)
    def parse_submit(self, result: CommandResult, context: SubmitContext) -> str:
        """The native id that a submit command printed which returned 0 in time.

        Whatever else it printed. ValueError if there is no id in it: then the job is looked for by its tag.
        """

    @hookspec(firstresult=True)
    def submit_several(
        self, scripts: Sequence[Script], spec: JobSpec, contexts: Sequence[SubmitContext]
    ) -> Command | NotOffered:
        """The command that submits several jobs, each by itself, with its own script and context.

        The batch system sees no difference between them but for their tags. Not asked unless
        `Capabilities.jobs_per_submission` allows several. The core's own answer is NOT_OFFERED, by which jobs
        like these are submitted one by one.
        """

    @hookspec(firstresult=True)
    def parse_submit_several(
        self, result: CommandResult, contexts: Sequence[SubmitContext]
    ) -> Mapping[str, str]:
        """The native ids that such a command printed which returned 0 in time, by the tags of their jobs.

        Which is whose must not be guessed by their order, unless the batch system warrants it. Jobs that are
        left out are looked for by their tags, and all of them if it raises ValueError.
        """

    @hookspec(firstresult=True)
    def canonical_id(self, native_id: str, site: Site) -> str:
        """The one spelling of a native id that all other hooks use, whichever it was given in.

        ValueError if it cannot be an id here: no other hook is ever asked about it. So a text that the
        system's commands would take for something else, such as several jobs, does no harm. It is asked
        often. The core's own answer is the text as it is.
        """

    @hookspec(firstresult=True)
    def element_ids(self, native_id: str, indices: Sequence[int], site: Site) -> Sequence[str]:
        """The native ids that these elements of an array have, in the order of the indices.

        By them elements are cancelled, held and released, and answers tell of them; `canonical_id` leaves
        them as they are. The core's own answer is `17[3]` for the third element of 17.
        """

    @hookspec(firstresult=True)
    def arrays_of(self, native_ids: Sequence[str], site: Site) -> Mapping[str, str]:
        """The native ids of the arrays of those among these jobs which are elements of one.

        `query` is asked about arrays in place of their elements, so that an array is one name, whatever its
        size; `parse_status` gets the ids of the elements, and tells of them whether the answer lists them one
        by one or by ranges. The core's own answer is that none is an element.
        """

    @hookspec(firstresult=True)
    def classify_failure(self, result: CommandResult, site: Site) -> Failure:
        """What it means that a submit command returned something else than 0; never asked after a time-out.

        What came of `submit_several` is AMBIGUOUS if any of the jobs may have been submitted. The core's own
        answer is AMBIGUOUS, which costs time and no job.
        """

    @hookspec(firstresult=True)
    def find(self, tags: Sequence[str], site: Site) -> Command | NotOffered:
        """The one command that tells which jobs of the user carry these tags."""

    @hookspec(firstresult=True)
    def parse_find(self, result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
        """The native ids of the tags that were found.

        SubmitException, as `CommandResult.checked` raises it, if the system did not answer.
        """

    @hookspec(firstresult=True)
    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:
        """The one command that asks for the states of these jobs, or of all jobs of the user for None.

        For None, those that have ended may be left out.
        """

    @hookspec(firstresult=True)
    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None, site: Site
    ) -> Mapping[str, Observation]:
        """What `query` learnt, by native id; a job that is not mentioned is left out.

        The native ids are those of the jobs that are meant, elements of arrays among them, also where `query`
        was asked for all jobs of the user.

        SubmitException, as `CommandResult.checked` raises it, if the system did not answer: then nothing
        was learnt. An answer that is not whole is no answer either: raise unless what `query` asked for at
        the beginning and at the end of the answer is there (a header, a line of its own), and each line
        between them is understood. Text of a site's own before that beginning is passed over.

        Each observation says whose job it is about: `Observation.tag`, and `submitted` where the system tells
        it. An answer that says of some jobs that they are unknown is an answer: `Observation.denied` tells of
        each that it names so. For None, each job is told of by one id, as they are counted; an array whose
        elements are told of may be there besides.
        """

    @hookspec(firstresult=True)
    def query_finished(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """The one command that asks the accounting for jobs that have left the queue.

        As `query`, it is asked about arrays in place of their elements.
        """

    @hookspec(firstresult=True)
    def parse_finished(
        self, result: CommandResult, native_ids: Sequence[str], site: Site
    ) -> Mapping[str, Observation] | NotOffered:
        """What `query_finished` learnt; like `parse_status`.

        NOT_OFFERED is for an accounting that this user cannot read here, whenever it is asked; for one that
        does not answer now, raise SubmitException.
        """

    @hookspec(firstresult=True)
    def cancel(self, native_ids: Sequence[str], site: Site, seen: Mapping[str, Observation]) -> Command:
        """The command that ends these jobs, pending or running.

        `seen` is what the batch system said of those of them that it mentioned, a moment before: they carried
        their tags then. Where the command can be told what else the jobs must be, such as their user and
        name, tell it.
        """

    @hookspec(firstresult=True)
    def parse_cancel(self, result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, str]:
        """Why which of these jobs could not be cancelled; a job that has ended already is left out.

        The core's own answer: none if the command returned 0, else all of them for what it said.
        """

    @hookspec(firstresult=True)
    def hold(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """The command that keeps these pending jobs from starting."""

    @hookspec(firstresult=True)
    def parse_hold(self, result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, str]:
        """Why which of these jobs could not be held; like `parse_cancel`."""

    @hookspec(firstresult=True)
    def release(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """The command that lets held jobs start again."""

    @hookspec(firstresult=True)
    def parse_release(
        self, result: CommandResult, native_ids: Sequence[str], site: Site
    ) -> Mapping[str, str]:
        """Why which of these jobs could not be released; like `parse_cancel`."""

    @hookspec(firstresult=True)
    def nodes(self, spec: JobSpec, site: Site) -> Sequence[ShellLine]:
        """POSIX shell that prints the name of the node of each process of the job, one on a line.

        It runs at the beginning of the job, with the environment that the batch system gives it; what it
        prints, grouped by node and in the order of the ranks, is the file `$JPSI_NODEFILE`. If its exit code
        is not 0, or it prints nothing, a job of several processes fails, and one of a single process runs
        without that file. The core's own answer is the name of the machine that it runs on, for every
        process.
        """

    @hookspec(firstresult=True)
    def watch(self, site: Site) -> Command | NotOffered:
        """A command that prints lines about the user's jobs as they change, and goes on until it is ended.

        It is to print one now and then even if there is no news, so that it is seen that nobody listens. What
        it tells is a hint: jobs of which it has news are asked about soon, and others as always.
        """

    @hookspec(firstresult=True)
    def parse_event(self, line: str, site: Site) -> Sequence[str]:
        """The native ids of the jobs that a line of `watch` has news of."""

    @hookspec(firstresult=True)
    def version(self, site: Site) -> Command | NotOffered:
        """The command that tells the version of the batch system, best without asking its server.

        The first line with a digit is shown to people as it is.
        """

    @hookspec(firstresult=True)
    def queues(self, site: Site) -> Command | NotOffered:
        """The command that tells which queues there are, with their limits and states."""

    @hookspec(firstresult=True)
    def parse_queues(self, result: CommandResult, site: Site) -> Sequence[Queue]:
        """The queues that `queues` told of, in its order.

        SubmitException, as `CommandResult.checked` raises it, if the system did not answer.
        """

    @hookspec(firstresult=True)
    def read_script(self, text: str, site: Site) -> ForeignScript | NotOffered:
        """What a submit script asks for that was written for this batch system, and not by jpsi.

        It is read as the submit command would read it, and nothing in it is run. `ScriptReader` helps. One
        without any directive was written for another.
        """

    @hookspec(firstresult=True)
    def make_engine(self, setup: EngineSetup) -> Engine | None:
        """An engine of the plugin's own, only where no command line serves; None for the core's."""


class LauncherHooks(Protocol):
    """What a launcher plugin implements (entry-point group `jpsi.launchers`).

    Its lines of shell find, besides what the job's own environment holds:

    - `$JPSI_JOB_ID`: jpsi's id of the job.
    - `$JPSI_NODEFILE`, and `$PSIJ_NODEFILE`, which is the same: a file with the name of a node on a line for
      each process, grouped by node, in the order of the ranks. It is there wherever there is more than one
      process. A job of one process has it on batch systems only, and runs without it, and without the
      variable, where it could not be written.
    - `$_jpsi_folder`, a private directory of the job for files that the launcher makes, whose names begin
      with that of the launcher.
    - `$_jpsi_log`, a file there that does not exist yet. What the lines write to it, they say themselves and
      not the job. If it exists at the end, and its last line is not `_PSI_J_LAUNCHER_DONE`, the launcher has
      failed: so has the job, with this text as its message.
    - `$_jpsi_stdin`, the absolute path of the file that is the job's standard input; `/dev/null` if there is
      none.

    These three are variables of the shell, and not of the environment. Others that begin with
    `_jpsi_` are not for plugins.
    """

    @hookspec
    def check_spec(self, spec: JobSpec) -> Iterable[str]:
        """Why this launcher can never launch `spec`; one sentence each."""

    @hookspec(firstresult=True)
    def launch(self, spec: JobSpec) -> Sequence[ShellLine]:
        """POSIX shell that runs every process of the job.

        The job's command line is in `"$@"`. The lines run in a subshell of their own, with the job's
        directory, environment and streams, and leave its exit code in `$?` at their end.
        """

    @hookspec(firstresult=True)
    def rank_variables(self) -> Sequence[str] | None:
        """Patterns, as of fnmatch, of the variables that the launcher gives each process: `PMI_*`.

        They reach the processes of a job that inherits no environment, too. None if there are none.
        """

    @hookspec(firstresult=True)
    def sources_scripts(self) -> bool | None:
        """Whether the lines source pre_launch and post_launch themselves, and open the streams of the job.

        Nobody else does it then. The lines find in `$_jpsi_pre_launch`, `$_jpsi_post_launch` (empty if there
        is none), `$_jpsi_stdin` (`/dev/null` if there is none), `$_jpsi_stdout` and `$_jpsi_stderr` what is
        to be sourced and opened, as absolute paths.
        """

    @hookspec(firstresult=True)
    def heterogeneous(self) -> bool | None:
        """Whether it launches jobs whose slots are of several kinds: `HeterogeneousResources`.

        A process starts in each slot, numbered through all components in their order. A launcher that does
        not say so is never asked about such a job.
        """


class ObserverHooks(Protocol):
    """What an observer implements (entry-point group `jpsi.observers`); overrides may implement it too."""

    @hookspec
    def status_changed(
        self, executor: str, job_id: str, native_id: str | None, spec: JobSpec | None, status: JobStatus
    ) -> None:
        """A job has got a new status.

        Called for every status of every job of the executor, in order, one call at a time, on a thread of
        jpsi's own; what it raises is logged and costs no job anything. The spec is not to be changed; it is
        None for a job that was attached to.
        """


class TransportHooks(Protocol):
    """What a transport plugin implements (entry-point group `jpsi.transports`, named by the URL's scheme)."""

    @hookspec(firstresult=True)
    def open_transport(self, url: str, config: ExecutorConfig, here: Transport) -> Transport:
        """A transport to where `url` points; it may connect later, when the first command is run.

        `here` runs commands on this machine, such as the client program of another.
        """


class EngineHooks(Protocol):
    """The hooks of what carries out jobs (entry-point group `jpsi.engines`, name `batch`)."""

    @hookspec(firstresult=True)
    def local_transport(self) -> Transport:
        """Return what runs commands on this machine."""

    @hookspec(firstresult=True)
    def batch_engine(self, setup: EngineSetup, hooks: ExecutorHooks) -> Engine:
        """Return the engine of an executor whose backend works by command lines."""

    @hookspec(firstresult=True)
    def process_engine(self, setup: EngineSetup) -> Engine:
        """Return an engine for processes of this machine."""

    @hookspec(firstresult=True)
    def open_files(self, transport: Transport) -> JobFiles:
        """Return the files of the machine on which the commands of a transport run."""
