"""What can be set for the executors `pbs` and `torque`."""

from __future__ import annotations

import attrs

from jpsi.plugin import BatchConfig, hookimpl


@attrs.frozen(slots=True, kw_only=True)
class PbsConfig(BatchConfig):
    """What can be set for the executors `pbs` and `torque`, besides what every batch system has."""

    #: The umask of jobs, such as 022; None is the batch system's own, which is 077.
    umask: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.matches_re("[0-7]{3,4}"))
    )
    #: Whether the batch system may run a job again after a node has failed; None is the site's own rule.
    rerun: bool | None = None
    #: How many cores each node of the site has. With it, a job of Torque that asks for more processes than
    #: fit on one node, and does not say how they are spread, has as many nodes as it takes.
    cores_per_node: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0))
    )


@hookimpl
def config_class() -> type[BatchConfig]:
    """The class."""
    return PbsConfig
