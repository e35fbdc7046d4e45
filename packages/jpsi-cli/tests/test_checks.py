"""What is thought of what was found out about an executor."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

import jpsi
from jpsi.plugin import TransportError
from jpsi_cli.doctor.checks import findings
from jpsi_cli.doctor.facts import NAMED, PLAIN, SIZED, Facts, Trial, Verdict, configuration, is_healthy

OK, WARNING, WRONG, SKIPPED = Verdict


def _ran(evidence: jpsi.Evidence = jpsi.Evidence.MARKER) -> Trial:
    status = jpsi.JobStatus(jpsi.JobState.COMPLETED, exit_code=0, evidence=evidence)
    return Trial(status=status, seconds=1.25, node="node01", folder="/work/jobs/1")


def _failed(evidence: jpsi.Evidence = jpsi.Evidence.QUEUE) -> Trial:
    status = jpsi.JobStatus(jpsi.JobState.FAILED, message="it\nfailed", evidence=evidence)
    return Trial(status=status, folder="/work/jobs/1")


_WAITS = Trial(status=jpsi.JobStatus(jpsi.JobState.QUEUED, message="Resources"), seconds=60, folder="/w")
_REFUSED = Trial(refusal="no account")
_SILENT = jpsi.SubmitException("no answer")
_HOUR = timedelta(hours=1)
_MAIN = jpsi.Queue(name="main", word="UP", is_open=True, is_started=True, is_default=True, longest=_HOUR)
_DEBUG = jpsi.Queue(name="debug", word="UP", is_open=True, is_started=True)
SOUND = Facts(
    executor="slurm",
    programs={"sbatch": "/usr/bin/sbatch"},
    version="slurm 22.05",
    queues=(_MAIN, _DEBUG),
    usual=timedelta(minutes=10),
    array_size=1000,
    trials={PLAIN: _ran(), NAMED: _ran(), SIZED: _ran()},
    is_accounted=True,
)


def _judged(name: str, **facts: Any) -> tuple[Verdict, str]:
    (found,) = [it for it in findings(attrs.evolve(SOUND, **facts)) if it.name == name]
    return found.verdict, found.message


def test_where_all_is_well_all_is_ok_and_nothing_is_to_be_configured() -> None:
    found = list(findings(SOUND))

    assert {it.verdict for it in found} == {OK}
    assert is_healthy(found)
    assert configuration(SOUND, found) == {}


def test_of_what_has_no_commands_the_job_alone_is_judged() -> None:
    trials = {PLAIN: _ran(jpsi.Evidence.PROCESS), NAMED: _ran(), SIZED: _ran()}
    found = list(findings(Facts(executor="local", trials=trials)))

    assert [(it.name, it.verdict) for it in found] == [
        ("batch system", SKIPPED),
        ("job", OK),
        ("work directory", OK),
        ("names", OK),
        ("memory", OK),
    ]


def test_without_a_connection_nothing_else_is_judged() -> None:
    lost = TransportError("far cannot be reached: ssh: connect to host far port 22: Connection refused")
    found = list(findings(Facts(executor="far", connection=lost)))

    assert (found[0].name, found[0].verdict, found[0].message) == ("connection", WRONG, str(lost))
    assert {(it.verdict, it.message) for it in found[1:]} == {(SKIPPED, "there is no connection")}
    assert not is_healthy(found)


def test_the_machine_is_named_on_which_commands_run() -> None:
    assert _judged("connection", connection="login1") == (OK, "commands run on login1")
    assert "connection" not in [it.name for it in findings(SOUND)]


def test_silence_is_wrong_also_where_no_command_is_looked_for() -> None:
    assert _judged("answer", programs={}, silence=_SILENT)[0] is WRONG


_TABLE: list[tuple[str, dict[str, Any], Verdict, str]] = [
    ("commands", {"programs": {"a": None, "b": "/b", "c": None}}, WRONG, "a, c are not on PATH"),
    ("commands", {"programs": {"a": None}}, WRONG, "a is not on PATH"),
    ("commands", {"programs": _SILENT}, WRONG, "cannot be looked for: no answer"),
    ("version", {"version": _SILENT}, WARNING, "no answer"),
    ("version", {"version": None}, OK, "not told"),
    ("answer", {"silence": _SILENT}, WRONG, "no answer"),
    ("queues", {"queues": _SILENT}, WARNING, "no answer"),
    ("queues", {"queues": ()}, WARNING, "none takes jobs"),
    ("queues", {"queues": (_DEBUG,)}, OK, "is not told"),
    ("queues", {"queues": (jpsi.Queue(name="", word="on", is_default=True),)}, OK, "one without a name"),
    ("time limit", {"queues": (_DEBUG,)}, SKIPPED, ""),
    ("time limit", {"queues": _SILENT}, SKIPPED, ""),
    ("time limit", {"usual": timedelta(hours=2)}, WARNING, "gets 2:00:00, and main allows 1:00:00"),
    ("time limit", {"usual": timedelta(0)}, WARNING, "gets no limit, and main allows 1:00:00"),
    ("job", {"trials": {}}, SKIPPED, "none was tried"),
    ("job", {"trials": {PLAIN: _REFUSED}}, WRONG, "refused: no account"),
    ("job", {"trials": {PLAIN: _WAITS}}, WARNING, "not ended after 60 s, and was cancelled: Resources"),
    ("job", {"trials": {PLAIN: _failed()}}, WRONG, "FAILED: it failed"),
    ("work directory", {"trials": {PLAIN: _failed()}}, WRONG, "no word in its folder, /work/jobs/1"),
    ("work directory", {"trials": {PLAIN: _ran(jpsi.Evidence.ACCOUNTING)}}, WRONG, "no word"),
    ("work directory", {"trials": {PLAIN: _failed(jpsi.Evidence.MARKER)}}, OK, "has left its word"),
    ("work directory", {"trials": {PLAIN: _WAITS}}, SKIPPED, ""),
    ("work directory", {"trials": {PLAIN: _REFUSED}}, SKIPPED, ""),
    ("accounting", {"is_accounted": None}, WARNING, "there is none"),
    ("accounting", {"is_accounted": False}, OK, "does not know the job yet"),
    ("accounting", {"is_accounted": _SILENT}, WARNING, "no answer"),
    ("accounting", {"trials": {}}, SKIPPED, ""),
    ("accounting", {"trials": {PLAIN: _REFUSED}}, SKIPPED, ""),
    ("names", {"trials": {PLAIN: _ran(), NAMED: _REFUSED}}, WARNING, "long name of any letters is refused"),
    ("memory", {"trials": {PLAIN: _ran(), SIZED: _REFUSED}}, WARNING, "memory is refused: no account"),
    ("memory", {"trials": {PLAIN: _ran(), SIZED: _WAITS}}, WARNING, "as one without: Resources"),
    ("memory", {"trials": {PLAIN: _WAITS, SIZED: _WAITS}}, SKIPPED, ""),
    ("memory", {"trials": {PLAIN: _REFUSED, SIZED: _REFUSED}}, SKIPPED, ""),
    ("arrays", {"array_size": None}, OK, "one by one"),
    ("arrays", {"silence": _SILENT}, SKIPPED, ""),
]


@pytest.mark.parametrize(("name", "facts", "verdict", "message"), _TABLE)
def test_judgements(name: str, facts: dict[str, Any], verdict: Verdict, message: str) -> None:
    found = _judged(name, **facts)

    assert found[0] is verdict
    assert message in found[1]


def _advice(**facts: Any) -> dict[str, Any]:
    changed = attrs.evolve(SOUND, **facts)
    return configuration(changed, list(findings(changed)))


def test_advice_is_a_piece_of_configuration() -> None:
    assert _advice(usual=timedelta(0), trials={PLAIN: _failed()}) == {
        "executors": {
            "slurm": {
                "config": {"default_duration": 3600, "work_directory": "/a/directory/that/all/nodes/see"}
            }
        }
    }


def test_of_a_target_it_is_that_of_the_target() -> None:
    closed = attrs.evolve(SOUND, executor="cluster", is_target=True)

    found = _advice(
        executor=closed.executor,
        is_target=True,
        queues=(jpsi.Queue(name="main", word="DRAIN", is_open=False, is_default=True), _DEBUG),
    )

    assert found == {"targets": {"cluster": {"defaults": {"queue_name": "debug"}}}}


@pytest.mark.parametrize(
    ("trials", "is_good"), [({PLAIN: _WAITS}, True), ({PLAIN: _failed()}, False), ({PLAIN: _REFUSED}, False)]
)
def test_a_warning_is_no_illness(trials: dict[str, Trial], *, is_good: bool) -> None:
    assert is_healthy(list(findings(attrs.evolve(SOUND, trials=trials)))) is is_good


def test_damaged_files_are_told_each_and_keep_no_job_from_running() -> None:
    found = list(findings(attrs.evolve(SOUND, damaged=["job a: x", "job b: y"])))

    told = [(it.verdict, it.message) for it in found if it.name == "damaged files"]
    assert told == [(Verdict.WARNING, "job a: x"), (Verdict.WARNING, "job b: y")]
    assert is_healthy(found)
    assert _judged("damaged files", damaged=_SILENT)[0] is Verdict.WARNING
    assert "damaged files" not in [it.name for it in findings(SOUND)]
