from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jpsi.contract.command import CommandResult
from jpsi_engine.remote.claims import RemoteClaim, parse_claim, render_claim_query, render_revocation


def _asked(text: str) -> RemoteClaim | None:
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)
    return parse_claim(CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr))


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a1"
    folder.mkdir()
    return folder / "claim.1"


def test_a_claim_that_nobody_has_made_is_free(claim: Path) -> None:
    assert _asked(render_claim_query(str(claim))) == RemoteClaim(is_made=False, text=None)
    assert not claim.exists()


def test_a_claim_that_is_there_says_who_made_it(claim: Path) -> None:
    claim.write_text("17\n")

    for text in (render_claim_query(str(claim)), render_revocation(str(claim))):
        assert _asked(text) == RemoteClaim(is_made=False, text="17")
    assert claim.read_text() == "17\n"


def test_a_claim_that_nothing_was_written_into_yet_is_there(claim: Path) -> None:
    claim.touch()

    assert _asked(render_revocation(str(claim))) == RemoteClaim(is_made=False, text="")


def test_revoking_makes_the_claim(claim: Path) -> None:
    assert _asked(render_revocation(str(claim))) == RemoteClaim(is_made=True, text=None)
    assert claim.read_text() == "revoked"
    assert claim.stat().st_mode & 0o077 == 0


def test_of_many_that_revoke_one_makes_the_claim(claim: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _asked(render_revocation(str(claim))), range(16)))

    assert sum(answer is not None and answer.is_made for answer in answers) == 1


def test_what_is_revoked_before_its_folder_is_there_never_runs(claim: Path) -> None:
    claim.parent.rmdir()

    assert _asked(render_claim_query(str(claim))) == RemoteClaim(is_made=False, text=None)
    assert _asked(render_revocation(str(claim))) == RemoteClaim(is_made=True, text=None)
    assert claim.read_text() == "revoked"


def test_where_a_claim_can_be_neither_made_nor_read_nothing_is_decided(tmp_path: Path) -> None:
    text = render_revocation(str(tmp_path / ("x" * 300)))

    assert _asked(text) is None


@pytest.mark.parametrize(
    "result",
    [
        CommandResult(returncode=0, stdout=""),
        CommandResult(returncode=0, stdout="made"),
        CommandResult(returncode=0, stdout="welcome\n"),
        CommandResult(returncode=1, stdout="made\n"),
        CommandResult(returncode=-9, stdout="made\n", timed_out=True),
    ],
)
def test_an_answer_that_is_none_decides_nothing(result: CommandResult) -> None:
    assert parse_claim(result) is None
