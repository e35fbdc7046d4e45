"""What is mirrored here of where files are elsewhere: what another machine has done there is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi.contract.config import BatchConfig
from jpsi.engine.mirrored_side import MirroredSide
from jpsi.engine.spool import Spool
from jpsi.testing import ElsewhereTransport


@pytest.fixture
def side(tmp_path: Path) -> MirroredSide:
    side = MirroredSide(Spool(tmp_path / "mirror"), ElsewhereTransport(tmp_path / "far home"), BatchConfig())
    side.spool.open()
    return side


@pytest.fixture
def far(side: MirroredSide) -> Path:
    """The folder of a job over there."""
    folder = Path(side.layout().jobs) / "a1"
    folder.mkdir(parents=True)
    (folder / "intent.1.json").write_text('{"id": "a1", "attempt": 1}\n')
    (folder / "claim.1").write_text("17\n")
    return folder


def test_a_later_attempt_of_another_machine_is_taken_with_its_claim(side: MirroredSide, far: Path) -> None:
    side.find_others()
    (far / "intent.2.json").write_text('{"id": "a1", "attempt": 2}\n')
    (far / "claim.2").write_text("18\n")

    assert side.refresh(["jobs/a1"])

    intent, claim = side.spool.last_intent("a1"), side.spool.claim("a1", 2)
    assert intent is not None
    assert claim is not None
    assert (intent.attempt, intent.native_id, claim.text) == (2, None, "18")


def test_an_attempt_that_is_here_stays_as_it_is(side: MirroredSide, far: Path) -> None:
    """It knows its native id."""
    side.find_others()
    intent = Path(side.spool.folder("a1"), "intent.1.json")
    with intent.open("a") as file:
        file.write("\n17")
    before = intent.read_text()
    (far / "claim.1").write_text("18\n")

    assert side.refresh(["jobs/a1"])

    assert intent.read_text() == before
    assert side.spool.claim("a1", 1) is not None
