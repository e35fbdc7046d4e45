"""Dependencies of a job: the ends that satisfy them, and their problems."""

from __future__ import annotations

from typing import Any

import pytest

from jpsi import Dependency, DependencyKind, InvalidJobException, Job, JobAttributes, JobSpec, JobState
from jpsi.document.documents import read_document, write_document
from jpsi.model.dependencies import OtherJob
from jpsi.model.spec import copy_spec
from jpsi.model.spec_problems import problems

OK, ANY, NOTOK = DependencyKind.OK, DependencyKind.ANY, DependencyKind.NOTOK


def waiting(after: Any) -> JobSpec:
    return JobSpec("/bin/true", attributes=JobAttributes(after=after))


@pytest.mark.parametrize(
    ("state", "met"),
    [
        (JobState.COMPLETED, {OK: True, ANY: True, NOTOK: False}),
        (JobState.FAILED, {OK: False, ANY: True, NOTOK: True}),
        (JobState.CANCELED, {OK: False, ANY: True, NOTOK: True}),
        (JobState.ACTIVE, {OK: None, ANY: None, NOTOK: None}),
        (JobState.NEW, {OK: None, ANY: None, NOTOK: None}),
    ],
    ids=lambda it: it.value if isinstance(it, JobState) else "",
)
def test_each_kind_is_met_by_its_ends(state: JobState, met: dict[DependencyKind, bool | None]) -> None:
    assert {kind: kind.is_met(state) for kind in DependencyKind} == met


def test_a_job_without_a_kind_must_complete() -> None:
    job = Job()

    assert Dependency.of("7") == Dependency("7", OK)
    assert Dependency.of(job) == Dependency(job, "ok")  # type: ignore[arg-type]  # what the converter takes
    assert Dependency.of(Dependency("7", ANY)) == Dependency("7", ANY)


def test_a_job_is_another_job() -> None:
    assert isinstance(Job(), OtherJob)
    assert not isinstance("7", OtherJob)


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        ("7", "attributes.after must be a list of jobs, native ids and Dependency, not '7'"),
        ([7], "attributes.after[0] must be a Job, the text of a native id or a Dependency on one, not 7"),
        (["1", "a b"], "attributes.after[1] is 'a b', which cannot be the native id of a job"),
        ([Dependency("", ANY)], "attributes.after[0] is '', which cannot be the native id of a job"),
        (
            [Dependency("7", "maybe")],  # type: ignore[arg-type]  # the mistake
            "attributes.after[0] is of the kind 'maybe', which is none of ok, any, notok",
        ),
    ],
)
def test_problems_of_dependencies_are_named(after: object, problem: str) -> None:
    assert problems(waiting(after)) == [problem]


def test_jobs_ids_and_dependencies_are_valid() -> None:
    assert problems(waiting([Job(), "7", Dependency(Job(), NOTOK), Dependency("8.pbs", "any")])) == []  # type: ignore[arg-type]


def test_a_copy_shares_no_list() -> None:
    spec = waiting(["7"])
    copied = copy_spec(spec)
    assert spec.attributes is not None
    assert spec.attributes.after is not None
    spec.attributes.after.append("8")

    assert copied.attributes is not None
    assert copied.attributes.after == ["7"]


def test_a_document_has_an_id_with_or_without_a_kind() -> None:
    document = write_document(waiting(["7", Dependency("8", NOTOK)]))
    shorter = document.replace("kind: notok", "kind: any")

    assert read_document(document) == waiting(["7", Dependency("8", NOTOK)])
    assert read_document(shorter) == waiting(["7", Dependency("8", ANY)])


def test_a_document_cannot_name_a_job_that_was_not_submitted() -> None:
    with pytest.raises(InvalidJobException, match=r"after\[1\] is a job that was not submitted yet"):
        write_document(waiting(["7", Job()]))


def test_problems_in_a_document_are_reported_with_their_places() -> None:
    document = write_document(waiting(["7", Dependency("8", NOTOK)]))
    wrong = document.replace("'7'", "7").replace("kind: notok", "kind: nok")

    with pytest.raises(InvalidJobException) as caught:
        read_document(wrong)

    text = str(caught.value)
    assert "after[0]: must be text, not 7; put it in quotes" in text
    assert "after[1].kind: must be one of ok, any, notok" in text
