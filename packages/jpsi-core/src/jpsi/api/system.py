"""Facts about a batch system for people, such as versions and queues; job monitoring does not use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta

import attrs

from jpsi.contract import (
    SOME_TAG,
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    ExecutorHooks,
    NotOffered,
    Queue,
    ShownJob,
    Site,
    SubmitContext,
    Transport,
    line,
)
from jpsi.model import JobSpec, SubmitException

# Prints the path of each program on a line, which is empty for one that is not there.
_WHICH = 'for it do command -v -- "$it" || echo; done'
_SHELL = "/bin/sh"
# A text for `sh -c` that runs its $0, and the position of $0 in the command
_RUNS_ZERO = re.compile(r'(?:^|[;&|] *|\bexec )"\$0" ')
_ZERO = 3
# Prints the machine's name, and checks that the home directory can be written.
_REACHED = """{
uname -n || exit
[ -n "${HOME-}" ] || exit 0
file=$HOME/.jpsi-$$
( umask 077; echo jpsi >"$file" )
code=$?
rm -f "$file"
exit $code
}
"""
_SOME_ID = "1"
# The number of jobs in one command if the plugin sets no limit
_JOBS = 200


@attrs.frozen(slots=True, kw_only=True)
class System:
    """The batch system behind one executor. Each method queries it at once; any thread may call them."""

    _name: str
    _hooks: ExecutorHooks
    _transport: Transport
    _site: Callable[[], Site]
    #: True if the executor runs commands; an engine in this process, or for processes of this machine, does
    #: not.
    has_commands: bool

    @property
    def capabilities(self) -> Capabilities:
        """The features of the backend, including what the probe has found at the site so far."""
        return self._hooks.capabilities(site=self._site())

    @property
    def default_duration(self) -> timedelta | None:
        """The walltime of a job that asks for none; None if there is no such limit."""
        config = self._site().config
        return config.default_duration if isinstance(config, BatchConfig) else None

    @property
    def is_elsewhere(self) -> bool:
        """True if its commands run on a remote host."""
        return not self._transport.is_local

    def reached(self) -> str:
        """Return the name of the machine on which commands run.

        Raises:
            SubmitException: the user has no shell there, or cannot write to the home directory.
            TransportError: the machine could not be reached.
        """
        result = self._run(Command([_SHELL, "-s"], stdin=_REACHED))
        if result.timed_out or result.returncode != 0:
            msg = f"there is no shell for you, or your home directory cannot be written: {result.complaint}"
            raise SubmitException(msg, transient=True)
        return " ".join(result.stdout.split())

    def programs(self) -> Mapping[str, str | None]:
        """Return the programs that the backend calls, each with its path, or None if it is missing.

        Raises:
            TransportError: the machine on which they run could not be reached.
        """
        programs = (_program(command) for command in self._commands())
        names = list(dict.fromkeys(program for program in programs if "/" not in program))
        if not names:
            return {}
        lines = self._run(Command([_SHELL, "-c", _WHICH, _SHELL, *names])).stdout.splitlines()
        paths = [line or None for line in lines[: len(names)]]
        return dict(zip(names, [*paths, *[None] * (len(names) - len(paths))], strict=True))

    def version(self) -> str | None:
        """Return the batch system's version as it prints it; None if it does not say.

        Raises:
            TransportError: the command could not be run.
        """
        command = self._hooks.version(site=self._site())
        if isinstance(command, NotOffered):
            return None
        result = self._run(command)
        lines = (result.stdout + result.stderr).splitlines()
        return next((line.strip() for line in lines if re.search(r"[0-9]", line)), None)

    def check_answer(self) -> None:
        """Raise unless the batch system answers a query for the jobs of the user.

        Raises:
            SubmitException: it does not answer.
            TransportError: the command could not be run.
        """
        if not self.has_commands:
            return
        site = self._site()
        result = self._query(self._hooks.query(native_ids=None, site=site))
        self._hooks.parse_status(result=result, native_ids=None, site=site)

    def queues(self) -> Sequence[Queue]:
        """Return the queues, with their limits and states.

        Raises:
            SubmitException: the batch system does not offer queues, or does not answer.
            TransportError: the command could not be run.
        """
        site = self._site()
        command = self._hooks.queues(site=site)
        if isinstance(command, NotOffered):
            msg = f"the executor {self._name} has no queues"
            raise SubmitException(msg)
        return list(self._hooks.parse_queues(result=self._query(command), site=site))

    def shown_jobs(self, wanted: Mapping[str, tuple[str, str | None]]) -> Mapping[str, ShownJob]:
        """Return those jobs that the queue shows and that have not ended, by their ids.

        A job whose native id belongs to another job by now is left out.

        Args:
            wanted: the tag of each job, and its native id if it is known.

        Raises:
            SubmitException: the batch system does not answer.
            TransportError: the command could not be run.
        """
        site, limit = self._site(), self.capabilities.ids_per_query
        ids, size = list(wanted), limit or _JOBS
        found: dict[str, ShownJob] = {}
        for some in (ids[begin : begin + size] for begin in range(0, len(ids), size)):
            unnamed = [wanted[job_id][0] for job_id in some if wanted[job_id][1] is None]
            by_tag = self._find(unnamed, site) if unnamed else {}
            names = {job_id: wanted[job_id][1] or by_tag.get(wanted[job_id][0]) for job_id in some}
            native_ids = list(dict.fromkeys(filter(None, names.values())))
            if not native_ids:
                continue
            command = self._hooks.query(native_ids=None if limit is None else native_ids, site=site)
            seen = self._hooks.parse_status(result=self._query(command), native_ids=native_ids, site=site)
            for job_id, native_id in names.items():
                if native_id is None or native_id not in seen:
                    continue
                it = seen[native_id]
                if it.exists and not it.final and it.tag in {None, wanted[job_id][0]}:
                    command = self._hooks.cancel(native_ids=[native_id], site=site, seen={native_id: it})
                    text = None if command.stdin is not None else line(*command.argv)
                    found[job_id] = ShownJob(native_id=native_id, word=it.word, cancel_command=text)
        return found

    def _find(self, tags: Sequence[str], site: Site) -> Mapping[str, str]:
        command = self._hooks.find(tags=tags, site=site)
        if isinstance(command, NotOffered):
            return {}
        return self._hooks.parse_find(result=self._query(command), tags=tags, site=site)

    def is_accounted(self, native_id: str) -> bool | None:
        """Return True if the accounting knows a job; None if there is no accounting to query.

        Raises:
            SubmitException: the accounting does not answer.
            TransportError: the command could not be run.
        """
        site, ids = self._site(), [native_id]
        command = self._hooks.query_finished(native_ids=ids, site=site)
        if isinstance(command, NotOffered):
            return None
        found = self._hooks.parse_finished(result=self._query(command), native_ids=ids, site=site)
        return None if isinstance(found, NotOffered) else native_id in found

    def _commands(self) -> Iterator[Command]:
        """Yield one command of each kind that the backend makes; none of them is run."""
        if not self.has_commands:
            return
        site, ids = self._site(), [_SOME_ID]
        context, spec = SubmitContext(site=site, job_id=_SOME_ID, tag=SOME_TAG), JobSpec("/bin/true")
        script = self._hooks.render_script(spec=spec, context=context)
        yield self._hooks.submit(script=script, spec=spec, context=context)
        yield self._hooks.query(native_ids=None, site=site)
        yield self._hooks.cancel(native_ids=ids, site=site, seen={})
        for command in (
            self._hooks.find(tags=[SOME_TAG], site=site),
            self._hooks.query_finished(native_ids=ids, site=site),
            self._hooks.hold(native_ids=ids, site=site),
            self._hooks.release(native_ids=ids, site=site),
            self._hooks.version(site=site),
            self._hooks.queues(site=site),
        ):
            if not isinstance(command, NotOffered):
                yield command

    def _query(self, command: Command) -> CommandResult:
        """Run a command that the batch system must answer in time."""
        result = self._run(command)
        if result.timed_out:
            raise SubmitException(result.complaint, transient=True)
        return result

    def _run(self, command: Command) -> CommandResult:
        config = self._site().config
        timeout = config.command_timeout if isinstance(config, BatchConfig) else None
        return self._transport.run(attrs.evolve(command, timeout=command.timeout or timeout))


def _program(command: Command) -> str:
    """Return the program that a command runs, directly or as $0 of a shell."""
    is_text = command.argv[:2] == (_SHELL, "-c") and len(command.argv) > _ZERO
    return command.argv[_ZERO if is_text and _RUNS_ZERO.search(command.argv[2]) else 0]
