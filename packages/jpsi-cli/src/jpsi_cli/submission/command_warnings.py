"""Warns of what was typed as users of a batch system or a shell do, and means something else to jpsi.

jpsi runs a command as it is: it ignores directives in a script, such as `#SBATCH`, takes shell text in one
word for the name of a program, and replaces no pattern in the path of a stream but `%a`. A script needs the
interpreter that it names.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

import jpsi
from jpsi.plugin import line, word

from .. import messages
from ..interpreters import describe_missing_interpreter, find_missing_interpreter, has_windows_end
from .job_spec import Options

# A comment whose first word is followed by an option, as a directive of any batch system.
_DIRECTIVE = re.compile(r"^#(?!!)\s?\S+\s+-", re.MULTILINE)
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh"}
# The builtins that only change the shell that runs them, and of which POSIX demands programs as well: RHEL,
# Fedora and macOS have these, which end at once.
_OWN_BUILTINS = frozenset(
    {"alias", "bg", "cd", "fg", "getopts", "hash", "read", "ulimit", "umask", "unalias", "wait"}
)
# All commands that a POSIX shell runs itself, and those that bash alone has.
_BUILTINS = _OWN_BUILTINS | frozenset(
    {".", ":", "break", "command", "continue", "eval", "exec", "exit", "export", "jobs", "readonly"}
    | {"return", "set", "shift", "times", "trap", "type", "unset"}
)
_BASH_BUILTINS = frozenset(
    {"builtin", "declare", "dirs", "disown", "let", "local", "popd", "pushd", "shopt", "source", "suspend"}
    | {"typeset"}
)
# Directives stand at the beginning of a script.
_CHARACTERS = 1 << 16


# sbatch(1), FILENAME PATTERN: those that jpsi does not replace.
_PATTERN = re.compile(r"%(?!a)[0-9]*[AabJjNnstux]")
# The second word of a time such as `2 hours`.
_UNIT = re.compile(r"s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?", re.IGNORECASE)


def warn_of_habits(
    command: Sequence[str], options: Options, spec: jpsi.JobSpec, executor: str | None
) -> None:
    """Warn of what jpsi takes otherwise than the user of a batch system may mean it, and say what to type.

    Args:
        command: the command as typed.
        options: the options as typed.
        spec: the job that they make.
        executor: the executor or target as typed.

    Raises:
        UsageError: the command is a mistake that cannot be executed either.
    """
    _warn_of_directives(command, spec, executor)
    _warn_of_interpreter(command, spec, executor)
    if (options.get("time") or options.get("t")) and command and _is_unit(command[0]):
        text = "a time is one word, such as 90s, 30m, 2h or 1d"
        if _has_this_environment(spec, executor):
            raise click.UsageError(f"{command[0]!r} is no program; {text}")
        messages.warning(f"{command[0]!r} is no program here; {text}")
    _refuse_builtin(command, spec, executor)
    if len(command) == 1 and len(command[0].split()) > 1 and shutil.which(command[0]) is None:
        messages.warning(
            f"{word(command[0])} is the name of one program; for a line of shell: sh -c {word(command[0])}"
        )
    for name in ("stdin", "stdout", "stderr"):
        path = str(options.get(name) or "")
        if found := _PATTERN.findall(path):
            stay = "stays as it is" if len(found) == 1 else "stay as they are"
            messages.warning(
                f"--{name}: jpsi replaces %a alone, the index in an array; "
                f"{' and '.join(found)} {stay} in {path}"
            )


def _warn_of_directives(command: Sequence[str], spec: jpsi.JobSpec, executor: str | None) -> None:
    """Warn if the command is a script whose directives jpsi ignores, and say how to convert them.

    Raises:
        UsageError: it cannot be executed as it was named either.
    """
    is_interpreted = len(command) > 1 and Path(command[0]).name in _SHELLS
    for file in command[is_interpreted : is_interpreted + 1]:
        path = (spec.directory or Path()) / file
        system = _find_system(path)
        if system is None:
            continue
        script = line(str(path), *command[is_interpreted + 1 :])
        submit = line("jpsi", "submit", "-x", executor or system, "-f", "job.yaml")
        way_out = f"jpsi convert {script} > job.yaml, then {submit}"
        is_program = os.access(path, os.X_OK) if "/" in file else shutil.which(file) is not None
        if not is_interpreted and not is_program and _has_this_environment(spec, executor):
            why = "not executable" if "/" in file else "in no directory of PATH"
            raise click.UsageError(
                f"{file} is {why}. To submit it with its directives of {system}: {way_out}"
            )
        messages.warning(
            f"{file} has directives of {system}, which jpsi ignores here. To submit it with them: {way_out}"
        )


def _warn_of_interpreter(command: Sequence[str], spec: jpsi.JobSpec, executor: str | None) -> None:
    """Warn if the command is a script whose interpreter does not exist where the job runs."""
    program = command[0] if command else ""
    if "/" not in program or spec.container is not None or _is_remote(executor):
        return
    directory = spec.directory or Path()
    interpreter = find_missing_interpreter(directory / program, directory)
    # the nodes of a batch system may have other interpreters, but none whose name ends so
    if interpreter is not None and (has_windows_end(interpreter) or _is_local(executor)):
        messages.warning(describe_missing_interpreter(program, word(str(directory / program)), interpreter))


def _refuse_builtin(command: Sequence[str], spec: jpsi.JobSpec, executor: str | None) -> None:
    """Raise if the command is a builtin of the shell; warn if the job finds, or may find, such a program."""
    if not command or command[0] not in _BUILTINS | _BASH_BUILTINS:
        return
    name = command[0]
    shell = "bash" if name in _BASH_BUILTINS else "sh"
    way_out = f"for a line of shell: {line(shell, '-c', f'{line(*command)} && ...')}"
    if shutil.which(name) is not None:
        if name in _OWN_BUILTINS:
            messages.warning(f"{name!r} has no effect outside a shell; {way_out}")
        return
    why = f"it is a builtin of the shell; {way_out}"
    if _has_this_environment(spec, executor):
        raise click.UsageError(f"there is no program {name!r}: {why}")
    messages.warning(f"there is no program {name!r} here: {why}")


def _is_unit(program: str) -> bool:
    return _UNIT.fullmatch(program) is not None and shutil.which(program) is None


def _has_this_environment(spec: jpsi.JobSpec, executor: str | None) -> bool:
    """Return True if a job finds the files and the PATH of this process, and no others."""
    if (
        not spec.inherit_environment
        or "PATH" in (spec.environment or ())
        or any((spec.environment_setup, spec.pre_launch, spec.stage_in, spec.container))
    ):
        return False
    return not any(it.url or "environment_setup" in it.defaults for it in _sections(executor))


def _sections(executor: str | None) -> Iterator[jpsi.Configured]:
    """Yield what is configured for any executor, which may be by any of its names, and for the target."""
    found = jpsi.configuration()
    yield from found.executors.values()
    if (target := found.targets.get(_name(executor))) is not None:
        yield target


def _name(executor: str | None) -> str:
    return (executor or jpsi.configuration().default_executor or "local").lower()


def _is_remote(executor: str | None) -> bool:
    """Return True if jobs may run on a remote host, which has other files."""
    return any(it.url for it in _sections(executor))


def _is_local(executor: str | None) -> bool:
    """Return True if jobs are processes of this machine."""
    target = jpsi.configuration().targets.get(_name(executor))
    return (_name(executor) if target is None else target.executor) == "local"


def _find_system(path: Path) -> str | None:
    """Return the executor that understands the directives of a script; None if there are none."""
    try:
        if not path.is_file():
            # reading a pipe or a terminal would take what the job is to read
            return None
        with path.open(encoding="utf-8") as opened:
            text = opened.read(_CHARACTERS)
    except (OSError, ValueError):
        return None
    if not _DIRECTIVE.search(text):
        # most programs need no search among all executors
        return None
    try:
        return jpsi.read_script(text, path, Path()).executor
    except jpsi.JpsiError:
        # also a plugin that the user did not ask for and that fails
        return None
