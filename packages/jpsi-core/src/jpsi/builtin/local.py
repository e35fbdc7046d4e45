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
    for name in ("stage_in", "stage_out", "cleanup"):
        if getattr(spec, name):
            yield f"{name} is not offered by this version of the executor local"


@hookimpl
def make_engine(setup: EngineSetup) -> Engine | None:
    return setup.process_engine(setup) if setup.is_local else None
