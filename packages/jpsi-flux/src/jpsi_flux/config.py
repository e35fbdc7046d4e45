"""The configuration of the executor `flux`, and the capabilities of Flux.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import BatchConfig, Capabilities, DependencyKind, hookimpl
from jpsi.plugin.kit import must_be

# The forms of FLUX_URI in flux-environment(7)
_URI = re.compile(r"(?:local|ssh)://[^\s]+\Z")
# Each job is an open file until its id is known, and four such commands run at a time.
_JOBS_PER_SUBMISSION = 100
# A query for a thousand jobs takes 0.3 s, one for a hundred 0.13 s.
_IDS_PER_QUERY = 1000


_uri = must_be(
    "like local:///run/flux/local or ssh://host/run/flux/local",
    lambda it: it is None or _URI.match(it) is not None,
)


@attrs.frozen(slots=True, kw_only=True)
class FluxConfig(BatchConfig):
    """The settings of the executor `flux`, in addition to those of every batch system."""

    #: The Flux instance that receives the jobs, as in `FLUX_URI`; None is the instance of the environment.
    #: Job ids are valid within one instance only, so that each instance needs its own target.
    uri: str | None = attrs.field(default=None, validator=_uri)
    #: True if jpsi follows Flux's event stream while it monitors jobs, where Flux offers one.
    events: bool = True


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the class of this executor's configuration."""
    return FluxConfig


@hookimpl
def capabilities() -> Capabilities:
    """Return the capabilities of Flux."""
    return Capabilities(
        default_launcher="flux",
        # Since Flux 0.71, a job that is its own instance has its id in the second variable.
        id_variable="FLUX_JOB_ID FLUX_ENCLOSING_ID",
        ids_per_query=_IDS_PER_QUERY,
        dependencies=frozenset(DependencyKind),
        jobs_per_submission=_JOBS_PER_SUBMISSION,
    )
