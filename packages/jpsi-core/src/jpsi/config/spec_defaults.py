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
        mine = {name: getattr(self, name) for name in _NAMES}
        filled = {name: getattr(lower, name) if value is None else value for name, value in mine.items()}
        joined = {**lower.custom_attributes, **self.custom_attributes}
        return SpecDefaults(**filled, custom_attributes=joined)

    def filled_in(self, spec: JobSpec) -> JobSpec:
        """Return the spec with these values in its open fields; the spec itself is not changed."""
        given = spec.attributes
        if self == SpecDefaults():
            return spec
        custom = {**self.custom_attributes, **(given.custom_attributes or {})}
        attributes = attrs.evolve(
            given,
            duration=_either(given.duration, self.duration),
            queue_name=_either(given.queue_name, self.queue_name),
            project_name=_either(given.project_name, self.project_name),
            reservation_id=_either(given.reservation_id, self.reservation_id),
            custom_attributes=custom or given.custom_attributes,
        )
        return attrs.evolve(spec, launcher=_either(spec.launcher, self.launcher), attributes=attributes)


_NAMES = ("launcher", "duration", "queue_name", "project_name", "reservation_id")


def _either(value: Any, default: Any) -> Any:  # noqa: ANN401  a field of any type
    return default if value is None else value
