"""The defaults that a configuration sets for jobs."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from jpsi.config.settings import SpecDefaults
from jpsi.model.spec import JobAttributes, JobSpec, copy_spec

ALL = SpecDefaults(
    launcher="mpirun",
    environment_setup=["module:gcc"],
    attributes=JobAttributes(
        **dict.fromkeys(JobAttributes.text_names(), "some"),  # type: ignore[arg-type]  the texts
        duration=timedelta(hours=1),
        custom_attributes={"slurm.qos": "low", "slurm.x": 1},
    ),
)


@pytest.mark.clause("document-system-defaults")
def test_unset_fields_are_filled() -> None:
    assert ALL.filled_in(JobSpec("x")) == JobSpec(
        "x",
        launcher="mpirun",
        environment_setup=["module:gcc"],
        attributes=ALL.attributes,
    )


def test_set_fields_stay_and_the_spec_is_not_changed() -> None:
    attributes = JobAttributes(duration=timedelta(), account="mine", custom_attributes={"slurm.qos": "high"})
    attributes.user = {"a": 1}
    spec = JobSpec("x", launcher="single", environment_setup=[], attributes=attributes)
    before = copy_spec(spec)

    filled = ALL.filled_in(spec)

    assert spec == before
    assert (filled.launcher, filled.environment_setup) == ("single", [])
    assert filled.attributes is not None
    assert filled.attributes.duration == timedelta()
    assert filled.attributes.account == "mine"
    assert filled.attributes.queue_name == "some"
    assert filled.attributes.custom_attributes == {"slurm.qos": "high", "slurm.x": 1}
    assert filled.attributes.user == {"a": 1}


def test_an_empty_configuration_changes_nothing() -> None:
    spec = JobSpec("x")

    assert SpecDefaults().filled_in(spec) is spec


def test_stronger_defaults_win_key_by_key() -> None:
    attributes = JobAttributes(queue_name="mine", custom_attributes={"slurm.qos": "mine"})
    mine = SpecDefaults(attributes=attributes)

    expected = attrs.evolve(
        ALL.attributes, queue_name="mine", custom_attributes={"slurm.qos": "mine", "slurm.x": 1}
    )
    assert mine.over(ALL) == attrs.evolve(ALL, attributes=expected)
    assert attrs.evolve(mine, environment_setup=["venv:a"]).over(ALL).environment_setup == ["venv:a"]


def test_attributes_that_no_default_is_for_are_kept() -> None:
    """Whatever is added to JobAttributes later."""

    @attrs.define(slots=True, init=False)
    class Later(JobAttributes):
        later: int

        def __init__(self, *, later: int, **attributes: object) -> None:
            super().__init__(**attributes)  # type: ignore[arg-type]  as given
            self.later = later

    filled = ALL.filled_in(JobSpec("x", attributes=Later(later=3)))

    assert isinstance(filled.attributes, Later)
    assert (filled.attributes.later, filled.attributes.queue_name) == (3, "some")
