"""The configuration of the executors `pbs` and `torque`.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import BatchConfig, hookimpl


@attrs.frozen(slots=True, kw_only=True)
class PbsConfig(BatchConfig):
    """The settings of the executors `pbs` and `torque`, in addition to those of every batch system."""

    #: The umask of jobs, such as 022; None is the batch system's default, 077.
    umask: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.matches_re("[0-7]{3,4}"))
    )
    #: True if the batch system may rerun a job after a node failed; None leaves it to the site's rule.
    rerun: bool | None = None
    #: The number of cores of each node of the site. With it, a Torque job with more processes than fit on one
    #: node, and without a layout, gets as many nodes as it needs.
    cores_per_node: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0))
    )


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the class of this executor's configuration."""
    return PbsConfig
