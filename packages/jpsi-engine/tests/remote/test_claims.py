from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jpsi.contract.command import CommandResult
from jpsi_engine.remote.claims import RemoteClaim, parse_claim, render_claim_query, render_revocation


def _run(text: str) -> RemoteClaim | None:
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)
    return parse_claim(CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr))


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a1"
    folder.mkdir()
    return folder / "claim.1"


def test_a_missing_claim_is_free(claim: Path) -> None:
    assert _run(render_claim_query(str(claim))) == RemoteClaim(is_made=False, text=None)
    assert not claim.exists()


def test_an_existing_claim_names_its_maker(claim: Path) -> None:
    claim.write_text("17\n")

    for text in (render_claim_query(str(claim)), render_revocation(str(claim))):
        assert _run(text) == RemoteClaim(is_made=False, text="17")
    assert claim.read_text() == "17\n"


def test_an_empty_claim_exists(claim: Path) -> None:
    claim.touch()

    assert _run(render_revocation(str(claim))) == RemoteClaim(is_made=False, text="")


def test_revoking_makes_the_claim(claim: Path) -> None:
    assert _run(render_revocation(str(claim))) == RemoteClaim(is_made=True, text=None)
    assert claim.read_text() == "revoked"
    assert claim.stat().st_mode & 0o077 == 0


def test_one_of_many_concurrent_revocations_makes_the_claim(claim: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _run(render_revocation(str(claim))), range(16)))

    assert sum(answer is not None and answer.is_made for answer in answers) == 1


def test_an_attempt_revoked_before_its_folder_exists_never_runs(claim: Path) -> None:
    claim.parent.rmdir()

    assert _run(render_claim_query(str(claim))) == RemoteClaim(is_made=False, text=None)
    assert _run(render_revocation(str(claim))) == RemoteClaim(is_made=True, text=None)
    assert claim.read_text() == "revoked"


def test_a_claim_that_can_be_neither_made_nor_read_decides_nothing(tmp_path: Path) -> None:
    text = render_revocation(str(tmp_path / ("x" * 300)))

    assert _run(text) is None


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
def test_malformed_output_decides_nothing(result: CommandResult) -> None:
    assert parse_claim(result) is None
