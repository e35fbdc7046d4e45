"""Turns the command of a job into commands that run it in a container, one for each runtime that may do it.

The runner chooses among them on the node: it takes the first whose program is on the PATH of the job. Its
working directory is the job's directory then, which the container shows at the same path.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from jpsi import escape
from jpsi.plugin import Bind, Command, Container, ContainerHooks, ExecutorConfig, JobSpec, PluginError, word
from jpsi.plugin.engine import container_runtime, pieces, process_count
from jpsi_engine.runner.own_variables import JOB_ID, NODEFILES
from jpsi_engine.verdict import CONTAINER, NOT_FOUND_CODE, SETUP_CODE

# The value of `Container.runtime` that leaves the choice to the configuration, or to the node.
_AUTO = "auto"
#: The runtimes to choose from, those that need no service first.
RUNTIMES = ("apptainer", "singularity", "podman", "charliecloud", "docker")
_USER, _PLACE, _QUOTE = "_jpsi_user", "_jpsi_here", "_jpsi_quote"
#: The variables of the runner's shell that stand for references in the words of a command.
STAND_INS: Mapping[str, str] = {"JPSI_USER": _USER, _PLACE: _PLACE, _QUOTE: _QUOTE}
#: Begins the name in a reference that is empty if the variable is unset, also in the words of a command.
OR_EMPTY = "_jpsi_or_empty_"
# not ${PWD}, which the spec may set for the job
_HERE = f"${{{_PLACE}}}"
_QUOTED = re.compile(rf'"(\w+={re.escape(_HERE)})"')


def container_commands(spec: JobSpec, config: ExecutorConfig) -> Sequence[Command]:
    """Return the commands that may run a valid job in its container, the best first; none without one.

    Raises:
        PluginError: the runtime is not installed.
        ValueError: no runtime can do what the container asks.
    """
    if spec.container is None:
        return ()
    container, command = _filled_in(spec, spec.container)
    unset = [name for name, it in (spec.container.environment or {}).items() if it is None]
    fixed = [it for it in (spec.container.runtime, config.container_runtime) if it not in (_AUTO, None)]
    found, reasons = list[Command](), list[str]()
    for name in fixed[:1] or RUNTIMES:
        try:
            it = _hooks(name).run_container(
                container=container, command=command, inherits=spec.inherit_environment, user="${JPSI_USER}"
            )
            # podman before 4.1 takes the quotes of a field for a part of it
            quote = f"${{{_QUOTE}}}"
            argv = [_QUOTED.sub(rf"{quote}\1{quote}", text) for text in it.argv]
            found.append(attrs.evolve(it, argv=argv, unset=[*it.unset, *unset]))
        except ValueError as e:
            reasons.append(str(e))
    if not found:
        raise ValueError("; ".join(reasons))
    return found


def _filled_in(spec: JobSpec, container: Container) -> tuple[Container, list[str]]:
    """Return a job's container with the job's directory and variables, and the command to run in it."""
    set_by_spec = {it for it, value in (spec.environment or {}).items() if value is not None}
    passed = {JOB_ID, *set_by_spec.difference(NODEFILES)}
    variables = {**{name: f"${{{name}}}" for name in sorted(passed)}, **(container.environment or {})}
    arguments = spec.arguments or []
    if not spec.inherit_environment:
        # as without a container, those of the host are no variables of the job
        arguments = [_rename(it, lambda name: f"{'$' * (name not in passed)}${{{name}}}") for it in arguments]
    filled_in = attrs.evolve(
        container,
        binds=[Bind(_HERE, _HERE), *(container.binds or ())],
        directory=container.directory or _HERE,
        environment={name: it and _rename(it, _or_empty) for name, it in variables.items()},
    )
    return filled_in, [escape(spec.executable or ""), *arguments]


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


def _or_empty(name: str) -> str:
    return f"${{{OR_EMPTY}{name}}}"


def _rename(text: str, rename: Callable[[str], str]) -> str:
    """Return a text with what `rename` returns in place of each reference to a name.

    >>> _rename("a:${B}$${C}", "${{X{}}}".format)
    'a:${XB}$${C}'
    """
    return "".join(escape(it) if isinstance(it, str) else rename(it.name) for it in pieces(text))


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
    yield f"case $PWD in *[,[:cntrl:]]*) {_QUOTE}='\"' ;; *) {_QUOTE}= ;; esac"
    if any(_USER in words for _, words in commands):
        yield f"{_USER}=$(/usr/bin/id -u):$(/usr/bin/id -g)"
    for number, (program, words) in enumerate(commands):
        yield f"{'el' if number else ''}if command -v -- {word(program)} >/dev/null; then"
        if _QUOTE in words:
            yield f'  case $PWD in *\\"*) _jpsi_end {CONTAINER} {SETUP_CODE} ;; esac'
        yield f"  set -- {words}"
    yield "else"
    yield f"  _jpsi_end {CONTAINER} {NOT_FOUND_CODE}"
    yield "fi"
