"""Makes a job of a submit script that was written for a batch system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from jpsi.contract import BatchConfig, ForeignScript, Site
from jpsi.layers import Assembly, assemble, plugins
from jpsi.model import InvalidJobException, JobAttributes, JobSpec, PluginError, ResourceSpecV1, escape

_EXECUTOR = "executor"
# What the kernel takes a script for that does not say what runs it; execve(2): Interpreter scripts.
_SHELL = "/bin/sh"
_MARK = "#!"
# Without it, the default launcher would start the script once for each process.
_ONCE = "single"


@attrs.frozen(slots=True, kw_only=True)
class Conversion:
    """What a submit script is to jpsi."""

    #: The executor that it was written for.
    executor: str
    #: The job: it runs the script as it is, with what its directives ask for.
    spec: JobSpec
    #: What is not carried over, or not as it was, one sentence each.
    lost: tuple[str, ...]
    #: The executors that read it as well.
    others: tuple[str, ...] = ()


def read_script(
    text: str, path: str | os.PathLike[str], directory: str | os.PathLike[str], executor: str | None = None
) -> Conversion:
    """The job that a submit script for a batch system describes, such as one with `#SBATCH` lines.

    Args:
        text: The script.
        path: Where it is: the job runs it from there, with the interpreter that it names.
        directory: From where it would be submitted; relative paths in it are relative to that.
        executor: The executor, or the configured target, that it was written for; None is the one that
            understands its directives, and if there are several, the one that can carry over most of them.

    Raises:
        InvalidJobException: It has no directives of that executor, or of none that is installed.
        PluginError: There is no such executor.
        ConfigError: The configuration is wrong.
    """
    readings = sorted(
        _readings(text, executor), key=lambda it: (len(it[1].lost), it[0].stack.candidate.canonical)
    )
    if not readings:
        whose = "any executor that is installed" if executor is None else f"the executor {executor}"
        msg = f"{os.fspath(path)} has no directives of {whose}"
        raise InvalidJobException(msg)
    (assembly, script), *others = readings
    return Conversion(
        executor=assembly.stack.candidate.canonical,
        spec=completed(script, text, Path(path), Path(directory)),
        lost=(*script.lost, *_without_limit(script.spec, assembly)),
        others=tuple(it.stack.candidate.canonical for it, _ in others),
    )


def completed(script: ForeignScript, text: str, path: Path, directory: Path) -> JobSpec:
    """The job that runs a script, as its directives ask for it.

    Args:
        script: what they ask for.
        text: the script itself.
        path: where it is.
        directory: from where it would be submitted.
    """
    spec = script.spec
    executable, *options = [spec.executable] if spec.executable else _interpreter(text)
    base = directory if script.is_output_here else None
    return attrs.evolve(
        spec,
        executable=executable,
        arguments=[escape(it) for it in [*options, str(path)]],
        directory=_directory(spec.directory, directory),
        launcher=_ONCE,
        resources=None if spec.resources == ResourceSpecV1() else spec.resources,
        attributes=None if spec.attributes == JobAttributes() else spec.attributes,
        stdout_path=_below(base, spec.stdout_path),
        stderr_path=_below(base, spec.stderr_path),
    )


def _below(base: Path | None, path: Path | None) -> Path | None:
    return path if base is None or path is None else base / path


def _directory(asked: Path | None, here: Path) -> Path:
    if asked is not None and (str(asked) == "~" or str(asked).startswith("~/")):
        return asked
    return here / (asked or "")


def _interpreter(text: str) -> list[str]:
    """What runs a script, as the kernel would find it: a program, with one argument at most."""
    first = text.partition("\n")[0]
    words = first.removeprefix(_MARK).strip().split(maxsplit=1) if first.startswith(_MARK) else []
    return words or [_SHELL]


def _readings(text: str, executor: str | None) -> Iterator[tuple[Assembly, ForeignScript]]:
    for assembly in _executors(executor):
        hooks = assembly.stack.hooks
        script = hooks.read_script(text=text, site=Site(config=assembly.config))
        if isinstance(script, ForeignScript) and script.directives:
            yield assembly, script


def _executors(name: str | None) -> Iterator[Assembly]:
    """The one that is asked for; else all of those that can be had, each by one of its names."""
    if name is not None:
        yield assemble(name, None, None, None)
        return
    seen: set[str] = set()
    for plugin in plugins():
        names = {plugin.name, *plugin.aliases}
        if plugin.kind == _EXECUTOR and plugin.chosen and not seen & names:
            try:
                found = assemble(plugin.name, None, None, None)
            except PluginError:
                # whoever needs it is told when asking for it
                continue
            seen |= names
            yield found


def _without_limit(spec: JobSpec, assembly: Assembly) -> Iterator[str]:
    asked = spec.attributes.duration
    if asked is None and isinstance(assembly.config, BatchConfig):
        limit = assembly.config.default_duration
        yield f"no time limit is asked for: jpsi does not leave it to the queue, and gives the job {limit}"
