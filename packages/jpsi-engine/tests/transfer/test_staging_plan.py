"""The plan of what is staged: which places are meant, what is refused, and after which ends what is done."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.api.validation import staged
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.staging import path_of, staging_problems, with_absolute_places
from jpsi_engine.runner.prechecks import local_problems
from jpsi_engine.transfer.staging_plan import Outcome, Plan, outcomes, plan

SUCCESS, ERROR, CANCEL = Outcome


def plan_of(spec: JobSpec) -> Plan:
    return plan(with_absolute_places(spec, "/here", "/home/me"))


def test_a_spec_without_staging_has_no_plan_and_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = JobSpec("a", stage_in=[], attributes=JobAttributes(duration=timedelta(1)))
    monkeypatch.setattr("os.getcwd", None)

    assert not plan(spec)
    assert staged(spec) == (spec, [])
    assert staged(spec)[0] is spec


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", "/here/a"),
        ("../a", "/here/../a"),
        ("/a//b", "/a//b"),
        ("~/a", "/home/me/a"),
        ("~other", "/here/~other"),
        ("a:b", "/here/a:b"),
        ("file:///a%20b", "/a b"),
        ("FILE:/a", "/a"),
        ("file://localhost/%ff", "/\udcff"),
    ],
)
def test_a_place_is_a_path_or_a_url_of_this_machine(text: str, path: str) -> None:
    made_in = plan_of(JobSpec("x", stage_in=[StageIn(text, Path("t"))])).stage_in
    made_out = plan_of(JobSpec("x", stage_out=[StageOut(Path("s"), text)])).stage_out

    assert [it.source for it in made_in] == [path]
    assert [it.target for it in made_out] == [path]


def test_a_slash_at_the_end_of_a_target_makes_it_a_directory() -> None:
    spec = JobSpec("x", stage_out=[StageOut(Path("a/b"), "out/"), StageOut(Path("a/b"), "file:///out/")])

    assert [it.target for it in plan_of(spec).stage_out] == ["/here/out/b", "/out/b"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("https://example.org/a", "https: is not supported; use a path or a file: URL of this machine"),
        ("s3://bucket/a", "s3: is not supported"),
        ("file://otherhost/a", "is on the machine otherhost"),
        ("file:a", "is no absolute path"),
        ("file:///a%00", "is no absolute path"),
        ("file:///a#b", "has a \\? or #; in the name of a file write %3F and %23"),
        ("file:///a?b", "has a \\? or #"),
    ],
)
def test_other_places_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        path_of(text)


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1))
def test_the_url_of_a_path_means_that_path(text: str) -> None:
    path = Path("/", text)

    assert Path(path_of(path.as_uri())) == path


def test_all_problems_are_reported_together() -> None:
    spec = JobSpec(
        "x",
        directory=Path("/work"),
        stage_in=[StageIn("ok", Path("a")), StageIn("http://x/y", Path("a"))],
        stage_out=[StageOut(Path("a"), "file://x/y")],
        cleanup=[
            Path("fine/too"),
            Path("/work/fine"),
            Path(),
            Path("a/../.."),
            Path("/work"),
            Path("/workshop"),
            Path("/work/../etc"),
            Path("~/x"),
        ],
    )

    assert [it.split(":")[0] for it in staging_problems(spec, "/here")] == [
        "stage_in[1].source",
        "stage_out[0].target",
        *(f"cleanup[{index}]" for index in range(2, 8)),
    ]


def test_without_a_directory_cleanup_is_below_that_of_the_program() -> None:
    assert not list(staging_problems(JobSpec("x", cleanup=[Path("/here/a")]), "/here"))
    assert list(staging_problems(JobSpec("x", cleanup=[Path("/a")]), "/here"))


def test_cleanup_paths_of_a_remote_job_without_a_directory_are_checked_by_the_job() -> None:
    paths = ["/a", "~/a", "a", "/", "~", "/a/../b"]

    found = [list(staging_problems(JobSpec("x", cleanup=[Path(it)]), None)) for it in paths]

    assert [not it for it in found] == [True, True, True, False, False, False]
    assert list(staging_problems(JobSpec("x", cleanup=[Path("/a")], directory=Path("/there")), None))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (StageOutFlags.NONE, (SUCCESS,)),
        (StageOutFlags.IF_PRESENT, (SUCCESS,)),
        (StageOutFlags.ON_ERROR | StageOutFlags.IF_PRESENT, (ERROR,)),
        (StageOutFlags.ON_CANCEL | StageOutFlags.ON_SUCCESS, (SUCCESS, CANCEL)),
        (StageOutFlags.ALWAYS, (SUCCESS, ERROR, CANCEL)),
    ],
)
def test_flags_mean_ends_of_the_job(flags: StageOutFlags, expected: tuple[Outcome, ...]) -> None:
    assert outcomes(flags) == expected


def test_a_plan_has_the_staging_of_the_spec() -> None:
    spec = JobSpec(
        "x",
        stage_in=[StageIn("a", Path("b"), StagingMode.LINK)],
        stage_out=[StageOut(Path("c"), "d", StageOutFlags.IF_PRESENT, StagingMode.MOVE)],
        cleanup=[Path("e/")],
    )

    made_plan = plan_of(spec)

    (stage_in,), (fetch,) = made_plan.stage_in, made_plan.stage_out
    assert (stage_in.mode, stage_in.target, stage_in.is_optional) == (StagingMode.LINK, "b", False)
    assert (fetch.mode, fetch.source, fetch.is_optional) == (StagingMode.MOVE, "c", True)
    assert (made_plan.cleanup, made_plan.cleanup_outcomes) == (("e",), tuple(Outcome))


def test_a_missing_source_is_a_problem_unless_a_dependency_may_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    sources = [StageIn(name, Path("a")) for name in ("there", "dangling", "missing")]

    _, found = staged(JobSpec("x", stage_in=sources))
    later, nothing = staged(JobSpec("x", stage_in=sources, attributes=JobAttributes(after=["4711"])))

    assert found == [f"stage_in[2].source: '{tmp_path}/missing' does not exist"]
    assert nothing == []
    assert str(tmp_path / "there") in {it.source for it in later.stage_in or ()}


@pytest.mark.parametrize("script", ["{directory}/", "~/", ""], ids=["absolute", "at home", "relative"])
@pytest.mark.parametrize(("target", "place"), [("pre.sh", "pre.sh"), ("tree", "tree/pre.sh")])
def test_a_script_that_is_staged_in_need_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, place: str, script: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    spec = JobSpec(
        "x",
        directory=tmp_path,
        pre_launch=Path(script.format(directory=tmp_path) + place),
        stage_in=[StageIn("/a", Path(target))],
    )

    assert local_problems(spec, "/bin/sh") == []
