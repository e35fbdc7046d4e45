"""Tests of the referee: made-up proofs, and the findings that it must have about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos.referee import ForeignJobFacts, JobFacts, Kind, ReportedStatus, judge

_RAN = ("start", "end")
_OWN = ReportedStatus("client", "FAILED", 21, "EXIT_CODE")
_LOST = ReportedStatus("client", "FAILED", None, "LOST")
_CANCELED = ReportedStatus("client", "CANCELED", None, "CANCELLED")

#: Correct outcomes, by their description.
RIGHT: Mapping[str, JobFacts] = {
    "its own code": JobFacts(1, 21, _RAN, [_OWN]),
    "its own code, reported twice": JobFacts(
        1, 21, _RAN, [_OWN, ReportedStatus("disk", "FAILED", 21, "EXIT_CODE")]
    ),
    "done": JobFacts(0, 0, _RAN, [ReportedStatus("client", "COMPLETED", 0)]),
    "killed before it was recorded": JobFacts(1, 21, is_on_disk=False),
    "cancelled before it began": JobFacts(1, 21, (), [_CANCELED], is_cancelled=True),
    "cancelled while it ran": JobFacts(1, 21, ("start", "killed"), [_CANCELED], is_cancelled=True),
    "cancelled too late": JobFacts(1, 21, _RAN, [_OWN], is_cancelled=True),
    "forgotten before it began": JobFacts(1, 21, (), [_LOST], is_forgotten=True),
    "killed by its system": JobFacts(1, 21, ("start",), [_LOST], is_forgotten=True, is_killed=True),
    "run again, as requested": JobFacts(1, 21, ("start", "killed", *_RAN), [_OWN], reruns=1),
    "no claim could be written": JobFacts(
        1, 21, (), [ReportedStatus("client", "FAILED", 125)], is_unwritable=True
    ),
    "damaged so that its request is lost": JobFacts(1, 21, _RAN, (), is_damaged=True),
}

#: Wrong outcomes, with the findings about them.
WRONG: Sequence[tuple[str, Kind, JobFacts]] = [
    ("ran and not on disk", Kind.LOST, JobFacts(1, 21, _RAN, is_on_disk=False)),
    ("ran and LOST", Kind.LOST, JobFacts(1, 21, _RAN, [_LOST])),
    ("ran and LOST, cancelled too late", Kind.LOST, JobFacts(1, 21, _RAN, [_LOST], is_cancelled=True)),
    ("ran and LOST after it was forgotten", Kind.LOST, JobFacts(1, 21, _RAN, [_LOST], is_forgotten=True)),
    (
        "ran and LOST, as no exit could be written",
        Kind.LOST,
        JobFacts(1, 21, _RAN, [_LOST], is_unwritable=True),
    ),
    ("runs and LOST", Kind.LOST, JobFacts(1, 21, ("start",), [_LOST])),
    ("ran twice", Kind.DOUBLED, JobFacts(1, 21, (*_RAN, *_RAN), [_OWN])),
    ("began twice", Kind.DOUBLED, JobFacts(1, 21, ("start", "killed", *_RAN), [_OWN])),
    ("ran three times", Kind.DOUBLED, JobFacts(1, 21, (*_RAN, *_RAN, *_RAN), [_OWN], reruns=1)),
    ("ran twice, and damaged", Kind.DOUBLED, JobFacts(1, 21, (*_RAN, *_RAN), (), is_damaged=True)),
    ("not final", Kind.STUCK, JobFacts(1, 21, _RAN)),
    ("not final and not run", Kind.STUCK, JobFacts(1, 21)),
    ("another's code", Kind.WRONG, JobFacts(1, 21, _RAN, [ReportedStatus("client", "FAILED", 22)])),
    ("a code, and not run", Kind.WRONG, JobFacts(1, 21, (), [_OWN])),
    (
        "the code of a foreign job",
        Kind.WRONG,
        JobFacts(1, 21, (), [ReportedStatus("client", "FAILED", 3)], is_forgotten=True),
    ),
    ("done, and not run", Kind.WRONG, JobFacts(0, 0, (), [ReportedStatus("client", "COMPLETED", 0)])),
    ("done, and failed", Kind.WRONG, JobFacts(1, 21, _RAN, [ReportedStatus("client", "COMPLETED", 0)])),
    ("done, and runs", Kind.WRONG, JobFacts(0, 0, ("start",), [ReportedStatus("client", "COMPLETED", 0)])),
    ("failed, and done", Kind.WRONG, JobFacts(0, 0, _RAN, [ReportedStatus("client", "FAILED", 0)])),
    ("CANCELED without a request", Kind.WRONG, JobFacts(1, 21, (), [_CANCELED])),
    ("CANCELED without a request, and ran", Kind.WRONG, JobFacts(1, 21, _RAN, [_CANCELED])),
    ("CANCELED as it was forgotten", Kind.WRONG, JobFacts(1, 21, (), [_CANCELED], is_forgotten=True)),
    (
        "killed without a cause",
        Kind.WRONG,
        JobFacts(1, 21, _RAN, [ReportedStatus("client", "FAILED", 143, "SIGNAL")]),
    ),
    ("not set up", Kind.WRONG, JobFacts(1, 21, (), [ReportedStatus("client", "FAILED", 125)])),
    ("LOST, and waits", Kind.WRONG, JobFacts(1, 21, (), [_LOST])),
    (
        "a node that did not fail",
        Kind.WRONG,
        JobFacts(1, 21, (), [ReportedStatus("client", "FAILED", None, "NODE_FAIL")]),
    ),
    ("two outcomes", Kind.WRONG, JobFacts(1, 21, _RAN, [_OWN, _CANCELED], is_cancelled=True)),
    ("no end", Kind.WRONG, JobFacts(1, 21, _RAN, [ReportedStatus("client", "QUEUED")])),
]


def failures() -> list[str]:
    """Return the faults that the referee misses or invents; none if it is right."""
    found = []
    for name, facts in RIGHT.items():
        found += [f"{name}: right, but called {it}" for it in judge([facts]).findings]
    for name, kind, facts in WRONG:
        counts = {it: judge([facts]).count(it) for it in Kind}
        if counts != {**dict.fromkeys(Kind, 0), kind: 1}:
            found.append(f"{name}: {kind.value}, but counted as {counts}")
    if judge([], [ForeignJobFacts("17", "cancelled"), ForeignJobFacts("18")]).count(Kind.WRONG) != 1:
        found.append("a foreign job was cancelled: not seen")
    return found
