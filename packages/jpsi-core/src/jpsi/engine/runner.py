"""The one runner: renders the POSIX shell script that carries out one attempt of one job.

The script claims the attempt, enters the directory, opens the streams, sets the environment, sources
pre_launch, launches, sources post_launch, and leaves the exit code as a marker. Whatever the scripts of
the user do to the shell they are sourced in, marker and exit code are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from jpsi.contract.shell import ShellLine, path_word, word
from jpsi.engine.runner_command import CommandLines
from jpsi.engine.runner_frame import SETUP_CODE, Frame
from jpsi.model.spec import JobSpec

#: Phases in which the runner can end, as they stand in the exit marker.
RAN = "run"
POST_LAUNCH = "post_launch"
PRE_LAUNCH = "pre_launch"
DIRECTORY = "directory"
STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"


@attrs.frozen(slots=True, kw_only=True)
class Run:
    """Everything that the script of one attempt depends on."""

    job_id: str
    attempt: int
    #: The job's folder in the spool.
    folder: str
    #: The directory of markers.
    events: str
    #: The directory to run in; may start with `~/`.
    directory: str
    spec: JobSpec
    #: What the launcher answered.
    launch: Sequence[ShellLine]
    #: What depends on who starts and ends the job.
    frame: Frame


def render(run: Run) -> str:
    """The text of the script.

    A pure function: the same attempt always gives the same text.
    """
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Run) -> Iterator[str]:
    yield "#!/bin/sh"
    yield f"# Attempt {run.attempt} of jpsi job {run.job_id}; the intent beside it says what was asked."
    mark = f"{run.events}/{run.job_id}.{run.attempt}"
    yield from run.frame.begin(mark, run.folder, run.attempt)
    if _mentions_home(run):
        # HOME may be one of the variables that the job is given.
        yield f"{_HOME}=${{HOME-}}"
    yield from _directory(run.spec, run.directory)
    yield from _streams(run)
    command = CommandLines(run.spec)
    yield from command.setup
    if run.spec.pre_launch is None and run.spec.post_launch is None:
        yield from command.before
        yield command.arguments
        yield from run.frame.launch(run.launch)
        yield from command.after
        yield f'_jpsi_end {RAN} "$_jpsi_code"'
    else:
        yield from _sourcing(run, command)


_HOME = "_jpsi_home"


def _mentions_home(run: Run) -> bool:
    spec = run.spec
    streams = (spec.stdin_path, spec.stdout_path, spec.stderr_path)
    paths = (run.directory, *streams, spec.pre_launch, spec.post_launch)
    return any(str(path).startswith("~") for path in paths)


def _path(path: str) -> str:
    return path_word(path, home=_HOME)


def _directory(spec: JobSpec, directory: str) -> Iterator[str]:
    target = _path(directory)
    if spec.create_directory:
        yield f"mkdir -p -- {target}"
    yield f"cd {target} || _jpsi_end {DIRECTORY} {SETUP_CODE}"


def _streams(run: Run) -> Iterator[str]:
    # Standard error stays the runner's own until the launch: a shell reports there what signals end.
    stdin, stdout = run.spec.stdin_path, run.spec.stdout_path
    yield _open("<", str(stdin or "/dev/null"), STDIN)
    yield _open(">", str(stdout or f"{run.folder}/{STDOUT}"), STDOUT)
    yield _open_stderr(run, ">", f"_jpsi_end {STDERR} {SETUP_CODE}")


def _open_stderr(run: Run, operator: str, otherwise: str) -> str:
    stdout, stderr = run.spec.stdout_path, run.spec.stderr_path
    if stderr is not None and stderr == stdout:
        return "exec 8>&1"
    path = _path(str(stderr or f"{run.folder}/{STDERR}"))
    return f"command exec 8{operator}{path} || {otherwise}"


def _open(operator: str, path: str, phase: str) -> str:
    # `command` keeps a failing redirection from ending the shell (POSIX XCU 2.8.1).
    return f"command exec {operator}{_path(path)} || _jpsi_end {phase} {SETUP_CODE}"


def _sourcing(run: Run, command: CommandLines) -> Iterator[str]:
    # The scripts may exit, trap, cd or set whatever they like: they do it in a subshell, and how far that
    # came, with what code, is in a file that the shell around it reads.
    phase = word(f"{run.folder}/phase.{run.attempt}")
    yield from run.frame.shelter(_sheltered(run, command, phase))
    yield f"{{ read -r _jpsi_phase _jpsi_known <{phase}; }} 2>/dev/null || :"
    # An exit in pre_launch, whatever its code, means that nothing was launched.
    yield f'if [ "${{_jpsi_phase:-{RAN}}}" = {PRE_LAUNCH} ] && [ "$_jpsi_code" -eq 0 ]; then'
    yield f"  _jpsi_code={SETUP_CODE}"
    yield "fi"
    yield f'_jpsi_end "${{_jpsi_phase:-{RAN}}}" "${{_jpsi_known:-$_jpsi_code}}"'


def _sheltered(run: Run, command: CommandLines, phase: str) -> Iterator[str]:
    yield "exec 2>&8"
    yield from run.frame.catch()
    if run.spec.pre_launch is not None:
        yield f"echo {PRE_LAUNCH} >{phase} || exit {SETUP_CODE}"
        yield from _source(run.spec.pre_launch)
        yield '[ "$1" -eq 0 ] || exit "$1"'
        yield "unset IFS"
        yield from run.frame.catch()
        yield f"command cd {_path(run.directory)} || exit {SETUP_CODE}"
        # what it did to descriptor 8 is its own affair
        yield _open_stderr(run, ">>", f"exit {SETUP_CODE}")
    yield f'_jpsi_end() {{ command echo "$1 $2" >{phase}; exit "$2"; }}'
    yield f"command echo {RAN} >{phase}"
    yield from command.before
    yield command.arguments
    yield "exec 2>/dev/null"
    yield from run.frame.launch(run.launch)
    yield from command.after
    if run.spec.post_launch is None:
        yield f'_jpsi_end {RAN} "$_jpsi_code"'
    else:
        yield f'command echo "{POST_LAUNCH} $_jpsi_code" >{phase}'
        yield "exec 2>&8"
        yield from _source(run.spec.post_launch)
        yield f'[ "$1" -ne 0 ] || command echo "{RAN} $_jpsi_code" >{phase}'
        yield 'exit "$_jpsi_code"'


def _source(script: Path) -> Iterator[str]:
    # A name without a slash would be looked up on PATH, one that starts with - be an option (XCU 2.14, dot).
    text = str(script)
    yield f". {_path(text if script.is_absolute() or text.startswith('~') else f'./{text}')}"
    yield 'set +aefuxvC -- "$?"'
