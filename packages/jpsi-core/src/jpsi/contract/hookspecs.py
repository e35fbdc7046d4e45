"""The hook specifications: every question that the core asks a plugin, as typed protocols.

Hooks take values and return values. They run no command, read no file, use no clock and never sleep, so that
any thread may call them and a test needs only strings. An implementation is a function decorated with
`hookimpl` that takes only the arguments it uses, by the names that they have in these protocols.

The native ids that a hook receives are never an empty collection, and each is one that `canonical_id`
accepts. The caller ignores what a hook returns about other ids.

The layers are called from the top: a result of the user's and the site's overrides takes precedence over the
backend's, and the backend's over the core's default. A hook returns None to pass the call to the next layer;
`NOT_OFFERED` is a result and ends the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import attrs
import pluggy

from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import ExecutorConfig
from jpsi.contract.engine import Engine, EngineSetup
from jpsi.contract.job_files import JobFiles
from jpsi.contract.observation import Failure, NotOffered, Observation, Queue
from jpsi.contract.shell import Script, ShellLine
from jpsi.contract.transport import Transport
from jpsi.model import Container, Dependency, DependencyKind, JobSpec, JobStatus

_T = TypeVar("_T")
#: The project name under which pluggy knows jpsi.
PROJECT = "jpsi"

#: Decorates the functions of a plugin that implement hooks.
hookimpl = pluggy.HookimplMarker(PROJECT)
_hookspec = pluggy.HookspecMarker(PROJECT)
# Marks a hook for which the results of all layers count; of the others, the first result does.
_of_all_layers = _hookspec


def _hooks(protocol: type[_T]) -> type[_T]:
    """Make the methods of a protocol hooks."""
    for name, function in vars(protocol).items():
        if not name.startswith("_") and not hasattr(function, f"{PROJECT}_spec"):
            _hookspec(firstresult=True)(function)
    return protocol


@attrs.frozen(slots=True, kw_only=True)
class Arrays:
    """The array jobs of a backend: many jobs submitted as one, with the indices 1, 2, 3 and so on."""

    #: The largest number of elements of an array.
    largest: int
    #: The variable from which a running element reads the native id of its array, in any spelling that all
    #: elements share. Several names are separated by blanks: the first that is set counts. A job with an
    #: index of its user that is no element has its own id in it, unless it inherits no environment.
    id_variable: str
    #: The variable from which a running element reads its index. A job with an index of its user has that in
    #: it, too.
    index_variable: str
    #: Other variables that tell an element how its array is numbered, each with the one that tells a job how
    #: the array of its user is: `JPSI_ARRAY_COUNT`, `_MIN`, `_MAX` or `_STEP`. Where a job has the latter,
    #: both have that value.
    range_variables: tuple[tuple[str, str], ...] = ()
    #: True if commands that start processes on other nodes read that variable; in a job of several processes
    #: it then stays as the batch system has set it.
    reads_index: bool = False
    #: For systems that give elements only their own ids: the two characters around the index. With `[]`,
    #: `17[3].server` is an element of `17[].server`, the id that all elements share.
    id_brackets: str = ""
    #: True if the batch system can limit how many elements run at a time: `SubmitContext.at_a_time`.
    limits: bool = False
    #: True if elements may have slots of several kinds; otherwise such jobs are submitted one by one.
    heterogeneous: bool = False
    #: True if a query about one element alone names it by its own id, and says so if it is unknown.
    names_elements: bool = False


@attrs.frozen(slots=True, kw_only=True)
class Capabilities:
    """The features of a backend, and the facts that the core needs to use it."""

    #: The launcher for jobs of several processes that name none.
    default_launcher: str
    #: The launcher for such jobs that need more than one node; empty if it is the same.
    nodes_launcher: str = ""
    #: The environment variable with the native id of a running job; empty if there is none. Several names are
    #: separated by blanks: the first that is set counts.
    id_variable: str = ""
    #: The environment variable that counts the requeues of a running job; unset means zero. Empty if none
    #: does: jpsi takes two runs with the same value as a sign that the batch system does not know the first.
    restart_variable: str = ""
    #: The largest number of native ids in one query; None if a query always lists all of the user's jobs.
    ids_per_query: int | None = 200
    #: The largest number of native ids in one accounting query; None if it is the same as for a query.
    ids_per_accounting: int | None = None
    #: Exit codes by which a job asks the batch system to requeue it.
    requeue_exit_codes: frozenset[int] = frozenset()
    #: The number of seconds within which the batch system shows every job: in its queue after the submission,
    #: in its accounting after the end. `attach` then concludes that an id that neither shows does not exist.
    #: None: the configured grace applies. Not needed if `parse_status` denies ids by `Observation.denied`.
    visible_within: float | None = None
    #: The kinds of dependency that the backend supports; a job with another kind is refused.
    dependencies: frozenset[DependencyKind] = frozenset()
    #: The custom attribute, an option without a value, that submits a job held; empty if there is none.
    hold_option: str = ""
    #: The array jobs of the backend; None if it has none.
    arrays: Arrays | None = None
    #: The largest number of separate jobs that one command submits, without arrays; see `submit_several`.
    jobs_per_submission: int = 1
    #: True if a job may have slots of several kinds, `HeterogeneousResources`; else hooks never receive it.
    heterogeneous: bool = False
    #: The unit of time limits, to which durations are rounded up.
    walltime_unit: timedelta = timedelta(seconds=1)


@attrs.frozen(slots=True, kw_only=True)
class Site:
    """The context of a hook call: the configuration, and the result of the probe."""

    #: An instance of the class that `config_class` returned.
    config: Any
    #: The result of `parse_probe`; empty before the first probe.
    offers: Mapping[str, Any] = attrs.field(factory=dict)


#: A placeholder for the tag of a submission that is not made yet; as long as a tag may be.
SOME_TAG = f"jpsi-00000000-0000-0000-0000-000000000000-{'0' * 18}"


@attrs.frozen(slots=True, kw_only=True)
class SubmitContext:
    """The facts about a submission that its spec does not hold."""

    site: Site
    job_id: str
    #: The text that the batch system must store with the job, so that the job can be found again: up to 60
    #: characters of A-Z, a-z, 0-9 and `-`, unique to this attempt.
    tag: str
    #: The dependencies on jobs of the same batch system, each by its native id. None of these jobs had ended
    #: a moment ago; jobs that had are left out.
    after: tuple[Dependency, ...] = ()
    #: The number of elements if the job is an array, whose native id `parse_submit` then returns; None for a
    #: single job. Only set if the backend has `Capabilities.arrays`.
    elements: int | None = None
    #: The largest number of them that run at a time; None means all. Only set if `Arrays.limits` is.
    at_a_time: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class ForeignScript:
    """The job that the directives of a script ask for, which was written for a batch system, not for jpsi."""

    #: The job without arguments. Its executable is the shell that the directives name, and its directory the
    #: one where the job runs, relative to the directory of the submission; None if they do not name one.
    spec: JobSpec
    #: The number of directives; a script without any was not written for this batch system.
    directives: int
    #: The lines that would be directives if they did not stand behind the first command.
    late_directives: tuple[str, ...] = ()
    #: The requests that the spec does not express, or expresses differently, one sentence each.
    lost: tuple[str, ...] = ()
    #: True if paths of streams are relative to the directory of the submission, wherever the job runs.
    is_output_here: bool = False
    #: Why the time limit of the script is no duration; empty if it is one, or if there is none.
    unread_limit: str = ""
    #: The variables from which the script reads the directory of its submission.
    directory_variables: tuple[str, ...] = ()


@_hooks
class ExecutorHooks(Protocol):
    """The hooks of an executor plugin (entry-point groups `jpsi.executors` and `jpsi.overrides`)."""

    def config_class(self) -> type[ExecutorConfig]:
        """Return the configuration class of this executor: `BatchConfig`, or a subclass with more fields."""

    def capabilities(self, site: Site) -> Capabilities:
        """Return the features of this backend."""

    def probe(self, site: Site) -> Command | NotOffered:
        """Return the command that finds out what this site's installation offers; run once per executor."""

    def parse_probe(self, result: CommandResult, site: Site) -> Mapping[str, Any]:
        """Read the output of `probe`; the result is `site.offers` for every later hook."""

    @_of_all_layers
    def check_spec(self, spec: JobSpec, site: Site) -> Iterable[str]:
        """Return why `spec`, which is valid in itself, can never run on this backend; one sentence each.

        All layers are called. Jobs that are submitted together may differ only in fields that `render_script`
        does not use; then a backend is called for the first job alone. If an override implements this hook,
        which may check any field, the hook is called for each job.
        """

    def render_script(self, spec: JobSpec, context: SubmitContext) -> Script:
        """Return the directives for `spec`; the core adds the line that runs the job.

        This hook must not use the fields that users choose freely (command, arguments, environment, streams,
        pre_launch), and neither must `submit` and `nodes`: for jobs that differ in nothing else the core
        calls these hooks once, and such jobs may become one array. ValueError, as `Directive.of` raises it,
        makes the job invalid.
        """

    def submit(self, script: Script, spec: JobSpec, context: SubmitContext) -> Command:
        """Return the command that submits `script.text`, preferably on its standard input.

        The command must unset variables of the caller that would override the script (`Command.unset`).
        """

    def parse_submit(self, result: CommandResult, context: SubmitContext) -> str:
        """Return the native id from the output of a submit command that returned 0 within the timeout.

        The command may have printed other text as well. ValueError if the output has no id: then the engine
        looks for the job by its tag.
        """

    def submit_several(
        self, scripts: Sequence[Script], spec: JobSpec, contexts: Sequence[SubmitContext]
    ) -> Command | NotOffered:
        """Return the command that submits several separate jobs, each with its own script and context.

        To the batch system the jobs differ only in their tags. Only called if
        `Capabilities.jobs_per_submission` is more than one. The core's default is NOT_OFFERED: such jobs are
        then submitted one by one.
        """

    def parse_submit_several(
        self, result: CommandResult, contexts: Sequence[SubmitContext]
    ) -> Mapping[str, str]:
        """Return the native ids, by tag, that a submit command printed which returned 0 within the timeout.

        The hook must not assign ids to jobs by their order, unless the batch system guarantees it. The engine
        looks for jobs that are left out by their tags, and for all of them if this hook raises ValueError.
        """

    def canonical_id(self, native_id: str, site: Site) -> str:
        """Return the one spelling of a native id that all other hooks use, whatever spelling the caller gave.

        ValueError if the text cannot be an id of this batch system: then no other hook receives it. This
        keeps out text that the batch system's commands would read differently, for example as several jobs.
        The hook is called often. The core's default returns the text unchanged.
        """

    def element_ids(self, native_id: str, indices: Sequence[int], site: Site) -> Sequence[str]:
        """Return the native ids of these elements of an array, in the order of the indices.

        Elements are cancelled, held and released by these ids, and the batch system's output is read by them;
        `canonical_id` must leave them unchanged. The core's default is `17[3]` for the third element of 17.
        """

    def arrays_of(self, native_ids: Sequence[str], site: Site) -> Mapping[str, str]:
        """Return, for those of these jobs that are elements of an array, the native id of the array.

        `query` receives arrays instead of their elements, so that an array is one name, whatever its size;
        `parse_status` receives the ids of the elements, and reports each of them, whether the output lists
        elements one by one or as ranges. The core's default: no job is an element.
        """

    def classify_failure(self, result: CommandResult, site: Site) -> Failure:
        """Return what the failure of a submit command means for the job; never called after a timeout.

        The command returned a code other than 0. A failure of `submit_several` is AMBIGUOUS if any of its
        jobs may have been submitted. The core's default is AMBIGUOUS, which costs time but never a job.
        """

    def find(self, tags: Sequence[str], site: Site) -> Command | NotOffered:
        """Return the one command that finds the jobs of the user that carry these tags."""

    def parse_find(self, result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
        """Return the native ids of the jobs that were found, by tag.

        SubmitException, as `CommandResult.checked` raises it, if the batch system did not answer.
        """

    def query(self, native_ids: Sequence[str] | None, site: Site) -> Command:
        """Return the one command that queries the states of these jobs, or of all jobs of the user for None.

        For None, the output may leave out jobs that have ended.
        """

    def parse_status(
        self, result: CommandResult, native_ids: Sequence[str] | None, site: Site
    ) -> Mapping[str, Observation]:
        """Return the observations in the output of `query`, by native id, for the jobs that it mentions.

        The native ids are those of the jobs in question, elements of arrays too, even if `query` listed all.

        SubmitException, as `CommandResult.checked` raises it, if the batch system did not answer: then the
        engine learns nothing. A truncated output counts as no answer: raise unless the beginning and the end
        that `query` requested (a header, a line of its own) are there and every line between them is
        understood. Skip text of the site before that beginning.

        Each observation says which job it is about: `Observation.tag`, and `submitted` where the batch system
        shows it. An output that reports some jobs as unknown is an answer: return `Observation.denied` for
        each job that it names so. For None, report each job under exactly one id, since jpsi counts them;
        an array may be reported beside its elements.
        """

    def query_finished(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """Return the one command that queries the accounting for jobs that have left the queue.

        Like `query`, it receives arrays instead of their elements, except as `Arrays.names_elements` says.
        """

    def parse_finished(
        self, result: CommandResult, native_ids: Sequence[str], site: Site
    ) -> Mapping[str, Observation] | NotOffered:
        """Return the observations in the output of `query_finished`; like `parse_status`.

        Return NOT_OFFERED if this user can never read the accounting on this system; raise SubmitException if
        the accounting does not answer now.
        """

    def cancel(self, native_ids: Sequence[str], site: Site, seen: Mapping[str, Observation]) -> Command:
        """Return the command that ends these jobs, pending or running.

        `seen` has the observations of a poll a moment before, for the jobs that it listed: they carried their
        tags then. If the command has options that restrict it to jobs of a given user or name,
        use them.
        """

    def parse_cancel(self, result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, str]:
        """Return, by native id, why a job could not be cancelled; a job that has ended already is left out.

        The core's default: no errors if the command returned 0, otherwise the command's error for all jobs.
        """

    def hold(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """Return the command that keeps these pending jobs from starting."""

    def parse_hold(self, result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, str]:
        """Return, by native id, why a job could not be held; like `parse_cancel`."""

    def release(self, native_ids: Sequence[str], site: Site) -> Command | NotOffered:
        """Return the command that lets held jobs start again."""

    def parse_release(
        self, result: CommandResult, native_ids: Sequence[str], site: Site
    ) -> Mapping[str, str]:
        """Return, by native id, why a job could not be released; like `parse_cancel`."""

    def nodes(self, spec: JobSpec, site: Site) -> Sequence[ShellLine]:
        """Return POSIX shell that prints the node name of each process of the job, one per line.

        It runs at the beginning of the job, in the environment that the batch system provides. Its output,
        grouped by node and in the order of the ranks, becomes the file `$JPSI_NODEFILE`. If its exit code is
        not 0, or it prints nothing, a job of several processes fails, and a job of one process runs without
        that file. The core's default prints the name of the machine that it runs on, for every process.
        """

    def watch(self, site: Site) -> Command | NotOffered:
        """Return a command that prints lines about the user's jobs as they change, until it is ended.

        It should print a line now and then even if no job changes, so that it notices when its reader is
        gone. Its output is a hint: the engine polls the jobs that it names soon, and all others as usual.
        """

    def parse_event(self, line: str, site: Site) -> Sequence[str]:
        """Return the native ids of the jobs that a line of `watch` reports as changed."""

    def version(self, site: Site) -> Command | NotOffered:
        """Return the command that prints the version of the batch system, best without a query of its server.

        The first line with a digit is shown to users unchanged.
        """

    def queues(self, site: Site) -> Command | NotOffered:
        """Return the command that lists the queues, with their limits and states."""

    def parse_queues(self, result: CommandResult, site: Site) -> Sequence[Queue]:
        """Return the queues in the output of `queues`, in its order.

        SubmitException, as `CommandResult.checked` raises it, if the batch system did not answer.
        """

    def read_script(self, text: str, site: Site) -> ForeignScript | NotOffered:
        """Return what a submit script asks for that was written for this batch system, and not by jpsi.

        The script is read as the submit command would read it; nothing in it is run. `ScriptForm` helps. A
        script without any directive was written for another batch system.
        """

    def make_engine(self, setup: EngineSetup) -> Engine | None:
        """Return an engine of the plugin's own if the backend has no command line; None uses the core's."""


@_hooks
class LauncherHooks(Protocol):
    """The hooks of a launcher plugin (entry-point group `jpsi.launchers`).

    The launcher's shell lines can use these variables, besides the job's own environment:

    - `$JPSI_JOB_ID`: jpsi's id of the job.
    - `$JPSI_NODEFILE`, and `$PSIJ_NODEFILE`, which is the same: a file with one node name per line for each
      process, grouped by node, in the order of the ranks. It always exists for more than one process. A job
      of one process has it on batch systems only; if it could not be written, the job runs without the file
      and without the variable.
    - `$_jpsi_folder`: a private directory of the job for the launcher's files, named after the launcher.
    - `$_jpsi_log`: a file in that directory that does not exist yet. The lines write their own messages to
      it, not those of the job. If it exists at the end, and its last line is not `_PSI_J_LAUNCHER_DONE`, the
      launcher has failed: the job then fails with this text as its message.
    - `$_jpsi_stdin`: the absolute path of the file for the job's standard input; `/dev/null` if none is.

    The last three are shell variables and not in the environment. Plugins must not use other variables that
    begin with `_jpsi_`.
    """

    @_of_all_layers
    def check_spec(self, spec: JobSpec) -> Iterable[str]:
        """Return why this launcher can never launch `spec`, whatever its arguments; one sentence each."""

    def launch(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Return POSIX shell that runs every process of the job.

        The job's command line is in `"$@"`. The lines run in a subshell of their own, with the job's
        directory, environment and streams, and must leave the job's exit code in `$?`. The hook is called
        once for several jobs that differ in their arguments alone.
        """

    def rank_variables(self) -> Sequence[str] | None:
        """Return patterns, as for fnmatch, of the variables that the launcher sets in each process: `PMI_*`.

        These variables also reach the processes of a job that inherits no environment; None for none.
        """

    def sources_scripts(self) -> bool | None:
        """Return True if the lines source pre_launch and post_launch themselves, and open the job's streams.

        The job's runner then does neither. The lines find the files to source and to open, as absolute paths,
        in `$_jpsi_pre_launch`, `$_jpsi_post_launch` (empty if there is none), `$_jpsi_stdin` (`/dev/null` if
        there is none), `$_jpsi_stdout` and `$_jpsi_stderr`.
        """

    def heterogeneous(self) -> bool | None:
        """Return True if it launches jobs whose slots are of several kinds: `HeterogeneousResources`.

        A process starts in each slot, numbered through all components in their order. A launcher that does
        not return True never receives such a job.
        """


@_hooks
class ContainerHooks(Protocol):
    """The hook of a container runtime (entry-point group `jpsi.containers`, named by the runtime)."""

    def run_container(
        self,
        container: Container,
        command: Sequence[str],
        inherits: bool,  # noqa: FBT001  hooks are called by keywords
        user: str,
    ) -> Command:
        """Return the command that runs `command` in a container, with its streams, and exits with its code.

        The first word is the runtime's program. In the words and in the environment, `${NAME}` is replaced
        where the job runs, as in arguments. ValueError if the runtime cannot do what the container asks.

        Args:
            container: the container, which shows all binds that the job needs.
            command: the program and its arguments; empty for the command of the image.
            inherits: True if the program gets the environment of the command as well; it then shares the
                network with the host. False if it sees as little of the host as possible.
            user: the numbers of the user and the group that run the job, with a colon between them.
        """


@_hooks
class ObserverHooks(Protocol):
    """The hooks of an observer (entry-point group `jpsi.observers`); overrides may implement them, too."""

    @_of_all_layers
    def status_changed(
        self, executor: str, job_id: str, native_id: str | None, spec: JobSpec | None, status: JobStatus
    ) -> None:
        """Receive a new status of a job.

        Called for every status of every job of the executor, in order, one call at a time, on a thread of
        jpsi; an exception is logged and affects no job. The hook must not change the spec, which is None for
        an attached job.
        """


@_hooks
class TransportHooks(Protocol):
    """The hook of a transport plugin (entry-point group `jpsi.transports`, named by the URL's scheme)."""

    def open_transport(self, url: str, config: ExecutorConfig, here: Transport) -> Transport:
        """Return a transport to the host that `url` names; it may connect later, with the first command.

        `here` runs commands on this machine, such as a client program that connects to the remote host.
        """


@_hooks
class EngineHooks(Protocol):
    """The hooks of the distribution that runs jobs (entry-point group `jpsi.engines`, name `batch`)."""

    def local_transport(self) -> Transport:
        """Return the transport that runs commands on this machine."""

    def batch_engine(self, setup: EngineSetup, hooks: ExecutorHooks) -> Engine:
        """Return the engine for an executor whose backend has a command line."""

    def process_engine(self, setup: EngineSetup) -> Engine:
        """Return an engine for processes of this machine."""

    def open_files(self, transport: Transport) -> JobFiles:
        """Return the files of the machine on which the commands of a transport run."""
