"""The verdicts on facts that were found out about an executor."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

import jpsi
from jpsi.plugin import TransportError
from jpsi_cli.doctor.checks import findings
from jpsi_cli.doctor.facts import NAMED, PLAIN, SIZED, Facts, ProbeResult, Verdict, configuration, is_healthy

OK, WARNING, WRONG, SKIPPED = Verdict


def _ran(evidence: jpsi.Evidence = jpsi.Evidence.MARKER) -> ProbeResult:
    status = jpsi.JobStatus(jpsi.JobState.COMPLETED, exit_code=0, evidence=evidence)
    return ProbeResult(status=status, seconds=1.25, node="node01", folder="/work/jobs/1")


def _failed(evidence: jpsi.Evidence = jpsi.Evidence.QUEUE) -> ProbeResult:
    status = jpsi.JobStatus(jpsi.JobState.FAILED, message="it\nfailed", evidence=evidence)
    return ProbeResult(status=status, folder="/work/jobs/1")


_WAITS = ProbeResult(
    status=jpsi.JobStatus(jpsi.JobState.QUEUED, message="Resources"), seconds=60, folder="/w"
)
_REFUSED = ProbeResult(refusal="no account")
_SILENT = jpsi.SubmitException("no answer")
_HOUR = timedelta(hours=1)
_MAIN = jpsi.Queue(
    name="main", native_state="UP", is_open=True, is_started=True, is_default=True, max_walltime=_HOUR
)
_NAMELESS = jpsi.Queue(name="", native_state="on", is_default=True)
_DEBUG = jpsi.Queue(name="debug", native_state="UP", is_open=True, is_started=True)
SOUND = Facts(
    executor="slurm",
    programs={"sbatch": "/usr/bin/sbatch"},
    version="slurm 22.05",
    queues=(_MAIN, _DEBUG),
    default_duration=timedelta(minutes=10),
    array_size=1000,
    probes={PLAIN: _ran(), NAMED: _ran(), SIZED: _ran()},
    is_accounted=True,
)


def _judged(name: str, **facts: Any) -> tuple[Verdict, str]:
    (found,) = [it for it in findings(attrs.evolve(SOUND, **facts)) if it.name == name]
    return found.verdict, found.message


def test_sound_facts_give_only_ok_and_no_advice() -> None:
    found = list(findings(SOUND))

    assert {it.verdict for it in found} == {OK}
    assert is_healthy(found)
    assert configuration(SOUND, found) == {}


def test_without_commands_only_the_job_is_checked() -> None:
    probes = {PLAIN: _ran(jpsi.Evidence.PROCESS), NAMED: _ran(), SIZED: _ran()}
    found = list(findings(Facts(executor="local", probes=probes)))

    assert [(it.name, it.verdict) for it in found] == [
        ("batch system", SKIPPED),
        ("job", OK),
        ("work directory", OK),
        ("names", OK),
        ("memory", OK),
    ]


def test_without_a_connection_all_other_checks_are_skipped() -> None:
    lost = TransportError("login1 cannot be reached: ssh: connect to host login1 port 22: Connection refused")
    found = list(findings(Facts(executor="login1", connection=lost)))

    assert (found[0].name, found[0].verdict, found[0].message) == ("connection", WRONG, str(lost))
    assert {(it.verdict, it.message) for it in found[1:]} == {(SKIPPED, "there is no connection")}
    assert not is_healthy(found)


def test_connection_names_the_host_of_the_commands() -> None:
    assert _judged("connection", connection="login1") == (OK, "commands run on login1")
    assert "connection" not in [it.name for it in findings(SOUND)]


def test_an_outage_is_wrong_even_without_programs() -> None:
    assert _judged("answer", programs={}, answer_error=_SILENT)[0] is WRONG


_TABLE: list[tuple[str, dict[str, Any], Verdict, str]] = [
    ("commands", {"programs": {"a": None, "b": "/b", "c": None}}, WRONG, "a, c are not on PATH"),
    ("commands", {"programs": {"a": None}}, WRONG, "a is not on PATH"),
    ("commands", {"programs": _SILENT}, WRONG, "cannot be searched for: no answer"),
    ("version", {"version": _SILENT}, WARNING, "no answer"),
    ("version", {"version": None}, OK, "does not print it"),
    (
        "version",
        {"answer_error": _SILENT},
        SKIPPED,
        "the batch system does not answer; its command says slurm 22",
    ),
    ("version", {"answer_error": _SILENT, "version": None}, SKIPPED, "the batch system does not answer"),
    ("answer", {"answer_error": _SILENT}, WRONG, "no answer"),
    ("queues", {"queues": _SILENT}, WARNING, "no answer"),
    ("queues", {"queues": ()}, WARNING, "no queue takes jobs"),
    ("queues", {"queues": (_DEBUG,)}, OK, "does not say which one is the default"),
    ("queues", {"queues": (_NAMELESS,)}, OK, "a queue without a name"),
    ("time limit", {"queues": (_DEBUG,)}, SKIPPED, ""),
    ("time limit", {"queues": _SILENT}, SKIPPED, ""),
    ("time limit", {"default_duration": timedelta(hours=2)}, WARNING, "is 2:00:00, and main allows 1:00:00"),
    ("time limit", {"default_duration": timedelta(0)}, WARNING, "is no limit, and main allows 1:00:00"),
    ("job", {"probes": {}}, SKIPPED, "no probe job was submitted"),
    ("job", {"probes": {PLAIN: _REFUSED}}, WRONG, "refuses the simplest job: no account"),
    ("job", {"probes": {PLAIN: _WAITS}}, WARNING, "not ended after 60 s, and jpsi cancelled it: Resources"),
    ("job", {"probes": {PLAIN: _failed()}}, WRONG, "FAILED: it failed"),
    ("work directory", {"probes": {PLAIN: _failed()}}, WRONG, "no exit marker in its folder, /work/jobs/1"),
    ("work directory", {"probes": {PLAIN: _ran(jpsi.Evidence.ACCOUNTING)}}, WRONG, "no exit marker"),
    ("work directory", {"probes": {PLAIN: _failed(jpsi.Evidence.MARKER)}}, OK, "left its exit marker"),
    ("work directory", {"probes": {PLAIN: _WAITS}}, SKIPPED, ""),
    ("work directory", {"probes": {PLAIN: _REFUSED}}, SKIPPED, ""),
    ("accounting", {"is_accounted": None}, WARNING, "there is none"),
    (
        "accounting",
        {"is_accounted": None, "queue_tells_end": True},
        WARNING,
        "the queue shows only for a while",
    ),
    ("accounting", {"is_accounted": False}, OK, "does not know the job yet"),
    ("accounting", {"is_accounted": _SILENT}, WARNING, "no answer"),
    ("accounting", {"probes": {}}, SKIPPED, ""),
    ("accounting", {"probes": {PLAIN: _REFUSED}}, SKIPPED, ""),
    (
        "names",
        {"probes": {PLAIN: _ran(), NAMED: _REFUSED}},
        WARNING,
        "refuses a long name with letters of any alphabet",
    ),
    (
        "memory",
        {"probes": {PLAIN: _ran(), SIZED: _REFUSED}},
        WARNING,
        "refuses a job that asks for memory: no account",
    ),
    ("memory", {"probes": {PLAIN: _ran(), SIZED: _WAITS}}, WARNING, "unlike one without: Resources"),
    ("memory", {"probes": {PLAIN: _WAITS, SIZED: _WAITS}}, SKIPPED, ""),
    ("memory", {"probes": {PLAIN: _REFUSED, SIZED: _REFUSED}}, SKIPPED, ""),
    ("arrays", {"array_size": None}, OK, "one by one"),
    ("arrays", {"array_size": None, "jobs_per_submission": 100}, OK, "up to 100 jobs are submitted with one"),
    ("arrays", {"answer_error": _SILENT}, SKIPPED, ""),
]


@pytest.mark.parametrize(("name", "facts", "verdict", "message"), _TABLE)
def test_each_check_has_its_verdict(name: str, facts: dict[str, Any], verdict: Verdict, message: str) -> None:
    found = _judged(name, **facts)

    assert found[0] is verdict
    assert message in found[1]


def _advice(**facts: Any) -> dict[str, Any]:
    changed = attrs.evolve(SOUND, **facts)
    return configuration(changed, list(findings(changed)))


def test_advice_is_a_piece_of_configuration() -> None:
    assert _advice(default_duration=timedelta(0), probes={PLAIN: _failed()}) == {
        "executors": {
            "slurm": {
                "config": {"default_duration": 3600, "work_directory": "/a/directory/that/all/nodes/see"}
            }
        }
    }


def test_advice_for_a_target_is_below_targets() -> None:
    closed = attrs.evolve(SOUND, executor="cluster", is_target=True)

    found = _advice(
        executor=closed.executor,
        is_target=True,
        queues=(jpsi.Queue(name="main", native_state="DRAIN", is_open=False, is_default=True), _DEBUG),
    )

    assert found == {"targets": {"cluster": {"defaults": {"queue_name": "debug"}}}}


@pytest.mark.parametrize(
    ("probes", "is_good"), [({PLAIN: _WAITS}, True), ({PLAIN: _failed()}, False), ({PLAIN: _REFUSED}, False)]
)
def test_warnings_are_healthy(probes: dict[str, ProbeResult], *, is_good: bool) -> None:
    assert is_healthy(list(findings(attrs.evolve(SOUND, probes=probes)))) is is_good


def test_each_damaged_file_is_a_warning() -> None:
    found = list(findings(attrs.evolve(SOUND, damaged=["job a: x", "job b: y"])))

    damaged = [(it.verdict, it.message) for it in found if it.name == "damaged files"]
    assert damaged == [(Verdict.WARNING, "job a: x"), (Verdict.WARNING, "job b: y")]
    assert is_healthy(found)
    assert _judged("damaged files", damaged=_SILENT)[0] is Verdict.WARNING
    assert "damaged files" not in [it.name for it in findings(SOUND)]
