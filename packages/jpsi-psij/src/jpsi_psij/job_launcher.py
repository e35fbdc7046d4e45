"""Launchers as psij has them: commands that start the processes of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import jpsi
from jpsi.plugin import word

from .job import Job
from .job_executor_config import JobExecutorConfig
from .job_spec import spec_for_jpsi

# The variables of jpsi's runner that the lines of a launcher use, and a log that need not be kept.
_PRELUDE = """\
_jpsi_folder=$(mktemp -d) || exit 1
_jpsi_log=$_jpsi_folder/log
_jpsi_stdin=/dev/null
_jpsi_launch() {
"""
_END = """
}
(_jpsi_launch "$@")
_jpsi_code=$?
rm -rf "$_jpsi_folder"
exit "$_jpsi_code\""""


class Launcher:
    """A launcher of jpsi."""

    DEFAULT_LAUNCHER_NAME: ClassVar[str] = "single"
    #: The launcher's name in a subclass for one launcher.
    NAME: ClassVar[str] = DEFAULT_LAUNCHER_NAME
    _classes: ClassVar[dict[str, type[Launcher]]] = {}

    def __init_subclass__(cls) -> None:
        """Have `get_instance` find the subclass by its name."""
        if "NAME" in vars(cls):  # not a class that a program derives
            Launcher._classes[cls.NAME] = cls

    def __init__(
        self,
        config: JobExecutorConfig | None = None,
        *,
        name: str | None = None,
        version_constraint: str | None = None,
    ) -> None:
        """Load the launcher; raise ValueError if there is none of this name."""
        self.config = config or JobExecutorConfig.DEFAULT
        try:
            self._launcher = jpsi.Launcher.get_instance(name or self.NAME, version_constraint)
        except (jpsi.PluginError, jpsi.ConfigError) as e:
            raise ValueError(str(e)) from e

    @staticmethod
    def get_instance(
        name: str, version_constraint: str | None = None, config: JobExecutorConfig | None = None
    ) -> Launcher:
        """Return a launcher by its name; raise ValueError if there is none."""
        return Launcher._classes.get(name, Launcher)(config, name=name, version_constraint=version_constraint)

    @staticmethod
    def get_launcher_names() -> set[str]:
        """Return the names of the installed launchers."""
        return {it.name for it in jpsi.plugins() if it.kind == "launcher" and it.chosen}

    @property
    def name(self) -> str:
        """The launcher's name."""
        return self._launcher.name

    def get_launch_command(self, job: Job, log_file: str | None = None) -> list[str]:  # noqa: ARG002  psij's
        """Return the command that starts the processes of a job, within its allocation.

        The command opens the streams of the spec and sources neither pre_launch nor post_launch.

        Raises:
            InvalidJobException: the launcher cannot start the job.
        """
        if job.spec is None or job.spec.executable is None:
            raise jpsi.InvalidJobException(f"job {job.id} has no executable")
        spec = spec_for_jpsi(job.spec, "local")
        hooks = self._launcher.hooks
        # each layer has its own list
        if problems := [it for found in hooks.check_spec(spec=spec) for it in found]:
            subject = f"job {job.id}"
            raise jpsi.InvalidJobException.of(subject, problems)
        opened = "".join(
            f"exec {operator}{word(str(path))} || exit 1\n"
            for operator, path in (("<", spec.stdin_path), (">", spec.stdout_path), ("2>", spec.stderr_path))
            if path is not None
        )
        lines = "\n".join(hooks.launch(spec=spec))
        arguments: Sequence[str] = job.spec.arguments or ()
        script = f"{opened}{_PRELUDE}{lines}{_END}"
        return ["/bin/sh", "-c", script, self.name, job.spec.executable, *map(str, arguments)]

    def is_launcher_failure(self, output: str) -> bool:
        """Return True if the output of the launcher, not that of the job, says that it failed."""
        return bool(output) and output.rstrip().rpartition("\n")[2] != "_PSI_J_LAUNCHER_DONE"

    def get_launcher_failure_message(self, output: str) -> str:
        """Return what the launcher said about its failure."""
        return output
