"""The shell program of a remote submission, run by real shells as on the remote host."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from jpsi.contract.command import Command, CommandResult
from jpsi_engine.remote.ownership import parse_unsafe
from jpsi_engine.remote.submission import (
    RemoteJobFolder,
    RemoteOutcome,
    RemoteSubmission,
    parse_submission,
    render_submission,
)

_NONCE = "0123abcd"
_INTENT, _RUN = '{"id": "a1"}', "#!/bin/sh\necho '$HOME' `x` \\\n"


@pytest.fixture
def submission(tmp_path: Path) -> RemoteSubmission:
    root = tmp_path / "remote host"
    return RemoteSubmission(
        root=str(root),
        directories=[str(root / "jobs"), str(root / "events")],
        folders=[_folder(root, {"intent.1.json": _INTENT, "run.1": _RUN})],
        command=Command(["sh", "-c", "cat; echo Submitted 17; echo note >&2"], stdin="#!/bin/sh\n"),
        script="submit.1",
        answer="answer.1",
    )


def _folder(
    root: Path, files: Mapping[str, str], job_id: str = "a1", *, is_new: bool = True
) -> RemoteJobFolder:
    return RemoteJobFolder(path=str(root / "jobs" / job_id), is_new=is_new, files=files)


def _root(submission: RemoteSubmission) -> Path:
    return Path(submission.root)


def _run(submission: RemoteSubmission, text: str | None = None, shell: str = "sh") -> CommandResult:
    whole = render_submission(submission, _NONCE) if text is None else text
    done = subprocess.run([shell], input=whole, capture_output=True, text=True, check=False)
    return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


def _outcome(submission: RemoteSubmission) -> tuple[RemoteOutcome, CommandResult]:
    return parse_submission(_run(submission), _NONCE)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_files_are_written_and_jobs_submitted_by_one_command(
    submission: RemoteSubmission, shell: str
) -> None:
    outcome, result = parse_submission(_run(submission, shell=shell), _NONCE)

    folder = _root(submission) / "jobs" / "a1"
    assert outcome is RemoteOutcome.ENDED
    assert (result.returncode, result.stdout, result.stderr) == (0, "#!/bin/sh\nSubmitted 17\n", "note\n")
    assert (folder / "intent.1.json").read_text() == f"{_INTENT}\n"
    assert (folder / "run.1").read_text() == _RUN
    assert (folder / "submit.1").read_text() == "#!/bin/sh\n"
    assert (folder / "answer.1").read_text() == "0\n#!/bin/sh\nSubmitted 17\n"


def test_files_are_private_and_jobs_have_the_umask_of_the_user(
    submission: RemoteSubmission,
) -> None:
    old = os.umask(0o027)
    try:
        _, result = _outcome(attrs.evolve(submission, command=Command(["sh", "-c", "umask"])))
    finally:
        os.umask(old)

    assert result.stdout.strip() == "0027"
    modes = {
        path.stat().st_mode & 0o077 for path in [Path(submission.root), *Path(submission.root).rglob("*")]
    }
    assert modes == {0}


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_nothing_is_submitted_from_a_directory_that_others_can_write(
    submission: RemoteSubmission, mode: int
) -> None:
    _outcome(submission)
    _root(submission).chmod(mode)
    other = _folder(_root(submission), {"intent.1.json": _INTENT}, "b2")

    assert _outcome(attrs.evolve(submission, folders=[other]))[0] is RemoteOutcome.NOT_PRIVATE
    assert not (_root(submission) / "jobs" / "b2").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory to another user")
def test_nothing_is_submitted_from_a_directory_of_another_user(submission: RemoteSubmission) -> None:
    _outcome(submission)
    os.chown(_root(submission), 1, 1)
    other = _folder(_root(submission), {"intent.1.json": _INTENT}, "b2")

    assert _outcome(attrs.evolve(submission, folders=[other]))[0] is RemoteOutcome.NOT_PRIVATE


def test_nothing_is_made_on_a_path_that_others_can_change(
    submission: RemoteSubmission, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)

    outcome, result = _outcome(submission)

    assert outcome is RemoteOutcome.NOT_PRIVATE
    assert f"{tmp_path} (owner {os.geteuid()}, drwxrwxrwx)" in (parse_unsafe(result.stdout) or "")
    assert list(tmp_path.iterdir()) == []


def test_directories_on_the_path_may_be_sticky(submission: RemoteSubmission, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    assert _outcome(submission)[0] is RemoteOutcome.ENDED


def test_the_root_may_be_reached_by_a_link(submission: RemoteSubmission, tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir(mode=0o700)
    _root(submission).symlink_to("large disk")

    assert _outcome(submission)[0] is RemoteOutcome.ENDED


def test_the_exit_code_of_the_submit_command_is_returned(submission: RemoteSubmission) -> None:
    command = Command(["sh", "-c", "echo no >&2; exit 3"], stdin="x")

    outcome, result = _outcome(attrs.evolve(submission, command=command))

    assert (outcome, result.returncode, result.stderr) == (RemoteOutcome.ENDED, 3, "no\n")


def test_a_submit_command_killed_by_a_signal_is_reported(submission: RemoteSubmission) -> None:
    outcome, result = _outcome(attrs.evolve(submission, command=Command(["sh", "-c", "kill -9 $$"])))

    assert (outcome, result.returncode) == (RemoteOutcome.ENDED, -9)


def test_a_missing_submit_command_is_reported(submission: RemoteSubmission) -> None:
    outcome, _ = _outcome(attrs.evolve(submission, command=Command(["no-such-command"], stdin="x")))

    assert outcome is RemoteOutcome.NOT_FOUND
    assert not list((_root(submission) / "jobs").iterdir())


@pytest.mark.parametrize("gone", ["jobs", "events"])
def test_a_removed_directory_is_made_again(submission: RemoteSubmission, gone: str) -> None:
    _outcome(submission)
    shutil.rmtree(_root(submission) / gone)
    other = _folder(_root(submission), {"intent.1.json": _INTENT}, "b2")

    assert _outcome(attrs.evolve(submission, folders=[other]))[0] is RemoteOutcome.ENDED
    assert (_root(submission) / "events").is_dir()


def test_the_output_is_kept_if_the_connection_is_lost(submission: RemoteSubmission) -> None:
    text = render_submission(submission, _NONCE)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        subprocess.run(["sh"], input=text.encode(), stdout=closed, check=False)

    answer = _root(submission) / "jobs" / "a1" / "answer.1"
    assert answer.read_text().endswith("Submitted 17\n")


def test_a_job_that_several_clients_send_is_submitted_once(submission: RemoteSubmission) -> None:
    _outcome(submission)

    assert _outcome(submission)[0] is RemoteOutcome.TAKEN


def test_files_are_removed_if_another_client_made_the_attempt(submission: RemoteSubmission) -> None:
    root = _root(submission)
    _outcome(submission)
    second = _folder(root, {"intent.2.json": _INTENT, "run.2": _RUN}, is_new=False)
    new, taken = (
        _folder(root, {"intent.1.json": _INTENT, "run.1": _RUN}, "b2"),
        _folder(root, {"intent.1.json": _INTENT}),
    )

    assert _outcome(attrs.evolve(submission, folders=[second, new, taken]))[0] is RemoteOutcome.TAKEN
    assert [it.name for it in (root / "jobs").iterdir()] == ["a1"]
    assert not list((root / "jobs" / "a1").glob("*.2*"))
    assert (root / "jobs" / "a1" / "run.1").exists()


def test_a_later_attempt_is_made_once(submission: RemoteSubmission) -> None:
    _outcome(submission)
    files = {"intent.2.json": _INTENT, "run.2": _RUN}
    second = attrs.evolve(
        submission,
        folders=[_folder(_root(submission), files, is_new=False)],
        script="submit.2",
        answer="answer.2",
    )

    assert [_outcome(second)[0] for _ in range(2)] == [RemoteOutcome.ENDED, RemoteOutcome.TAKEN]
    assert ((_root(submission) / "jobs" / "a1") / "run.1").exists()


def test_a_failed_write_submits_nothing_and_leaves_nothing(
    submission: RemoteSubmission, tmp_path: Path
) -> None:
    files = {"intent.1.json": "", "no/such": ""}
    broken = attrs.evolve(submission, folders=[_folder(_root(submission), files)])

    outcome, result = _outcome(attrs.evolve(broken, command=Command(["touch", str(tmp_path / "ran")])))

    assert outcome is RemoteOutcome.NOT_WRITTEN
    assert "no/such" in result.stderr
    assert not (_root(submission) / "jobs" / "a1").exists()
    assert not (tmp_path / "ran").exists()


def test_a_root_that_cannot_be_made_is_reported(submission: RemoteSubmission, tmp_path: Path) -> None:
    (tmp_path / "remote host").write_text("a file")

    assert _outcome(submission)[0] is RemoteOutcome.NOT_WRITTEN


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_an_incomplete_program_does_nothing(submission: RemoteSubmission, part: float) -> None:
    text = render_submission(submission, _NONCE)

    result = _run(submission, text[: int(len(text) * part)])

    assert not Path(submission.root).exists()
    assert parse_submission(result, _NONCE)[0] is RemoteOutcome.UNKNOWN


def test_truncated_output_decides_nothing(submission: RemoteSubmission) -> None:
    whole = _run(submission)

    for length in range(len(whole.stdout)):
        cut = attrs.evolve(whole, stdout=whole.stdout[:length])
        assert parse_submission(cut, _NONCE)[0] is RemoteOutcome.UNKNOWN


def test_a_hundred_thousand_lines_arrive_as_they_are(submission: RemoteSubmission) -> None:
    many = "".join(f'{{"line": {number}}}\n' for number in range(100_000))

    outcome, _ = _outcome(
        attrs.evolve(submission, folders=[_folder(_root(submission), {"intent.1.json": many})])
    )

    assert outcome is RemoteOutcome.ENDED
    assert ((_root(submission) / "jobs" / "a1") / "intent.1.json").read_text() == many


def test_several_jobs_are_written_for_one_command_or_none(submission: RemoteSubmission) -> None:
    root = _root(submission)
    both = [_folder(root, {"intent.1.json": _INTENT}, job_id) for job_id in ("b1", "b2")]
    several = attrs.evolve(submission, folders=both)

    assert _outcome(several)[0] is RemoteOutcome.ENDED
    assert all((Path(it.path) / "intent.1.json").exists() for it in both)
    new = _folder(root, {"intent.1.json": _INTENT}, "b3")
    assert _outcome(attrs.evolve(submission, folders=[new, both[1]]))[0] is RemoteOutcome.TAKEN
    assert not Path(new.path).exists()
    assert Path(both[1].path).exists()
