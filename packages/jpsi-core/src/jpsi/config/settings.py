"""The settings in configuration files as values: merged over all files, for each executor and target."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import attrs

from jpsi.document import Value
from jpsi.model import ConfigError, JobAttributes, JobSpec

#: The fields of a spec itself that have a default.
OWN = ("launcher", "environment_setup")


@attrs.frozen(slots=True, kw_only=True)
class SpecDefaults:
    """Values for fields of a spec that are None."""

    launcher: str | None = None
    environment_setup: list[str] | None = None
    #: Of these the duration, the texts and the custom attributes.
    attributes: JobAttributes = attrs.field(factory=JobAttributes)

    def over(self, lower: SpecDefaults) -> SpecDefaults:
        """Return these defaults, with what they leave open filled in from a weaker configuration."""
        own = {name: getattr(lower if getattr(self, name) is None else self, name) for name in OWN}
        return SpecDefaults(**own, attributes=_filled_in(self.attributes, lower.attributes))

    def filled_in(self, spec: JobSpec) -> JobSpec:
        """Return the spec with these values in its open fields; the spec itself is not changed."""
        if self == SpecDefaults():
            return spec
        own = {name: getattr(self if getattr(spec, name) is None else spec, name) for name in OWN}
        return attrs.evolve(spec, **own, attributes=_filled_in(spec.attributes, self.attributes))


def _filled_in(attributes: JobAttributes, lower: JobAttributes) -> JobAttributes:
    """Return the attributes with what they leave open from `lower`; custom attributes are merged."""
    names = ("duration", *JobAttributes.text_names())
    filled = {name: getattr(lower, name) for name in names if getattr(attributes, name) is None}
    custom = {**(lower.custom_attributes or {}), **(attributes.custom_attributes or {})}
    return attrs.evolve(attributes, **filled, custom_attributes=custom or attributes.custom_attributes)


@attrs.frozen(slots=True, kw_only=True)
class Section:
    """The configuration of one executor or target."""

    #: The executor of a target.
    executor: str | None = None
    url: str | None = None
    #: A PEP 440 version constraint.
    version: str | None = None
    #: Values for fields of the executor's configuration, with their locations.
    config: Mapping[str, Value] = attrs.field(factory=dict)
    defaults: SpecDefaults = attrs.field(factory=SpecDefaults)
    #: The locations of `executor`, `url` and `version`: `config.yaml:3: targets.cluster.executor`.
    locations: Mapping[str, str] = attrs.field(factory=dict)

    def over(self, lower: Section) -> Section:
        """Return this section, with what it leaves open filled in from a weaker one."""
        merged = {
            name: attrs.evolve(value, raw=_merged(value.raw, lower.config[name].raw))
            for name, value in self.config.items()
            if name in lower.config
        }
        return Section(
            executor=self.executor or lower.executor,
            url=self.url or lower.url,
            version=self.version or lower.version,
            config={**lower.config, **self.config, **merged},
            defaults=self.defaults.over(lower.defaults),
            locations={**lower.locations, **self.locations},
        )


def _merged(high: object, low: object) -> object:
    """Return the stronger value; two mappings are merged key by key."""
    if not isinstance(high, dict) or not isinstance(low, dict):
        return high
    return {**low, **{key: _merged(value, low.get(key)) for key, value in high.items()}}


@attrs.frozen(slots=True, kw_only=True)
class Layer:
    """The content of one configuration file; names of executors and targets are in lower case."""

    default_executor: str | None = None
    #: The location of `default_executor`.
    default_location: str = ""
    plugin_path: tuple[Path, ...] = ()
    executors: Mapping[str, Section] = attrs.field(factory=dict)
    targets: Mapping[str, Section] = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Settings:
    """The configuration, the strongest layer first; docs/guide describes the files."""

    layers: tuple[Layer, ...] = ()

    @property
    def plugin_path(self) -> list[Path]:
        """The directories with plugins, the user's before the site's."""
        return [directory for layer in self.layers for directory in layer.plugin_path]

    @property
    def default_executor(self) -> str | None:
        """The executor or target for callers that name none."""
        return next((it.default_executor for it in self.layers if it.default_executor), None)

    @property
    def default_location(self) -> str:
        """The location where that is configured; empty if it is not."""
        return next((it.default_location for it in self.layers if it.default_executor), "")

    @property
    def targets(self) -> list[str]:
        """The names of all targets, in lower case."""
        return sorted({name for layer in self.layers for name in layer.targets})

    def target(self, name: str) -> Section | None:
        """Return the configuration of a target of this name, or None; ConfigError if it has no executor."""
        if name.lower() not in self.targets:
            return None
        target = overlay([layer.targets for layer in self.layers], [name])
        if target.executor is None:
            msg = f"the target {name!r} is configured without its executor; add it: targets.{name}.executor"
            raise ConfigError(msg)
        return target

    def executor(self, names: Collection[str]) -> Section:
        """Return the configuration of an executor that has these names; an empty one if there is none."""
        return overlay([layer.executors for layer in self.layers], names)


def overlay(layers: Iterable[Mapping[str, Section]], names: Collection[str]) -> Section:
    """Return the sections with these names, merged into one."""
    wanted = sorted({name.lower() for name in names})
    sections = [layer[name] for layer in layers for name in wanted if name in layer]
    return functools.reduce(Section.over, sections, Section())
