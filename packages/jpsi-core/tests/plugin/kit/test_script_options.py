"""Scripts that were written for a batch system, with a small one that has four options."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from jpsi.plugin import CustomOptions, ForeignScript
from jpsi.plugin.kit import (
    Draft,
    Option,
    ScriptForm,
    attribute_option,
    count_option,
    gnu_options,
    ignore_option,
    read_amount,
    read_count,
    read_name,
    read_path,
)


def _memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, {"M": 2**20}) * draft.resources.computed_process_count


def _form(*, is_read_whole: bool = False) -> ScriptForm:
    return ScriptForm(
        mark="#ACME",
        is_read_whole=is_read_whole,
        parse=lambda words: gnu_options(words, {}, {"loud", "wait"}),
        custom=CustomOptions(
            systems=("acme",), name="[a-z]+", example="note", refused={"wait": "use Job.wait", "mem": "none"}
        ),
        options={
            "mem": Option(None, _memory, is_read_last=True),
            "name": Option(None, read_name),
            "queue": attribute_option("queue_name"),
            "ranks": count_option("process_count"),
            "terse": Option(None, ignore_option),
        },
        joints={"note": " "},
    )


def _read(*lines: str, is_read_whole: bool = False) -> ForeignScript:
    return _form(is_read_whole=is_read_whole).read("\n".join(["#!/bin/sh", *lines]))


def test_options_are_translated_into_fields() -> None:
    script = _read("#ACME --name=a --queue=q", "#ACME --ranks=3 --mem=2M")

    assert (script.directives, script.lost) == (2, ())
    assert script.spec.name == "a"
    assert script.spec.attributes is not None
    assert script.spec.attributes.queue_name == "q"
    assert script.spec.resources is not None
    assert (script.spec.resources.process_count, script.spec.resources.memory) == (3, 6 * 2**20)  # type: ignore[attr-defined]  # ResourceSpecV1


def test_an_option_may_precede_one_that_it_depends_on() -> None:
    assert _read("#ACME --ranks=3 --mem=2M").spec == _read("#ACME --mem=2M --ranks=3").spec


def test_the_last_of_repeated_options_counts() -> None:
    assert _read("#ACME --name=a", "#ACME --name=b").spec.name == "b"


def test_all_values_of_a_cumulative_option_count() -> None:
    assert _custom(_read("#ACME --note=a", "#ACME --note=b --loud")) == {
        "acme.note": "a b",
        "acme.loud": True,
    }


def _custom(script: ForeignScript) -> object:
    assert script.spec.attributes is not None
    return script.spec.attributes.custom_attributes


def test_an_option_without_a_field_is_a_custom_attribute() -> None:
    script = _read("#ACME --note=x --loud --ranks=2-4")

    assert _custom(script) == {"acme.note": "x", "acme.loud": True, "acme.ranks": "2-4"}
    assert script.lost == ()


def test_an_option_that_cannot_be_translated_is_lost_with_a_reason() -> None:
    script = _read("#ACME --wait --mem=all --NOTE=1")

    assert _custom(script) is None
    assert script.lost == (
        "--mem all: 'all' is not an amount that jpsi understands",
        "--wait: use Job.wait",
        "--NOTE 1: jpsi does not know the option",
    )


def test_a_value_that_jpsi_would_not_write_is_quoted_as_it_is() -> None:
    def refuse(option: str, value: str | None) -> tuple[str, str | None]:
        raise ValueError(option)

    form = attrs.evolve(_form(), spelled=refuse)

    assert form.read("#ACME --wait --mem=all").lost == (
        "--mem all: 'all' is not an amount that jpsi understands",
        "--wait: use Job.wait",
    )


def test_an_option_without_effect_is_not_reported() -> None:
    script = _read("#ACME --terse=yes")

    assert (script.lost, _custom(script)) == ((), None)


def test_a_malformed_directive_costs_no_other() -> None:
    script = _read("#ACME --queue=q 'x", "#ACME --name=a oops --ranks=3", "#ACME --ranks=2")

    assert script.spec.name == "a"
    assert [line.partition(":")[0] for line in script.lost] == [
        """the directive "--queue=q 'x" was read only in part""",
        "the directive '--name=a oops --ranks=3' was read only in part",
    ]
    assert script.spec.resources is not None


@pytest.mark.parametrize(("is_read_whole", "name"), [(False, "a"), (True, "b")])
def test_directives_behind_the_first_command(is_read_whole: bool, name: str) -> None:
    lines = ("", "# a comment", " # another", "#ACME --name=a", "true", "#ACME --name=b")

    assert _read(*lines, is_read_whole=is_read_whole).spec.name == name


def test_a_script_without_directives_has_none() -> None:
    assert _read("# ACME --name=a", " #ACME --name=b", "##ACME --name=c").directives == 0


def test_a_variable_has_just_its_value() -> None:
    draft = Draft(form=_form(), config=None, options={})

    draft.set_variable("A", "${B}")
    draft.set_variable("C", "1")

    assert draft.spec.environment == {"A": "$${B}", "C": "1"}


@pytest.mark.parametrize("text", ["", "0", "-1", "2-4", "1.5", "x", "٣"])
def test_a_text_that_is_not_one_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a single whole number"):
        read_count(text)


@pytest.mark.parametrize(("text", "amount"), [("3", 3), ("1.5k", 1500), ("0.0001k", 1), ("2 k", 2000)])
def test_amounts_are_rounded_up(text: str, amount: int) -> None:
    assert read_amount(text, {"": 1, "k": 1000}) == amount


@pytest.mark.parametrize("text", ["", "0", "0k", "1q", "k", "-1"])
def test_a_text_that_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="amount"):
        read_amount(text, {"": 1, "k": 1000})


def test_a_path_with_a_pattern_is_not_translated() -> None:
    assert read_path("a/b", re.compile("%")) == Path("a/b")
    with pytest.raises(ValueError, match="no patterns"):
        read_path("a%j", re.compile("%"))
