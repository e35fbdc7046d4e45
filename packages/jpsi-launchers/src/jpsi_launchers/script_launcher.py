"""A launcher that runs a launcher script of PSI/J."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line
from jpsi.plugin.engine import process_count


@attrs.frozen(slots=True)
class ScriptLauncher:
    """A launcher that runs one script, with the interface of PSI/J's launcher scripts.

    The arguments of the script are: the job's id, the path of a log file that it may append to, the paths of
    pre_launch and post_launch (empty if there are none), the paths of the job's standard input (`/dev/null`
    if there is none), output and error, the number of processes if `takes_count` is true, and then the job's
    command line. The script sources and opens these files itself, and exits with the job's exit code.

    If the last line that it prints is `_PSI_J_LAUNCHER_DONE`, the script has worked; if not, the job fails,
    and the end of its output is the message of the job's status. Its log is for people to read.

    If a batch system ends a job, TERM reaches the script and no other process.
    """

    #: The path of the script on the machines where jobs run.
    path: Path = attrs.field(converter=Path)
    #: The program that runs it; PSI/J's scripts are written for bash.
    interpreter: str = attrs.field(default="/bin/bash", kw_only=True)
    #: True if it takes the number of processes, before the command.
    takes_count: bool = attrs.field(default=False, kw_only=True)
    #: Patterns of the environment variables that it sets in each process.
    variables: Sequence[str] = attrs.field(default=(), converter=tuple, kw_only=True)

    @hookimpl
    def check_spec(self, spec: JobSpec) -> Iterable[str]:
        """Refuse a spec whose two streams are one file; see `LauncherHooks`."""
        if spec.stdout_path is not None and spec.stdout_path == spec.stderr_path:
            return ["a launcher script cannot write both streams to one file; give stderr_path another"]
        return []

    @hookimpl
    def launch(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Return lines that exec the script; see `LauncherHooks`."""
        script = line("exec", self.interpreter, str(self.path))
        count = f"{process_count(spec.resources)} " if self.takes_count else ""
        return [
            # the script has the job's umask, but its log must be private to the user
            ShellLine('( umask 077; true >"$_jpsi_log"; true >"$_jpsi_log".notes ) || :'),
            # its notes are separate from its output, and may come late
            ShellLine(f'{script} "$JPSI_JOB_ID" "$_jpsi_log".notes \\'),
            ShellLine('  "$_jpsi_pre_launch" "$_jpsi_post_launch" \\'),
            ShellLine('  "$_jpsi_stdin" "$_jpsi_stdout" "$_jpsi_stderr" \\'),
            ShellLine(f'  {count}"$@" </dev/null >"$_jpsi_log" 2>&1'),
        ]

    @hookimpl
    def rank_variables(self) -> Sequence[str]:
        """Return the configured variables; see `LauncherHooks`."""
        return self.variables

    @hookimpl
    def sources_scripts(self) -> bool:
        """Return True; see `LauncherHooks`."""
        return True
