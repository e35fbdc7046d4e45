"""The executor `local`: jobs are processes of the machine that this program runs on."""

from __future__ import annotations

from collections.abc import Iterator

from jpsi.plugin import (
    Capabilities,
    Engine,
    EngineSetup,
    ExecutorConfig,
    JobSpec,
    ResourceSpecV1,
    hookimpl,
)


@hookimpl
def config_class() -> type[ExecutorConfig]:
    return ExecutorConfig


@hookimpl
def capabilities() -> Capabilities:
    return Capabilities(default_launcher="multiple")


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    return list(_problems(spec))


def _problems(spec: JobSpec) -> Iterator[str]:
    if isinstance(spec.resources, ResourceSpecV1) and spec.resources.computed_node_count > 1:
        nodes = spec.resources.computed_node_count
        yield f"local is one machine, but the job needs {nodes} nodes"


@hookimpl
def make_engine(setup: EngineSetup) -> Engine | None:
    return setup.process_engine(setup) if setup.transport.is_local else None
