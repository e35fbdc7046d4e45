"""One attempt of one job, as far as the runner's script depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from jpsi.plugin import JobSpec, ShellLine, word
from jpsi.plugin.engine import path_word, process_count
from jpsi_engine.runner.frame import Frame
from jpsi_engine.spool import file_of
from jpsi_engine.transfer import Plan, staging_plan
from jpsi_engine.verdict import PRE_LAUNCH, PROLOGUE

#: The variable of the runner's shell that holds the home directory of the machine.
HOME = "_jpsi_home"


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
    #: Patterns of the variables that the launcher gives each process.
    rank_variables: Sequence[str] = ()
    #: Whether the launcher's lines source pre_launch and post_launch and open the streams.
    sources_scripts: bool = False
    #: What prints the name of the node of each process, if there is to be a file of them.
    nodes: Sequence[ShellLine] = ()
    #: Lines that are run before pre_launch.
    prologue: Sequence[str] = ()
    #: What depends on who starts and ends the job.
    frame: Frame
    #: What the runner stages: what the spec says, unless somebody else does a part of that.
    plan: Plan = attrs.field()

    @plan.default
    def _planned(self) -> Plan:
        return staging_plan.plan(self.spec)

    @property
    def starts_processes(self) -> bool:
        """Whether the launcher starts processes as such, and does not just run the job's command."""
        return bool(self.rank_variables) or self.needs_nodes

    @property
    def needs_nodes(self) -> bool:
        """Whether the job has processes for other nodes, which would start on the wrong one without a file.

        One process is where the batch system has put it.
        """
        return process_count(self.spec.resources) > 1

    @property
    def preparations(self) -> dict[str, str]:
        """What is sourced before the launch: paths as words of shell, by phase."""
        found = {}
        if self.prologue:
            found[PROLOGUE] = word(self.file(PROLOGUE))
        if self.spec.pre_launch is not None and not self.sources_scripts:
            found[PRE_LAUNCH] = _script(self.spec.pre_launch)
        return found

    @property
    def post_launch(self) -> str | None:
        """What is sourced after the launch: a path as a word of shell."""
        script = self.spec.post_launch
        return None if script is None or self.sources_scripts else _script(script)

    @property
    def mentions_home(self) -> bool:
        """Whether a path is in the home directory of the machine."""
        spec = self.spec
        streams = (spec.stdin_path, spec.stdout_path, spec.stderr_path)
        staged = (*(it.target for it in self.plan.stage_in), *(it.source for it in self.plan.stage_out))
        paths = (self.directory, *streams, spec.pre_launch, spec.post_launch, *staged, *self.plan.cleanup)
        return any(str(path).startswith("~") for path in paths)

    def file(self, name: str) -> str:
        """The path of a file of this attempt in the job's folder."""
        return file_of(self.folder, name, self.attempt)


def at_home(path: str) -> str:
    """A path as a word of the runner's shell."""
    return path_word(path, home=HOME)


def _script(script: Path) -> str:
    # A name without a slash would be looked up on PATH, one that starts with - be an option (XCU 2.14, dot).
    text = str(script)
    return at_home(text if script.is_absolute() or text.startswith("~") else f"./{text}")
