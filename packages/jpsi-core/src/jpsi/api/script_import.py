"""Converts a submit script that was written for a batch system into a job, for `jpsi.read_script`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from jpsi.contract import ForeignScript, Site, default_walltime
from jpsi.layers import Assembly, assemble, plugins
from jpsi.model import InvalidJobException, JobAttributes, JobSpec, PluginError, ResourceSpecV1, escape

_MARK = "#!"
# Without it, the default launcher would start the script once for each process.
_ONCE = "single"


@attrs.frozen(slots=True, kw_only=True)
class Conversion:
    """A submit script as a job of jpsi."""

    #: The executor for which it was written.
    executor: str
    #: The job: it runs the script unchanged, with the requests of its directives.
    spec: JobSpec
    #: The requests that are lost or changed, one sentence each.
    lost: tuple[str, ...]
    #: The other executors that understand the script.
    others: tuple[str, ...] = ()


def read_script(
    text: str, path: str | os.PathLike[str], directory: str | os.PathLike[str], executor: str | None = None
) -> Conversion:
    """Convert a submit script for a batch system, such as one with `#SBATCH` lines, into a job.

    The job runs the script from its path, with the interpreter that it names. Relative paths in it are
    relative to the directory, from which it would be submitted. Without an executor or a configured target,
    the executor is the one that understands its directives; of several, the one that converts most of them.

    Raises:
        InvalidJobException: It has no directives of that executor, or of any installed one.
        PluginError: There is no such executor.
        ConfigError: The configuration is wrong.
    """
    found = (
        (it, it.hooks.read_script(text=text, site=Site(config=it.config))) for it in _executors(executor)
    )
    scripts = [(it, script) for it, script in found if isinstance(script, ForeignScript)]
    readings = [(it, script) for it, script in scripts if script.directives]
    readings.sort(key=lambda it: (len(it[1].lost), it[0].candidate.canonical))
    if not readings:
        late = [(it, script) for it, script in scripts if script.late_directives]
        if late:
            what = _describe_late(*max(late, key=lambda it: len(it[1].late_directives)))
            raise InvalidJobException(f"{os.fspath(path)}: {what}; move what you mean above the commands")
        whose = "any executor that is installed" if executor is None else f"the executor {executor}"
        raise InvalidJobException(f"{os.fspath(path)} has no directives of {whose}")
    (assembly, script), *others = readings
    lost = script.lost
    if script.late_directives:
        lost = (*lost, _describe_late(assembly, script))
    limit = default_walltime(assembly.config)
    if script.unread_limit:
        lost = (*lost, f"the script's time limit may be wrong, as jpsi cannot read it: {script.unread_limit}")
    elif script.spec.attributes.duration is None and limit is not None:
        what = "the script sets no time limit: jpsi gives the job its own default, not that of the queue:"
        lost = (*lost, f"{what} {limit}")
    return Conversion(
        executor=assembly.candidate.canonical,
        spec=completed(script, text, Path(path), Path(directory)),
        lost=lost,
        others=tuple(it.candidate.canonical for it, _ in others),
    )


def _describe_late(assembly: Assembly, script: ForeignScript) -> str:
    count, name = len(script.late_directives), assembly.candidate.canonical
    what = f"{script.late_directives[0]!r} stands"
    if count > 1:
        what = f"{count} directives, such as {script.late_directives[0]!r}, stand"
    return f"{what} behind the first command, where {name} reads {'none' if count > 1 else 'no directive'}"


def completed(script: ForeignScript, text: str, path: Path, directory: Path) -> JobSpec:
    """Return the job that runs a script, with its requests, as if submitted from the directory."""
    spec = script.spec
    executable, *options = [spec.executable] if spec.executable else _interpreter(text)
    is_at_home = spec.directory is not None and spec.directory.parts[:1] == ("~",)
    submitted_from = dict.fromkeys(script.directory_variables, escape(str(directory)))
    base = directory if script.is_output_here else Path()
    return attrs.evolve(
        spec,
        executable=executable,
        arguments=[escape(it) for it in [*options, str(path)]],
        environment={**(spec.environment or {}), **submitted_from} or None,
        directory=spec.directory if is_at_home else directory / (spec.directory or ""),
        launcher=_ONCE,
        resources=None if spec.resources == ResourceSpecV1() else spec.resources,
        attributes=None if spec.attributes == JobAttributes() else spec.attributes,
        stdout_path=spec.stdout_path and base / spec.stdout_path,
        stderr_path=spec.stderr_path and base / spec.stderr_path,
    )


def _interpreter(text: str) -> list[str]:
    """Return the interpreter of a script, as the kernel finds it: a program, with one argument at most."""
    first = text.partition("\n")[0]
    words = first.removeprefix(_MARK).strip().split(maxsplit=1) if first.startswith(_MARK) else []
    return words or ["/bin/sh"]  # as a shell does, execve(2): Interpreter scripts


def _executors(name: str | None) -> Iterator[Assembly]:
    """Yield the named executor; without a name all that can be loaded, each under one of its names."""
    if name is not None:
        yield assemble(name)
        return
    seen: set[str] = set()
    for plugin in plugins():
        names = {plugin.name, *plugin.aliases}
        if plugin.kind == "executor" and plugin.chosen and not seen & names:
            try:
                found = assemble(plugin.name)
            except PluginError:
                # the error appears when a user asks for this executor
                continue
            seen |= names
            yield found
