"""What can be set for the executor `slurm`."""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import BatchConfig, hookimpl

# slurm.conf(5), ClusterName; a comma would name several, whose job ids are not each other's
_CLUSTER = re.compile(r"[A-Za-z0-9_.-]+\Z")


def _cluster(_instance: object, _attribute: object, value: str | None) -> None:
    if value is not None and not _CLUSTER.match(value):
        msg = f"cluster must be the name of one cluster, not {value!r}"
        raise ValueError(msg)


@attrs.frozen(slots=True, kw_only=True)
class SlurmConfig(BatchConfig):
    """What can be set for the executor `slurm`, besides what every batch system has."""

    #: The cluster that jobs are sent to, as for `--clusters`; None is the one of this machine. It needs
    #: slurmdbd.
    cluster: str | None = attrs.field(default=None, validator=_cluster)
    #: Whether sacct can be asked about jobs that Slurm has forgotten; None is what the site's
    #: configuration says.
    accounting: bool | None = None
    #: Whether Slurm may run a job again after a node has failed or the job was preempted; None is the
    #: site's own rule (`JobRequeue`).
    requeue: bool | None = None


@hookimpl
def config_class() -> type[BatchConfig]:
    """The class."""
    return SlurmConfig
