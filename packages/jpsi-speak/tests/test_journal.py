"""The journal of a queue, as a server finds it that starts after another one was killed."""

from __future__ import annotations

from pathlib import Path

from jpsi_speak.journal import Entry, Journal, old_numbers

_DAY = 86400.0


def _submission(number: int, count: int = 1) -> Entry:
    return {"kind": "submission", "number": number, "ids": ["id"] * count}


def _end(job: str, ended: float) -> Entry:
    return {"kind": "end", "job": job, "ended": ended}


def test_a_cut_line_is_removed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(_submission(1), is_durable=True)
    journal.close()
    with (tmp_path / "journal").open("a") as file:
        file.write('{"kind": "su')

    again = Journal(tmp_path / "journal")
    again.append(_submission(2))
    again.close()

    assert list(Journal(tmp_path / "journal").entries()) == [_submission(1), _submission(2)]


def test_a_closed_journal_takes_no_entry(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.close()

    journal.append(_submission(1))

    assert list(Journal(tmp_path / "journal").entries()) == []


def test_entries_are_replaced_as_a_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(_submission(1))
    journal.replace([_submission(2)])
    journal.append(_end("2", 0.0))

    assert list(Journal(tmp_path / "journal").entries()) == [_submission(2), _end("2", 0.0)]


def test_submissions_are_forgotten_a_month_after_the_end_of_their_last_job() -> None:
    entries = [
        *(_submission(1), _end("1", 0.0)),
        *(_submission(5, 2), _end("5_1", 0.0), _end("5_2", 20 * _DAY)),
        *(_submission(8), _end("8", 0.0)),
    ]

    assert old_numbers(entries, 40 * _DAY) == {1}
    assert old_numbers(entries, 60 * _DAY) == {1, 5}
    assert old_numbers([*entries, _submission(9)], 60 * _DAY) == set()
