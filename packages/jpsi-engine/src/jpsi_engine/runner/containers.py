"""Turns the command of a job into commands that run it in a container, one for each runtime that may do it.

The runner chooses among them on the node: it takes the first whose program is on the PATH of the job. Its
working directory is the job's directory then, which the container shows at the same path.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from jpsi import escape
from jpsi.plugin import Bind, Command, ContainerHooks, ExecutorConfig, JobSpec, PluginError, word
from jpsi.plugin.engine import container_runtime, process_count
from jpsi_engine.runner.own_variables import JOB_ID
from jpsi_engine.verdict import CONTAINER, NOT_FOUND_CODE

# The value of `Container.runtime` that leaves the choice to the configuration, or to the node.
_AUTO = "auto"
#: The runtimes to choose from, those that need no service first.
RUNTIMES = ("apptainer", "singularity", "podman", "charliecloud", "docker")
_USER, _PLACE = "_jpsi_user", "_jpsi_here"
#: The variables of the runner's shell that stand for references in the words of a command.
STAND_INS: Mapping[str, str] = {"JPSI_USER": _USER, _PLACE: _PLACE}
# not ${PWD}, which the spec may set for the job
_HERE = f"${{{_PLACE}}}"


def container_commands(spec: JobSpec, config: ExecutorConfig) -> Sequence[Command]:
    """Return the commands that may run a valid job in its container, the best first; none without one.

    Raises:
        PluginError: the runtime is not installed.
        ValueError: no runtime can do what the container asks.
    """
    if spec.container is None:
        return ()
    own = {JOB_ID: f"${{{JOB_ID}}}"}
    passed = {name: f"${{{name}}}" for name, value in (spec.environment or {}).items() if value is not None}
    container = attrs.evolve(
        spec.container,
        binds=[Bind(_HERE, _HERE), *(spec.container.binds or ())],
        directory=spec.container.directory or _HERE,
        environment={**passed, **own, **(spec.container.environment or {})},
    )
    command = [escape(spec.executable or ""), *(spec.arguments or ())]
    runtime = spec.container.runtime if spec.container.runtime != _AUTO else config.container_runtime
    found, reasons = list[Command](), list[str]()
    for name in RUNTIMES if runtime is None else (runtime,):
        try:
            found.append(
                _hooks(name).run_container(
                    container=container,
                    command=command,
                    inherits=spec.inherit_environment,
                    user="${JPSI_USER}",
                )
            )
        except ValueError as e:
            reasons.append(str(e))
    if not found:
        raise ValueError("; ".join(reasons))
    return found


def container_problems(spec: JobSpec, config: ExecutorConfig) -> Iterator[str]:
    """Yield why no runtime can run a valid job in the container that it requests."""
    if spec.container is None:
        return
    if not spec.inherit_environment and process_count(spec.resources) > 1:
        # the variables of its rank reach a process by its environment alone
        yield "container: several processes need inherit_environment, as variables of a launcher number them"
    try:
        container_commands(spec, config)
    except (PluginError, ValueError) as e:
        yield f"container: {e}"


# finding plugins takes long
@functools.cache
def _hooks(runtime: str) -> ContainerHooks:
    return container_runtime(runtime)


def choose_command(commands: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines that put the command of the first runtime that is found into `"$@"`.

    Args:
        commands: the program of each runtime, and the words of shell of its command.
    """
    yield f"{_PLACE}=$PWD"
    if any(_USER in words for _, words in commands):
        yield f"{_USER}=$(/usr/bin/id -u):$(/usr/bin/id -g)"
    for number, (program, words) in enumerate(commands):
        yield f"{'el' if number else ''}if command -v -- {word(program)} >/dev/null; then"
        yield f"  set -- {words}"
    yield "else"
    yield f"  _jpsi_end {CONTAINER} {NOT_FOUND_CODE}"
    yield "fi"
