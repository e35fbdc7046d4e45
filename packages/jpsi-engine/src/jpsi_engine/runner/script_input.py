"""The parts of an attempt of a job on which the runner's script depends.

The engines make a `Run` for each attempt, and the modules that render the script read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from jpsi.plugin import Command, JobSpec, ShellLine, word
from jpsi.plugin.engine import process_count
from jpsi_engine.runner.claim_and_markers import Frame
from jpsi_engine.runner.walltime_warning import WalltimeWarning
from jpsi_engine.spool import attempt_file
from jpsi_engine.transfer import Plan, staging_plan
from jpsi_engine.verdict import ENVIRONMENT_SETUP, PRE_LAUNCH, PROLOGUE

#: The variable of the runner's shell that holds the home directory on the host where the job runs.
HOME = "_jpsi_home"


@attrs.frozen(slots=True, kw_only=True)
class Run:
    """An attempt of a job, with everything on which its script depends."""

    job_id: str
    attempt: int
    #: The job's folder in the spool.
    folder: str
    #: The directory of markers.
    events: str
    #: The directory to run in; may start with `~/`.
    directory: str
    spec: JobSpec
    #: The lines of the launcher.
    launch: Sequence[ShellLine]
    #: Patterns of the names of the variables that the launcher sets for each process.
    rank_variables: Sequence[str] = ()
    #: Names of variables of the spec that those of the launcher do not replace.
    kept_variables: Sequence[str] = ()
    #: True if the launcher's lines source pre_launch and post_launch and open the streams.
    sources_scripts: bool = False
    #: The lines that print the name of the node of each process; empty if there is to be no node file.
    nodes: Sequence[ShellLine] = ()
    #: Lines that run before pre_launch.
    prologue: Sequence[str] = ()
    #: The parts that depend on the system that starts and ends the job.
    frame: Frame
    #: The commands that may run the job in its container, of which the runner takes the first that it finds.
    containers: Sequence[Command] = ()
    #: The files to stage in and out; by default all in the spec, fewer if the client does a part of that.
    plan: Plan = attrs.field()
    #: The signal that the job gets before the end of its walltime.
    warning: WalltimeWarning | None = None

    @plan.default
    def _default_plan(self) -> Plan:
        return staging_plan.plan(self.spec)

    @property
    def starts_processes(self) -> bool:
        """True if the launcher starts the processes one by one, and does not just run the job's command."""
        return bool(self.rank_variables) or self.needs_nodes

    @property
    def needs_nodes(self) -> bool:
        """True if the job has several processes: without a node file they could start on the wrong nodes.

        A single process runs where the batch system has put it.
        """
        return process_count(self.spec.resources) > 1

    @property
    def preparations(self) -> dict[str, str]:
        """The scripts to source before the launch: paths as words of shell, by phase."""
        scripts = {}
        if self.prologue:
            scripts[PROLOGUE] = word(self.file(PROLOGUE))
        if self.spec.environment_setup:
            scripts[ENVIRONMENT_SETUP] = word(self.file(ENVIRONMENT_SETUP))
        if self.spec.pre_launch is not None and not self.sources_scripts:
            scripts[PRE_LAUNCH] = script_word(self.spec.pre_launch)
        return scripts

    @property
    def post_launch(self) -> str | None:
        """The script to source after the launch, as a word of shell; None if there is none."""
        script = self.spec.post_launch
        return None if script is None or self.sources_scripts else script_word(script)

    @property
    def uses_home(self) -> bool:
        """True if a path begins with `~`, the home directory on the host where the job runs."""
        spec = self.spec
        streams = (spec.stdin_path, spec.stdout_path, spec.stderr_path)
        staged = (*(it.target for it in self.plan.stage_in), *(it.source for it in self.plan.stage_out))
        paths = (self.directory, *streams, spec.pre_launch, spec.post_launch, *staged, *self.plan.cleanup)
        sources = (it.partition(":")[2] for it in spec.environment_setup or ())
        return any(str(path).startswith("~") for path in (*paths, *sources))

    def file(self, name: str) -> str:
        """Return the path of a file of this attempt in the job's folder."""
        return attempt_file(self.folder, name, self.attempt)


def home_path_word(path: str) -> str:
    """Quote a path as one word of the runner's shell; a leading `~/` becomes the home directory.

    >>> print(home_path_word("~/my runs"), home_path_word("/tmp"), home_path_word("~user"))
    "$_jpsi_home"'/my runs' /tmp '~user'
    """
    if path == "~" or path.startswith("~/"):
        rest = path[1:]
        return f'"${HOME}"' + (word(rest) if rest else "")
    return word(path)


def script_word(script: Path) -> str:
    """Quote the path of a script to source as one word of the runner's shell."""
    # The `.` builtin would search PATH for a name without a slash, and take one that starts with - for an
    # option (XCU 2.14, dot).
    text = str(script)
    return home_path_word(text if script.is_absolute() or text.startswith("~") else f"./{text}")
