"""The values that a configuration sets for jobs that leave them open."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import attrs

from jpsi.model import JobSpec


@attrs.frozen(slots=True, kw_only=True)
class SpecDefaults:
    """Values for fields of a spec that are None; fields are named as there."""

    launcher: str | None = None
    duration: timedelta | None = None
    queue_name: str | None = None
    project_name: str | None = None
    reservation_id: str | None = None
    #: Merged with those of the spec, which take precedence.
    custom_attributes: Mapping[str, Any] = attrs.field(factory=dict)

    def over(self, lower: SpecDefaults) -> SpecDefaults:
        """Return these defaults, with what they leave open filled in from a weaker configuration."""
        joined = {**lower.custom_attributes, **self.custom_attributes}
        filled = {name: getattr(lower, name) for name in _NAMES if getattr(self, name) is None}
        return attrs.evolve(self, **filled, custom_attributes=joined)

    def filled_in(self, spec: JobSpec) -> JobSpec:
        """Return the spec with these values in its open fields; the spec itself is not changed."""
        if self == SpecDefaults():
            return spec
        attributes = spec.attributes
        custom = {**self.custom_attributes, **(attributes.custom_attributes or {})}
        filled = {name: getattr(self, name) for name in _ATTRIBUTES if getattr(attributes, name) is None}
        return attrs.evolve(
            spec,
            launcher=self.launcher if spec.launcher is None else spec.launcher,
            attributes=attrs.evolve(
                attributes, **filled, custom_attributes=custom or attributes.custom_attributes
            ),
        )


_ATTRIBUTES = ("duration", "queue_name", "project_name", "reservation_id")
_NAMES = ("launcher", *_ATTRIBUTES)
