from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from jpsi import JobState, Reason
from jpsi_cli.jobs import ls
from jpsi_cli.jobs.job_table import Row, render_lines, table_cells
from jpsi_engine.job_store import Origin
from jpsi_engine.verdict import CANCEL, Stop
from stored_jobs import THEN, active_marker, encoded_end, exit_marker, stored_job

NOW = THEN + timedelta(hours=2)


def row(*args: object, **fields: object) -> Row:
    job = stored_job(*args, **fields)  # type: ignore[arg-type]  # as in the function above
    return Row(job, job.status, job.id[:8])


ROWS = [
    row("11111111-a", "wait", "17"),
    row("22222222-a", None, "18_3", markers=[active_marker("22222222-a", 90)]),
    row(
        "33333333-a",
        "good",
        "19",
        markers=[active_marker("33333333-a", 60)],
        final=encoded_end(JobState.COMPLETED, 3660, 0),
    ),
    row(
        "44444444-a",
        "a name that goes on and on for longer than a column is wide",
        "20",
        markers=[active_marker("44444444-a", 5)],
        final=encoded_end(
            JobState.FAILED, 6, 137, Reason.OUT_OF_MEMORY, "the job used more memory than it may"
        ),
    ),
    row("55555555-a", "named", None, is_revoked=True),
]


def test_without_a_width_nothing_is_cut() -> None:
    assert list(render_lines(ROWS[:3], None, NOW)) == [
        "ID        NATIVE ID  NAME  EXECUTOR  STATE      CODE  AGE   RAN",
        "11111111  17         wait  slurm     QUEUED           2h0m",
        "22222222  18_3       -     slurm     ACTIVE           2h0m  1h58m",
        "33333333  19         good  slurm     COMPLETED  0     2h0m  1h0m",
    ]


def test_jobs_in_the_allocation_of_a_listed_job_are_folded_into_it() -> None:
    fit = stored_job("11111111-a", "fit")
    inner = stored_job("22222222-a", "fit.fit", custom={"jpsi.allocation": fit.id})

    assert ls.ListView(has_members=False).unfolded([fit, inner]) == [fit]
    assert ls.ListView(has_members=False).unfolded([inner]) == [inner]
    assert ls.ListView().unfolded([fit, inner]) == [fit, inner]
    _, line = render_lines([Row(inner, inner.status, inner.id[:8])], None, NOW)
    assert line.endswith("in the allocation of 11111111")


def test_remarks_and_messages_are_notes() -> None:
    notes = [line.partition("2h0m")[2].split("  ")[-1].strip() for line in render_lines(ROWS[3:], None, NOW)][
        1:
    ]

    assert notes == ["the job used more memory than it may", "it was not submitted, and cannot run"]


@pytest.mark.parametrize(
    ("open_jobs", "note"),
    [
        (["asked", "asked"], "2 of them: its cancellation was requested"),
        (["", "asked"], "1 of them: its cancellation was requested"),
        (["", ""], ""),
    ],
    ids=lambda it: ", ".join(it) if isinstance(it, list) else "",
)
def test_an_array_has_the_note_of_its_open_jobs(open_jobs: list[str], note: str) -> None:
    ended = row("11111111-a", final=encoded_end(JobState.CANCELED, 60, reason=Reason.CANCELLED))
    stop = Stop(CANCEL, THEN).content
    members = [
        ended,
        *(row(f"{at}2222222-a", stop=stop if asked else None) for at, asked in enumerate(open_jobs)),
    ]

    _, line = render_lines([Row(ended.job, ended.status, "array", members)], None, NOW)

    assert line.partition("2h0m")[2].strip() == note


def test_repetitions_are_noted_behind_the_failure() -> None:
    repeated = "99999999 has repeated it, and completed"
    failed = row("11111111-a", final=encoded_end(JobState.FAILED, 6, 7, Reason.EXIT_CODE, "it is so"))
    array = Row(failed.job, failed.status, "22222222", [failed, ROWS[2]], repeated=repeated)

    table = list(render_lines([attrs.evolve(failed, repeated=repeated), array], None, NOW))

    assert table[1].endswith(f"  {repeated}")
    assert table[2].endswith(f" failed: exit code 7; {repeated}")


@pytest.mark.parametrize("width", range(20, 161, 7))
def test_the_table_fits_and_keeps_ids_and_states(width: int) -> None:
    table = list(render_lines(ROWS, width, NOW))

    assert max(map(len, table)) <= width
    for line, one in zip(table[1:], ROWS, strict=True):
        assert line.startswith(one.id)
        assert one.status.state.value in line


def test_the_least_important_columns_are_dropped_first() -> None:
    headings = [next(render_lines(ROWS, width, NOW)).split("  ") for width in (200, 100, 60, 30)]

    columns = [[heading.strip() for heading in found if heading] for found in headings]
    assert [len(it) for it in columns] == sorted((len(it) for it in columns), reverse=True)
    assert "AGE" not in columns[2]
    assert "NAME" in columns[2]


def test_the_line_of_an_array_counts_and_dates_all_its_jobs() -> None:
    old = row("11111111-a", "n", "18_1")
    new = row("22222222-a", "n", "18_2", submitted=3600, markers=[active_marker("22222222-a", 3660)])
    array = Row(new.job, new.status, "33333333", [old, new])

    assert list(render_lines([array], None, NOW))[1].split()[-1] == "2h0m"
    assert "1 QUEUED, 1 ACTIVE" in ls._screen([array], NOW).splitlines()[0]


def test_a_state_has_its_colour() -> None:
    painted = list(
        render_lines(ROWS, None, NOW, lambda text, colour: f"<{colour}>{text}" if colour else text)
    )

    assert "<yellow>QUEUED" in painted[1]
    assert "<red>FAILED" in painted[4]


def test_control_characters_in_names_are_escaped() -> None:
    text = "\n".join(render_lines([row("11111111-a", "a\x1b[31m\nb")], None, NOW))

    assert "\x1b" not in text
    assert len(text.splitlines()) == 2


def test_a_program_that_has_left_its_exit_code_does_not_run_on() -> None:
    left, requeued, cancelled = (
        row("11111111-a", "left", markers=[active_marker("11111111-a", 10), exit_marker("11111111-a", 70)]),
        row(
            "22222222-a",
            "requeued",
            markers=[
                active_marker("22222222-a", 10),
                exit_marker("22222222-a", 70),
                attrs.evolve(active_marker("22222222-a", 80), restart=1),
            ],
        ),
        row("33333333-a", "stop", markers=[active_marker("33333333-a", 10)], stop=Stop(CANCEL, THEN).content),
    )

    headings, cells = table_cells([left, requeued, cancelled], NOW)

    assert [it[headings.index("STATE")] for it in cells] == ["ACTIVE"] * 3
    assert [it[headings.index("RAN")] for it in cells] == ["1m0s", "1h59m", "1h59m"]
    by_time = ls.ListView(sort="runtime").ordered([it.job for it in (requeued, left)])
    assert [it.name for it in by_time] == ["left", "requeued"]


def test_a_more_recent_status_is_shown() -> None:
    better = attrs.evolve(ROWS[0].status, message="others are before it")

    assert list(render_lines([attrs.evolve(ROWS[0], status=better)], None, NOW))[1].endswith(
        "others are before it"
    )


def test_the_ids_of_processes_go_before_anything_is_cut() -> None:
    local_rows = Origin("local", "", Path("/work/local/vm"), "vm")
    end = encoded_end(JobState.FAILED, 6, 127, Reason.EXECUTABLE, "the executable was not found: simulate")
    rows = [row("11111111-a", "n", "23674.6230430.8d1cf98f", origin=local_rows, final=end)]

    heading, row_ = render_lines(rows, 95, NOW)

    assert "NATIVE ID" not in heading
    assert "AGE" in heading
    assert row_.endswith("the executable was not found: simulate")
    assert "23674.6230430.8d1cf98f" in "".join(render_lines(rows, None, NOW))
