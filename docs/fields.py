"""Writes reference/fields.md: what backends write for each field of a spec, as their own hooks say it.

    python docs/fields.py [--check]

It takes all backends, and jpsi-testing. With `--check` nothing is written, and a page that is not what
the backends say is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import jpsi_flux.hooks
import jpsi_gridengine.hooks
import jpsi_lsf.hooks
import jpsi_oar.hooks
import jpsi_pbs.openpbs
import jpsi_pbs.torque
import jpsi_slurm.hooks
from jpsi.plugin import (
    Dependency,
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    Site,
    SubmitContext,
)
from jpsi_testing import executor_hooks

PAGE = Path(__file__).parent / "reference" / "fields.md"
#: By the name of the executor: the plugin, and what is configured.
BACKENDS: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "slurm": (jpsi_slurm.hooks, {}),
    "pbs": (jpsi_pbs.openpbs.hooks, {}),
    "torque": (jpsi_pbs.torque.hooks, {}),
    "lsf": (jpsi_lsf.hooks, {}),
    "flux": (jpsi_flux.hooks, {}),
    "gridengine": (
        jpsi_gridengine.hooks,
        {
            "parallel_environment": "mpi-{slots}",
            "node_environment": "smp",
            "gpu_resource": "gpu",
            "gpu_type_resource": "gpu_model",
        },
    ),
    "oar": (jpsi_oar.hooks, {"gpu_resource": "gpu"}),
}
ATTRIBUTES = (
    'JobAttributes(queue_name="long")',
    'JobAttributes(project_name="proj1")',
    'JobAttributes(reservation_id="week7")',
    'JobAttributes(licenses="matlab:2,abaqus")',
    'JobAttributes(qos="high")',
    'JobAttributes(mail="begin,end:ann@example.org")',
    'JobAttributes(mail="fail:ann@example.org")',
    "JobAttributes(duration=timedelta(minutes=90))",
    "JobAttributes(duration=timedelta(0))",
    'JobAttributes(after=["4711"])',
    'JobAttributes(after=[Dependency("4711", "any")])',
    'JobAttributes(custom_attributes={"slurm.qos": "high", "pbs.l.software": "a", "lsf.sla": "x"})',
)
RESOURCES = (
    "ResourceSpecV1(process_count=8)",
    "ResourceSpecV1(node_count=2, processes_per_node=4)",
    "ResourceSpecV1.uneven(process_count=7, processes_per_node=4)",
    "ResourceSpecV1(process_count=8, cpu_cores_per_process=4)",
    "ResourceSpecV1(node_count=2, processes_per_node=4, gpu_cores_per_process=1)",
    "ResourceSpecV1(node_count=1, exclusive_node_use=True)",
    "ResourceSpecV1(node_count=2, memory=64 * 2**30)",
    "HeterogeneousResources([ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(node_count=2)])",
)
GPUS = "ResourceSpecV1(gpu_cores_per_process=2)"
EXAMPLES = (
    'JobSpec("solve", name="heat flow")',
    f'JobSpec("solve", resources={GPUS}, attributes=JobAttributes(gpu_type="a100"))',
    *(f'JobSpec("solve", attributes={attributes})' for attributes in ATTRIBUTES),
    *(f'JobSpec("solve", resources={resources})' for resources in RESOURCES),
)
NAMES = {
    "Dependency": Dependency,
    "HeterogeneousResources": HeterogeneousResources,
    "JobAttributes": JobAttributes,
    "JobSpec": JobSpec,
    "ResourceSpecV1": ResourceSpecV1,
    "timedelta": timedelta,
}
INTRODUCTION = """\
# What backends write, by example

*For: people who want to see the directives that jpsi writes.*

For each spec, what the backends tell their batch systems beyond what they tell of `JobSpec("solve")`. This
page is generated from them. [The table of fields](backends.md) describes the rest.

Grid Engine is configured here: {configured}.
Dependencies are native ids that the batch system knows."""


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    found = mistakes()
    print("".join(f"{mistake}\n" for mistake in found), end="")
    return 1 if found else 0


def mistakes() -> list[str]:
    """Why the page is not to be believed."""
    if PAGE.read_text(encoding="utf-8") == page():
        return []
    return ["docs/reference/fields.md is not what the backends say; run `python docs/fields.py`"]


def page() -> str:
    """The text of the page."""
    configured = ", ".join(f"`{name}: {value}`" for name, value in BACKENDS["gridengine"][1].items())
    parts = [INTRODUCTION.format(configured=configured), first(), *map(section, EXAMPLES)]
    return "\n\n".join(parts) + "\n"


def first() -> str:
    """Return the directives of any job."""
    rows = [f"| {name} | {code(lines(name, JobSpec('solve')))} |" for name in BACKENDS]
    return "\n".join(['## `JobSpec("solve")`\n', "| executor | |\n|---|---|", *rows])


def section(example: str) -> str:
    """Return the directives of one example by each backend."""
    spec: JobSpec = eval(example, NAMES)  # noqa: S307  those above
    rows = [f"| {name} | {difference(name, spec)} |" for name in BACKENDS]
    return "\n".join([f"## `{example}`\n", "| executor | |\n|---|---|", *rows])


def difference(name: str, spec: JobSpec) -> str:
    """Return the directives of a job beyond those of any job, or why the backend refuses it."""
    try:
        here = lines(name, spec)
    except ValueError as e:
        return f"*refused:* {e}"
    usual = lines(name, JobSpec("solve"))
    more = [it for it in here if it not in usual]
    less = [it for it in usual if it not in here]
    if more:
        return code(more)
    return f"*without* {code(less)}" if less else "*nothing*"


def lines(name: str, spec: JobSpec) -> list[str]:
    """The directives of a job.

    Raises:
        ValueError: the backend refuses it.
    """
    plugin, configured = BACKENDS[name]
    hooks = executor_hooks(plugin)
    site = Site(config=hooks.config_class()(**configured))
    after = tuple(map(Dependency.of, spec.attributes.after or ())) if spec.attributes else ()
    context = SubmitContext(site=site, job_id="ID", tag="jpsi-ID-1", after=after)
    offered = hooks.capabilities(site=site)
    if isinstance(spec.resources, HeterogeneousResources) and not offered.heterogeneous:
        msg = "a job has one kind of slot"
        raise ValueError(msg)
    problems = [problem for answer in hooks.check_spec(spec=spec, site=site) for problem in answer]
    problems += [f"no `{it.kind.value}` is offered" for it in after if it.kind not in offered.dependencies]
    if problems:
        raise ValueError("; ".join(problems))
    text = hooks.render_script(spec=spec, context=context).text
    return [line for line in text.splitlines() if line and not line.startswith("#!")]


def code(directives: Iterable[str]) -> str:
    """Lines in a cell of a table."""
    return "<br>".join(_cells(directives))


def _cells(directives: Iterable[str]) -> Iterator[str]:
    for directive in directives:
        yield f"`{directive}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
