"""What Flux offers, and what can be set for the executor `flux`."""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import BatchConfig, Capabilities, DependencyKind, hookimpl

# The forms of FLUX_URI that flux-environment(7) has
_URI = re.compile(r"(?:local|ssh)://[^\s]+\Z")
# Each is an open file until its id is known, and four such commands run at a time.
_JOBS_PER_SUBMISSION = 100
# A thousand take 0.3 s, a hundred 0.13 s.
_IDS_PER_QUERY = 1000


def _uri(_instance: object, _attribute: object, value: str | None) -> None:
    if value is not None and not _URI.match(value):
        msg = f"uri must be like local:///run/flux/local or ssh://host/run/flux/local, not {value!r}"
        raise ValueError(msg)


@attrs.frozen(slots=True, kw_only=True)
class FluxConfig(BatchConfig):
    """What can be set for the executor `flux`, besides what every batch system has."""

    #: The Flux instance that jobs are sent to, as in `FLUX_URI`; None is the one that the environment
    #: leads to. Job ids mean something in one instance only, so that each wants a target of its own.
    uri: str | None = attrs.field(default=None, validator=_uri)
    #: Whether Flux is listened to while jobs are followed, where it tells of them by itself.
    events: bool = True


@hookimpl
def config_class() -> type[BatchConfig]:
    """The class."""
    return FluxConfig


@hookimpl
def capabilities() -> Capabilities:
    """What Flux offers."""
    return Capabilities(
        default_launcher="flux",
        # A job that is an instance of its own knows itself by the latter, since Flux 0.71.
        id_variable="FLUX_JOB_ID FLUX_ENCLOSING_ID",
        ids_per_query=_IDS_PER_QUERY,
        dependencies=frozenset(DependencyKind),
        jobs_per_submission=_JOBS_PER_SUBMISSION,
    )
