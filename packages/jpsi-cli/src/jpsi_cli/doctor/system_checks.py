"""Queries the batch system of an executor for `jpsi doctor`: its programs, version, answers and accounting.

`examination` calls these functions, and turns their exceptions into facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jpsi import System
from jpsi.plugin import Command, JobSpec, NotOffered, SubmitContext, SubmitException
from jpsi.plugin.engine import SOME_TAG

# Prints the path of each program on a line of its own; the line is empty if the program is missing.
_WHICH = 'for it do command -v -- "$it" || echo; done'
_SHELL = "/bin/sh"
# Matches a script for `sh -c` that runs its $0.
_RUNS_ZERO = re.compile(r'(?:^|[;&|] *|\bexec )"\$0" ')
# The index of $0 in the arguments of such a command.
_ZERO = 3
# Prints the machine's name, and checks that the home directory can be written.
_CONNECTION_SCRIPT = """{
uname -n || exit
[ -n "${HOME-}" ] || exit 0
file=$HOME/.jpsi-$$
( umask 077; echo jpsi >"$file" )
code=$?
rm -f "$file"
exit $code
}
"""
# An id for commands that are only rendered, and not run.
_SOME_ID = "1"


def remote_host_name(system: System) -> str:
    """Return the name of the machine on which commands run.

    Raises:
        SubmitException: the user has no shell there, or cannot write to the home directory.
        TransportError: the machine could not be reached.
    """
    result = system.run(Command([_SHELL, "-s"], stdin=_CONNECTION_SCRIPT))
    if result.timed_out or result.returncode != 0:
        msg = f"there is no shell for you, or your home directory cannot be written: {result.complaint}"
        raise SubmitException(msg, transient=True)
    return " ".join(result.stdout.split())


def find_programs(system: System) -> Mapping[str, str | None]:
    """Return the programs that the backend calls, each with its path, or None if it is missing.

    Raises:
        TransportError: the machine on which they run could not be reached.
    """
    programs = (_program(command) for command in _commands(system))
    names = list(dict.fromkeys(program for program in programs if "/" not in program))
    if not names:
        return {}
    lines = system.run(Command([_SHELL, "-c", _WHICH, _SHELL, *names])).stdout.splitlines()
    paths = [line or None for line in lines[: len(names)]]
    return dict(zip(names, [*paths, *[None] * (len(names) - len(paths))], strict=True))


def read_version(system: System) -> str | None:
    """Return the batch system's version as it prints it; None if it does not say.

    Raises:
        TransportError: the command could not be run.
    """
    command = system.hooks.version(site=system.site())
    if isinstance(command, NotOffered):
        return None
    result = system.run(command)
    lines = (result.stdout + result.stderr).splitlines()
    return next((line.strip() for line in lines if re.search(r"[0-9]", line)), None)


def check_answer(system: System) -> None:
    """Raise unless the batch system answers a query for the jobs of the user.

    Raises:
        SubmitException: it does not answer.
        TransportError: the command could not be run.
    """
    if not system.has_commands:
        return
    site = system.site()
    result = system.query(system.hooks.query(native_ids=None, site=site))
    system.hooks.parse_status(result=result, native_ids=None, site=site)


def is_accounted(system: System, native_id: str) -> bool | None:
    """Return True if the accounting knows a job; None if there is no accounting to query.

    Raises:
        SubmitException: the accounting does not answer.
        TransportError: the command could not be run.
    """
    site, ids = system.site(), [native_id]
    command = system.hooks.query_finished(native_ids=ids, site=site)
    if isinstance(command, NotOffered):
        return None
    found = system.hooks.parse_finished(result=system.query(command), native_ids=ids, site=site)
    return None if isinstance(found, NotOffered) else native_id in found


def shows_end(system: System, native_id: str) -> bool:
    """Return True if the queue still shows a job that has ended, and how.

    Raises:
        SubmitException: the batch system does not answer.
        TransportError: the command could not be run.
    """
    site, ids = system.site(), [native_id]
    result = system.query(system.hooks.query(native_ids=ids, site=site))
    found = system.hooks.parse_status(result=result, native_ids=ids, site=site).get(native_id)
    return found is not None and found.final


def _commands(system: System) -> Iterator[Command]:
    """Yield one command of each kind that the backend makes; none of them is run."""
    if not system.has_commands:
        return
    hooks, site, ids = system.hooks, system.site(), [_SOME_ID]
    context, spec = SubmitContext(site=site, job_id=_SOME_ID, tag=SOME_TAG), JobSpec("/bin/true")
    script = hooks.render_script(spec=spec, context=context)
    yield hooks.submit(script=script, spec=spec, context=context)
    yield hooks.query(native_ids=None, site=site)
    yield hooks.cancel(native_ids=ids, site=site, seen={})
    for command in (
        hooks.find(tags=[SOME_TAG], site=site),
        hooks.query_finished(native_ids=ids, site=site),
        hooks.hold(native_ids=ids, site=site),
        hooks.release(native_ids=ids, site=site),
        hooks.version(site=site),
        hooks.queues(site=site),
    ):
        if not isinstance(command, NotOffered):
            yield command


def _program(command: Command) -> str:
    """Return the program that a command runs, directly or as $0 of a shell."""
    is_text = command.argv[:2] == (_SHELL, "-c") and len(command.argv) > _ZERO
    return command.argv[_ZERO if is_text and _RUNS_ZERO.search(command.argv[2]) else 0]
