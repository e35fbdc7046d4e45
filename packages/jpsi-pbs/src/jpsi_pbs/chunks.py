"""Writes and reads the resources of jobs for PBS, as chunks: `-l select` and `-l place`.

Only the executor `pbs` uses it; the executor `torque` has `nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from jpsi.plugin import ResourceSpecV1, units
from jpsi.plugin.kit import Draft, JobRequest, Option, gpu_type, read_amount, read_count

from .custom_options import CUSTOM as QSUB_OPTIONS
from .custom_options import system_options
from .layout import NOT_EXPRESSIBLE, Part, lay_out, merge_kinds, set_resources, split_count
from .nodes import read_memory, read_nodes
from .sizes import UNITS

_KIBIBYTE = 1 << 10
_EXCLUSIVE_PLACES = frozenset({"excl", "exclhost"})
_SCATTER = frozenset({"scatter"})
_SHARED = frozenset({"", "shared"})
# A custom attribute, and no option of qsub: resources that a user adds to every chunk of a job.
_CHUNK = "chunk"
# pbs_resources(7B): the resource of a node that says of which model its accelerators are
_GPU_TYPE = "accelerator_model"
_SELECT = "l.select"
# pbs_resources(7B): without characters that end a resource, a chunk or a list, or that need quotes
_RESOURCE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)=[^\s:+,=\"'\\]+")
_MODEL = re.compile(rf":{_GPU_TYPE}=([^:+]+)")
_FIELDS = {
    "mem": "memory",
    "mpiprocs": "process_count",
    "ncpus": "cpu_cores_per_process",
    "ngpus": "gpu_cores_per_process",
    "ompthreads": "cpu_cores_per_process",
}
# src/lib/Libattr/master_resc_def_all.xml of OpenPBS 23.06.06: ATR_DFLAG_CVTSLT, except the resources that
# replace chunks; and resources that sites with GPUs define
_CHUNK_RESOURCES = (
    *("l.accelerator", "l.accelerator_group", "l.accelerator_memory", "l.accelerator_model"),
    *("l.aoe", "l.arch", "l.eoe", "l.hbmem", "l.host", "l.mpiprocs", "l.naccelerators", "l.ngpus"),
    *("l.ompthreads", "l.vmem", "l.vnode", "l.vntype"),
)

#: The custom attributes of the executor `pbs`.
CUSTOM = system_options(
    ("pbs", "pbspro", "openpbs"),
    dict.fromkeys(_CHUNK_RESOURCES, "PBS refuses it beside jpsi's l.select; set pbs.chunk or that"),
    indirect=(_CHUNK,),
)


def _write_select(request: JobRequest) -> str:
    """Return the chunks of a job; pbs_resources(7B)."""
    extra, kind = _chunk_resources(CUSTOM.of(request.spec)), gpu_type(request)
    model = [f"{_GPU_TYPE}={kind}"] if kind else []
    chunks = [
        ":".join(
            [
                str(it.nodes),
                *_process_resources(requested, it.processes),
                *(model if requested.gpu_cores_per_process else []),
                *extra,
            ]
        )
        for requested, parts in lay_out(request.spec)
        # without a number of nodes each process is a chunk, which PBS may place anywhere
        for it in parts or [Part(requested.computed_process_count, 1)]
    ]
    return "+".join(chunks)


def _process_resources(requested: ResourceSpecV1, processes: int) -> Iterator[str]:
    cores = requested.cpu_cores_per_process or 1
    yield from (f"ncpus={processes * cores}", f"mpiprocs={processes}")
    if processes > 1:
        # otherwise PBS sets OMP_NUM_THREADS of each process to the number of all cores of the chunk
        yield f"ompthreads={cores}"
    if requested.gpu_cores_per_process:
        yield f"ngpus={processes * requested.gpu_cores_per_process}"
    if requested.memory is not None:
        share = units(requested.memory * processes, requested.computed_process_count * _KIBIBYTE)
        yield f"mem={share}kb"


def _write_place(request: JobRequest) -> str | None:
    layouts = lay_out(request.spec)
    is_spread = sum(it.nodes for _, parts in layouts for it in parts or ()) > 1
    # exclusive use is a property of the whole job, if any of its chunks requests it
    is_exclusive = any(requested.exclusive_node_use for requested, _ in layouts)
    return ":".join([*(["scatter"] if is_spread else []), *(["exclhost"] if is_exclusive else [])]) or None


def _chunk_resources(custom: Mapping[str, Any]) -> list[str]:  # Any: whatever users wrote
    """Return the resources that these custom attributes add to each chunk.

    >>> _chunk_resources({"chunk": "host_type=fast:ib=true"})
    ['host_type=fast', 'ib=true']

    Raises:
        ValueError: the resources are malformed, or jpsi sets them, or another attribute replaces the chunks.
    """
    value = custom.get(_CHUNK)
    if value is None or value is False:
        return []
    replacement = next(
        (it for it in custom if it == _SELECT or _SELECT in QSUB_OPTIONS.excludes.get(it, ())), None
    )
    if replacement is not None:
        raise ValueError(
            f"custom attributes pbs.{_CHUNK} and pbs.{replacement} cannot both be set: the one adds to the "
            "chunks that jpsi requests, and the other replaces them"
        )
    resources = str(value).split(":")
    for resource in resources:
        _check_resource(resource)
    return resources


def _check_resource(resource: str) -> None:
    match = _RESOURCE.fullmatch(resource)
    if match is None:
        raise ValueError(
            f"custom attribute pbs.{_CHUNK} must be resources such as host_type=fast:ib=true, and "
            f"{resource!r} is none that a chunk can have"
        )
    field = _FIELDS.get(match["name"])
    if field is not None:
        raise ValueError(f"custom attribute pbs.{_CHUNK} cannot set {match['name']}: set resources.{field}")


def _read_select(draft: Draft, value: str) -> None:
    """Read `-l select`: chunks of one kind or of several; pbs_resources(7B)."""
    if "l.nodes" in draft.options:
        raise ValueError("l.nodes requests other resources")
    texts = value.split("+")
    models, parsed = set(_MODEL.findall(value)), [_parse_chunk(_MODEL.sub("", it)) for it in texts]
    typed = [len(_MODEL.findall(it)) for it in texts]
    has_gpus = [1 if it.gpu_cores_per_process else 0 for it in parsed]
    if len(models) > 1 or (models and typed != has_gpus):
        raise ValueError("jpsi can request only GPUs of one type")
    chunks = merge_kinds(parsed)
    draft.attributes.gpu_type = next(iter(models), None)
    place = _place_words(draft.options.get("l.place") or "")
    is_spread = bool(place & _SCATTER)
    if len(chunks) == 1 and chunks[0].processes_per_node == 1 and not is_spread:
        # chunks of one process each, which PBS may place anywhere
        number = chunks[0].node_count
        chunks = [attrs.evolve(chunks[0], process_count=number, node_count=None, processes_per_node=None)]
    elif not place - _EXCLUSIVE_PLACES and sum(it.node_count or 0 for it in chunks) > 1:
        draft.lose("l.select", value, "jpsi has each chunk on a node of its own")
    set_resources(draft, chunks)


def _parse_chunk(text: str) -> ResourceSpecV1:
    """Parse one term of `select`: a number of identical chunks."""
    nodes, resources = split_count(text)
    processes = read_count(resources.pop("mpiprocs", "1"))
    cores, cores_left = divmod(read_count(resources.pop("ncpus", str(processes))), processes)
    gpus, gpus_left = divmod(int(resources.pop("ngpus", "0")), processes)
    memory = resources.pop("mem", None)
    # jpsi sets the same number of threads itself
    threads = resources.pop("ompthreads", str(cores))
    if resources or cores_left or gpus_left or not cores or threads != str(cores):
        raise ValueError(NOT_EXPRESSIBLE)
    return ResourceSpecV1(
        node_count=nodes,
        processes_per_node=processes,
        cpu_cores_per_process=cores if cores > 1 else None,
        gpu_cores_per_process=gpus or None,
        memory=None if memory is None else read_amount(memory, UNITS) * nodes,
    )


def _read_place(draft: Draft, value: str) -> None:
    """Read `-l place`, from which a spec can take exclusive use of the nodes."""
    words = _place_words(value)
    if words - _EXCLUSIVE_PLACES - _SCATTER:
        raise ValueError(NOT_EXPRESSIBLE)
    draft.resources.exclusive_node_use = bool(words & _EXCLUSIVE_PLACES)


def _place_words(value: str) -> set[str]:
    """Return the words of a placement, without the default way to share nodes."""
    return set(value.split(":")) - _SHARED


#: The options for resources, in the order in which they are written and read.
RESOURCE_OPTIONS: Mapping[str, Option] = {
    # these two may have nodes of several kinds, which the other readers cannot handle
    "l.nodes": Option(None, read_nodes, is_read_last=True),
    "l.select": Option(_write_select, _read_select, expresses=("gpu_type",), is_read_last=True),
    "l.place": Option(_write_place, _read_place),
    "l.mem": Option(None, read_memory),
}
