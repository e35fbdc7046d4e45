"""The executor `local`: jobs are processes of this machine, or of a remote host that a transport reaches.

On this machine, the local engine starts and follows them. On a remote host, these hooks do it by commands,
like those of any batch system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import attrs

from jpsi.plugin import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    ExecutorConfig,
    Failure,
    JobSpec,
    Observation,
    Script,
    SubmitContext,
    components,
    hookimpl,
    units,
    walltime,
)
from jpsi.plugin.engine import Engine, EngineSetup
from jpsi_engine import builtin
from jpsi_engine.builtin import remote_process_commands as commands

_SECOND = timedelta(seconds=1)
_SHELL = "/bin/sh"


@attrs.frozen(slots=True, kw_only=True)
class LocalConfig(BatchConfig):
    """The configuration of `local`."""

    #: The time limit of a job that asks for none; zero, the default, is no limit.
    default_duration: timedelta = timedelta(0)


@hookimpl
def config_class() -> type[ExecutorConfig]:
    """Return the class of the configuration of `local`."""
    return LocalConfig


@hookimpl
def capabilities() -> Capabilities:
    """Return what `local` offers: jobs with several kinds of slots, but no arrays and no dependencies."""
    return Capabilities(default_launcher="multiple", id_variable=commands.ID_VARIABLE, heterogeneous=True)


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    """Return why a job can never run here: it needs several nodes."""
    return list(_problems(spec))


def _problems(spec: JobSpec) -> Iterator[str]:
    nodes = max(it.computed_node_count for it in components(spec.resources))
    if nodes > 1:
        yield f"local is one machine, but the job needs {nodes} nodes"


@hookimpl
def make_engine(setup: EngineSetup) -> Engine | None:
    """Return the local engine on this machine; None on a remote host, where these hooks run the jobs."""
    return setup.process_engine(setup) if setup.transport.is_local else None


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return a native id in its only form; ValueError if the text is none."""
    return builtin.remote_process_output.IDS.canonical(native_id)


@hookimpl
def render_script() -> Script:
    """Return a script without directives, as there is no batch system to read them."""
    # no directives: there is no batch system to read them
    return Script([])


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """Return the command that starts a job as processes of the remote host."""
    config = context.site.config
    text = commands.render_start(
        script.text,
        context.tag,
        limit=walltime(spec, config, _SECOND) or 0,
        delay=units(config.kill_delay, _SECOND),
    )
    return Command([_SHELL, "-s"], stdin=text)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the native id of the job that was started; ValueError if the output has none."""
    return builtin.remote_process_output.parse_started(result)


@hookimpl
def classify_failure(result: CommandResult) -> Failure | None:
    """Return the failure if the job was certainly not started; None if it may have been."""
    return builtin.remote_process_output.parse_failure(result)


@hookimpl
def find() -> Command:
    """Return the command that lists the user's jobs with their tags."""
    return Command([_SHELL, "-s"], stdin=commands.render_listing())


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs that run with these tags."""
    return builtin.remote_process_output.parse_found(result, tags)


@hookimpl
def query(native_ids: Sequence[str] | None) -> Command:
    """Return the command that prints the state of some jobs; for None, of all that run."""
    if native_ids is None:
        return Command([_SHELL, "-s"], stdin=commands.render_listing())
    return Command([_SHELL, "-s", *native_ids], stdin=commands.render_query())


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return observations of the jobs that run, or whose end their leaders have recorded."""
    return builtin.remote_process_output.parse_observations(result, native_ids)


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """Return the command that signals jobs to end."""
    return Command([_SHELL, "-s", *native_ids], stdin=commands.render_cancel())


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return, by native id, why jobs could not be signalled."""
    return builtin.remote_process_output.parse_refused(result, native_ids)
