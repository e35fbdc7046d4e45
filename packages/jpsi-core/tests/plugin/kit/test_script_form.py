"""Scripts made of options: those that jpsi sets, those of users, and values that options cannot express."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from jpsi.plugin import (
    BatchConfig,
    CustomOptions,
    Dependency,
    JobAttributes,
    JobSpec,
    Site,
    SubmitContext,
)
from jpsi.plugin.kit import JobRequest, Option, ScriptForm, gnu_options

SITE = Site(config=BatchConfig())
CONTEXT = SubmitContext(site=SITE, job_id="5", tag="jpsi-5-1")
CUSTOM = CustomOptions(
    systems=("acme", "acm"),
    name=r"[a-z]+",
    example="qos",
    refused={"output": "set JobSpec.stdout_path"},
    excludes={"cpus": ("nodes",)},
    joined={"note"},
    repeated={"need"},
    dependency="after",
)


def name_option(request: JobRequest) -> str | None:
    if request.spec.name == "impossible":
        msg = "ACME cannot"
        raise ValueError(msg)
    return request.spec.name


FORM = ScriptForm(
    mark="#ACME",
    longest=70,
    custom=CUSTOM,
    parse=lambda words: gnu_options(words, {}, set()),
    options={
        "note": Option(lambda it: it.context.tag),
        "name": Option(name_option),
        "nodes": Option(2),
        "rerun": Option(write=False),
        "need": Option(("disk",)),
        "mail": Option(write=True),
    },
)


def spec(custom: dict[str, Any] | None = None, **fields: Any) -> JobSpec:
    return JobSpec("/bin/true", attributes=JobAttributes(custom_attributes=custom, **fields))


def lines(custom: dict[str, Any] | None = None) -> list[str]:
    script = FORM.render(spec(custom), CONTEXT)
    return [directive.text.removeprefix("#ACME --") for directive in script.directives]


def problems(tested: JobSpec) -> list[str]:
    return list(FORM.problems(tested, SITE))


def test_none_and_false_leave_an_option_out_and_true_has_no_value() -> None:
    assert lines() == ["note=jpsi-5-1", "nodes=2", "need=disk", "mail"]


def test_users_replace_remove_and_add_options() -> None:
    assert lines({"acme.nodes": 3, "ACME.mail": None, "acm.qos": "high"}) == [
        "note=jpsi-5-1",
        "need=disk",
        "nodes=3",
        "qos=high",
    ]


def test_an_attribute_that_an_option_contradicts_is_dropped() -> None:
    assert "nodes=2" not in lines({"acme.cpus": 8})
    assert "nodes=2" in lines({"acme.cpus": None})


def test_a_joined_option_ends_with_the_value_of_jpsi() -> None:
    assert lines({"acme.note": "mine"})[0] == "note='mine jpsi-5-1'"
    assert lines({"acme.note": None})[0] == "note=jpsi-5-1"


def test_a_repeated_option_is_added() -> None:
    assert [it for it in lines({"acme.need": "gpu"}) if it.startswith("need")] == ["need=disk", "need=gpu"]


def test_a_valid_job_has_no_problems() -> None:
    assert problems(spec({"acme.qos": "high", "other.output": "x"})) == []


def test_all_problems_are_reported_at_once() -> None:
    attributes = JobAttributes(
        queue_name="",
        custom_attributes={"acme.output": "x", "acm.Q": "y", "acme.need": [1], "acme.qos": 10**5000},
    )

    values = "text, a number, True for an option without a value, or None or False to leave the option out"

    assert problems(JobSpec("/bin/true", name="a" * 71, attributes=attributes)) == [
        "attributes.queue_name is empty; None leaves the choice to the batch system",
        "custom attribute acme.output cannot be set: set JobSpec.stdout_path",
        f"custom attribute acme.need must be {values}, not [1]",
        problems(spec({"acme.qos": 10**5000}))[0],
        "custom attribute acm.Q cannot be set: an option's whole name is needed, such as acm.qos",
        "--name has 71 bytes, more than the 70 that are possible",
    ]
    assert problems(spec({"acme.qos": 10**5000}))[0].startswith(
        "custom attribute acme.qos cannot be converted to text"
    )


def test_a_value_that_options_cannot_express_is_a_problem() -> None:
    assert problems(JobSpec("/bin/true", name="impossible")) == ["ACME cannot"]
    assert problems(JobSpec("/bin/true", name="two\nlines"))[0].startswith("--name cannot be 'two\\nlines'")


def test_dependencies_have_one_form() -> None:
    assert problems(spec({"acme.after": "1"}, after=[Dependency("2")])) == [
        "attributes.after and the custom attribute acme.after both set the dependencies; give one of them"
    ]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (
            "out",
            [
                (
                    "custom attribute acme.out cannot be set: the command may read it as output: "
                    "set JobSpec.stdout_path"
                )
            ],
        ),
        (
            "nod",
            ["custom attribute acme.nod is ambiguous, the command may read it as nodes; write acme.nodes"],
        ),
        ("nodes", []),
        ("qos", []),
        ("node", []),
    ],
)
def test_the_beginning_of_a_name_may_be_read_as_the_whole(option: str, expected: list[str]) -> None:
    custom = CustomOptions(
        systems=("acme",),
        name=r"[a-z]+",
        example="qos",
        refused={"output": "set JobSpec.stdout_path"},
        abbreviated={"nodes"},
        exact={"node"},
    )

    assert list(custom.problems(spec({f"acme.{option}": "x"}))) == expected


def test_an_option_is_set_once_for_any_case_of_its_name() -> None:
    assert problems(spec({"ACME.qos": "a", "acme.qos": "b"})) == [
        "custom attribute acme.qos is the same option as ACME.qos; give only one of them"
    ]


def test_attributes_that_are_no_options_are_left_to_the_backend() -> None:
    custom = attrs.evolve(CUSTOM, indirect={"racks", "note"})
    found = spec({"acme.racks": 2, "acme.note": "x"})

    assert custom.of(found) == {"racks": 2, "note": "x"}
    assert custom.merged({"nodes": 1, "note": "own"}, found) == {"nodes": 1, "note": "own"}
    assert list(custom.problems(spec({"acme.racks": [2]}))) != []


def test_a_system_may_have_another_form_of_options() -> None:
    def spelled(name: str, value: str | None) -> tuple[str, str | None]:
        if value == "2":
            msg = "no twos"
            raise ValueError(msg)
        return name[0], value

    form = attrs.evolve(FORM, mark="#A", dashes="-", joint=" ", spelled=spelled)

    assert list(form.problems(spec(), SITE)) == ["no twos"]
    assert form.render(spec({"acme.nodes": 3}), CONTEXT).directives[0].text == "#A -n jpsi-5-1"


SCRIPT = "#!/bin/sh\n#ACME --nodes=2\n# a comment\n\n#ACME --mail\necho\n#ACMEX\n#ACME --late\n"


@pytest.mark.parametrize(
    ("form", "directives", "late"),
    [
        (FORM, 2, ("#ACME --late",)),
        (attrs.evolve(FORM, is_read_whole=True), 3, ()),
        (attrs.evolve(FORM, foreign_mark="# ?ACME(?= )"), 2, ("#ACME --late",)),
    ],
    ids=["before the first command", "anywhere", "loose mark"],
)
def test_directives_behind_the_first_command_come_too_late(
    form: ScriptForm, directives: int, late: tuple[str, ...]
) -> None:
    found = form.read(SCRIPT)

    assert (found.directives, found.late_directives) == (directives, late)


def test_comments_behind_the_first_command_may_look_like_directives_of_another_system() -> None:
    script = "#!/bin/sh\necho\n# ACME --late\n"

    assert attrs.evolve(FORM, foreign_mark="# ?ACME(?= )").read(script).late_directives == ()
    assert FORM.read(script.replace("# ACME", "#ACME")).late_directives == ("#ACME --late",)
