"""What can be set for the executor `flux`."""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import BatchConfig

# The forms of FLUX_URI that flux-environment(7) has
_URI = re.compile(r"(?:local|ssh)://[^\s]+\Z")


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
