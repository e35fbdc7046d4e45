"""The needs of a job, the reasons why no pilot could ever run it, and the nodes of its processes.

Hooks refuse by it, at submission, a job that would wait in the agent's queue for ever.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta

from jpsi.plugin import (
    JobAttributes,
    JobSpec,
    Script,
    ShellLine,
    Site,
    custom_options,
    hookimpl,
    resources,
    units,
    walltime,
)

from ..config import PilotConfig
from ..protocol import Need, Settings

_SECOND = timedelta(seconds=1)
_RETRY_OPTION = "retry_on_pilot_loss"

# Spreads processes evenly; the first nodes get one more where the numbers do not divide, as Flux does it.
_SPREAD = """\
for node in $JPSI_PILOT_NODES; do
  count=$(((left + nodes - 1) / nodes))
  left=$((left - count))
  nodes=$((nodes - 1))
  while [ "$count" -gt 0 ]; do
    echo "$node"
    count=$((count - 1))
  done
done"""


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> Iterator[str]:
    """Yield the reasons why no pilot could ever run this job, one sentence each."""
    config: PilotConfig = site.config
    yield from _check_size(spec, config)
    yield from _check_duration(spec, config)
    for name in JobAttributes.text_names():
        if getattr(spec.attributes, name) is not None:
            yield f"a job in a pilot has no {name}; set that of the pilots in the configuration"
    for option, value in custom_options(spec, "pilot").items():
        if option != _RETRY_OPTION:
            yield f"custom attribute pilot.{option} is not known; there is pilot.{_RETRY_OPTION}"
        elif not isinstance(value, bool):
            yield f"custom attribute pilot.{_RETRY_OPTION} must be True or False, not {value!r}"


@hookimpl
def render_script() -> Script:
    """Return a script without directives: the request carries the job's needs beside the script."""
    return Script([])


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine] | None:
    """Return shell that prints the node of each process; None if all are on the node that runs the shell."""
    requested = resources(spec)
    if requested.computed_node_count == 1:
        return None
    numbers = f"left={requested.computed_process_count} nodes={requested.computed_node_count}"
    return [ShellLine(line) for line in (numbers, *_SPREAD.splitlines())]


def job_need(spec: JobSpec, config: PilotConfig) -> Need:
    """Return the resources that a valid job takes on each of its nodes."""
    requested = resources(spec)
    nodes = requested.computed_node_count
    seconds = walltime(spec, config, _SECOND) or 0
    if requested.exclusive_node_use:
        cores, gpus, memory = config.cores_per_node, config.gpus_per_node, config.memory_per_node or 0
        return Need(nodes=nodes, cores=cores, gpus=gpus, memory=memory, seconds=seconds)
    # on several nodes, the need of the fullest one
    processes = requested.computed_process_count if nodes == 1 else requested.computed_processes_per_node
    return Need(
        nodes=nodes,
        cores=processes * (requested.cpu_cores_per_process or 1),
        gpus=processes * (requested.gpu_cores_per_process or 0),
        memory=math.ceil((requested.memory or 0) / nodes),
        seconds=seconds,
    )


def is_retried(spec: JobSpec, config: PilotConfig) -> bool:
    """Return True if a valid job runs again after the loss of its pilot."""
    return bool(custom_options(spec, "pilot").get(_RETRY_OPTION, config.retry_on_pilot_loss))


def pilot_settings(config: PilotConfig) -> Settings:
    """Return the settings of the pilots for jobs of this executor."""
    return Settings(
        target=config.target.lower(),
        engine=config.engine,
        max_pilots=config.max_pilots,
        nodes=config.nodes_per_pilot,
        cores=config.cores_per_node,
        gpus=config.gpus_per_node,
        memory=config.memory_per_node,
        walltime=units(config.walltime, _SECOND),
        margin=units(config.margin, _SECOND),
        idle=config.idle_time.total_seconds(),
        kill_delay=config.kill_delay.total_seconds(),
        shared=config.shared,
        queue_name=config.queue_name,
        project_name=config.project_name,
        startup=config.startup,
        launcher=config.launcher,
        interface=config.interface,
    )


def _check_size(spec: JobSpec, config: PilotConfig) -> Iterator[str]:
    need = job_need(spec, config)
    if need.nodes > config.nodes_per_pilot:
        yield f"the job needs {need.nodes} nodes, and a pilot has {config.nodes_per_pilot}"
    if need.cores > config.cores_per_node:
        yield f"the job needs {need.cores} cores, and a pilot has {config.cores_per_node} on a node"
    if need.gpus > config.gpus_per_node:
        yield f"the job needs {need.gpus} GPUs, and a pilot has {config.gpus_per_node} on a node"
    if config.memory_per_node is not None and need.memory > config.memory_per_node:
        has = config.memory_per_node
        yield f"the job needs {need.memory} bytes of memory, and a pilot has {has} on a node"


def _check_duration(spec: JobSpec, config: PilotConfig) -> Iterator[str]:
    seconds = walltime(spec, config, _SECOND)
    if seconds is None:
        yield f"the job has no time limit, and jobs can run in a pilot for {config.walltime}"
    elif timedelta(seconds=seconds) > config.walltime:
        limit = timedelta(seconds=seconds)
        yield f"the job may run for {limit}, and jobs can run in a pilot for {config.walltime}"
