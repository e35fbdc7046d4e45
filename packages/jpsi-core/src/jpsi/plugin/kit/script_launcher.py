"""A launcher that is one launcher script of PSI/J."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from jpsi.contract import ShellLine, hookimpl, line
from jpsi.model import JobSpec, process_count

# What the script is given before the command. Its notes are no part of what it says, and may come late.
_ARGUMENTS = (
    ('"$JPSI_JOB_ID"', '"$_jpsi_log".notes'),
    ('"$_jpsi_pre_launch"', '"$_jpsi_post_launch"'),
    ('"$_jpsi_stdin"', '"$_jpsi_stdout"', '"$_jpsi_stderr"'),
)


@attrs.frozen(slots=True)
class ScriptLauncher:
    """A launcher that is one script, with the interface that launcher scripts of PSI/J have.

    The script is run with these arguments: the job's id, the path of a log file that it may append to, the
    paths of pre_launch and post_launch (empty if there are none), the paths of the job's standard input
    (`/dev/null` if there is none), output and error, the number of processes if it takes that, and then the
    job's command line. It does everything that is to be done with them, and exits with the job's exit code.

    If the last line that it prints is `_PSI_J_LAUNCHER_DONE`, the script has worked; if not, the job fails,
    and the end of what it printed is the message of its status. What is in its log is for people to read.

    Where a batch system ends a job, TERM reaches the script, and nobody else.
    """

    #: Where the script is on the machines where jobs run.
    path: Path = attrs.field(converter=Path)
    #: What runs it; a script of PSI/J is one for bash.
    interpreter: str = attrs.field(default="/bin/bash", kw_only=True)
    #: Whether it is told the number of processes, before the command.
    takes_count: bool = attrs.field(default=False, kw_only=True)
    #: Patterns of the names of the variables that it gives each process.
    variables: Sequence[str] = attrs.field(default=(), converter=tuple, kw_only=True)

    @hookimpl
    def check_spec(self, spec: JobSpec) -> Iterable[str]:
        """Refuse what the script would write over; see `LauncherHooks`."""
        if spec.stdout_path is not None and spec.stdout_path == spec.stderr_path:
            return ["a launcher script cannot write both streams to one file; give stderr_path another"]
        return []

    @hookimpl
    def launch(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Become the script; see `LauncherHooks`."""
        script = line("exec", self.interpreter, str(self.path))
        first, *others = (" ".join(arguments) for arguments in _ARGUMENTS)
        count = f"{process_count(spec.resources)} " if self.takes_count else ""
        return [
            # it has the umask of the job, and what it is for is the user's alone
            ShellLine('( umask 077; true >"$_jpsi_log"; true >"$_jpsi_log".notes ) || :'),
            ShellLine(f"{script} {first} \\"),
            *(ShellLine(f"  {arguments} \\") for arguments in others),
            ShellLine(f'  {count}"$@" </dev/null >"$_jpsi_log" 2>&1'),
        ]

    @hookimpl
    def rank_variables(self) -> Sequence[str]:
        """Those that were named; see `LauncherHooks`."""
        return self.variables

    @hookimpl
    def sources_scripts(self) -> bool:
        """It does; see `LauncherHooks`."""
        return True
