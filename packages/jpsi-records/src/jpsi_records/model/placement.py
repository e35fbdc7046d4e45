"""The placement of a job: the executor, queue, walltime and other resources to submit it with.

It comes from the key `placement` of a request. It is not part of the computation: a result is reused whatever
its placement was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import attrs

from jpsi import JobAttributes
from jpsi_engine import JOB_ATTRIBUTES, job_field_problems

from .field_checks import FieldChecks, as_tuple, field_problems, is_number, is_text, is_whole


def _with_text_keys(value: Any) -> Any:  # noqa: ANN401  any YAML value
    return {str(key): it for key, it in value.items()} if isinstance(value, Mapping) else value


@attrs.frozen(slots=True, kw_only=True)
class Placement:
    """The executor, queue, walltime and other resources to submit a job with."""

    #: The executor or configured target; None is the configured default, else `local`.
    executor: str | None = None
    queue_name: str | None = None
    project_name: str | None = None
    reservation_id: str | None = None
    licenses: str | None = None
    qos: str | None = None
    gpu_type: str | None = None
    mail: str | None = None
    #: A warning before the end of its walltime: a signal and seconds, as in `JobAttributes`.
    warn: Any = attrs.field(default=None, converter=as_tuple)
    #: How often the job is submitted again for which reason, as in `JobAttributes`; all within one attempt.
    retry: Any = attrs.field(default=None, converter=_with_text_keys)
    #: The walltime in seconds; None is the default of the target.
    duration: float | None = None
    #: Bytes of memory for the whole job.
    memory: int | None = None
    #: Instead of that, for each core, or for each GPU.
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    #: GPUs for each process.
    gpus: int | None = None
    launcher: str | None = None
    #: Options of one batch system, named `<system>.<option>`.
    custom_attributes: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def job_attributes(self) -> JobAttributes:
        """The attributes of a job with this placement."""
        return JobAttributes(
            duration=None if self.duration is None else timedelta(seconds=self.duration),
            **{name: getattr(self, name) for name in JOB_ATTRIBUTES},
            custom_attributes=dict(self.custom_attributes) or None,
        )


_TEXTS = ("executor", *JobAttributes.text_names(), "launcher")
_MEMORY = ("memory", "memory_per_cpu", "memory_per_gpu")
_CHECKS: FieldChecks = {
    **dict.fromkeys(_TEXTS, (is_text, "text")),
    **dict.fromkeys(_MEMORY, (is_whole, f"a whole number of bytes, such as {4 << 30}")),
    "gpus": (is_whole, "a whole number"),
    "duration": (lambda it: is_number(it) and it >= 0, "a number of seconds"),
    "custom_attributes": (lambda it: isinstance(it, Mapping), "a mapping"),
}
_OPTION = re.compile(r"[\w-]+\.\S+")


def problems(placement: Placement) -> Iterator[str]:
    """Yield every problem of a placement."""
    for it in field_problems(placement, _CHECKS):
        yield f"placement: {it}"
    given = {name: it for name in JOB_ATTRIBUTES if (it := getattr(placement, name)) is not None}
    checked = {name: it for name, it in given.items() if name not in _TEXTS or is_text(it)}
    sizes = {name: it for name in _MEMORY if (it := getattr(placement, name)) is not None}
    if len(sizes) > 1:
        yield "placement: {1} is given beside {0}; give only one".format(*sizes)
    elif sizes and all(map(is_whole, sizes.values())):
        # the number of GPUs is not known here
        checked["resources"] = {"memory": next(iter(sizes.values()))}
    for path, sentence in job_field_problems(checked) if checked else ():
        yield f"placement: {next(iter(sizes)) if path == 'resources.memory' else path} {sentence}"
    custom: Any = placement.custom_attributes  # not yet checked
    for name in custom if isinstance(custom, Mapping) else ():
        if not isinstance(name, str) or not _OPTION.fullmatch(name):
            yield f"placement: custom_attributes: {name!r} is not of the form <system>.<option>"
