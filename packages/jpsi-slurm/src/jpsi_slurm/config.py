"""The configuration of the executor `slurm`.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import BatchConfig, hookimpl

# slurm.conf(5), ClusterName. A comma would separate several clusters; their job ids are independent, so an id
# would be ambiguous. Slurm's commands take `all`, in any case, for every cluster.
_CLUSTER_NAME = re.compile(r"(?!(?i:all)\Z)[A-Za-z0-9_.-]+\Z")


def _check_cluster(_instance: object, _attribute: object, value: str | None) -> None:
    if value is not None and not _CLUSTER_NAME.match(value):
        raise ValueError(f"cluster must be the name of one cluster, not {value!r}")


@attrs.frozen(slots=True, kw_only=True)
class SlurmConfig(BatchConfig):
    """The settings of the executor `slurm`, in addition to those of every batch system."""

    #: The cluster that receives the jobs, as for `--clusters`; None is the cluster of this machine.
    #: A value other than None needs slurmdbd.
    cluster: str | None = attrs.field(default=None, validator=_check_cluster)
    #: True if sacct can report jobs that slurmctld has forgotten; None: jpsi reads it from the
    #: site's Slurm configuration.
    accounting: bool | None = None
    #: True if Slurm may requeue a job after a node failed or the job was preempted; None leaves it to
    #: the site's rule (`JobRequeue`).
    requeue: bool | None = None


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the class of this executor's configuration."""
    return SlurmConfig
