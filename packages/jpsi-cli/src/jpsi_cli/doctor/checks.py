"""The checks of `jpsi doctor`: each is a pure function from facts to a finding.

`examination` collects the facts. A finding may propose values for the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from textwrap import shorten
from typing import Any

import jpsi

from .facts import NAMED, PLAIN, SIZED, Facts, Finding, ProbeResult, Verdict

# The largest length of a refusal in a finding; it may quote the whole request.
_MAX_LENGTH = 300
# What the proposed configuration has as work directory, for the user to replace.
_SHARED = "/a/directory/that/all/nodes/see"
_Result = tuple[Verdict, str] | tuple[Verdict, str, Mapping[str, Any]]


def findings(facts: Facts) -> Iterator[Finding]:
    """Yield all findings, in the order of the report."""
    if facts.connection is not None:
        yield _make_finding("connection", _check_connection(facts.connection))
    if isinstance(facts.connection, jpsi.JpsiError):
        yield from (_make_finding(name, (Verdict.SKIPPED, "there is no connection")) for name in _CHECKS)
        yield from _damaged_file_findings(facts)
        return
    if not facts.has_commands:
        message = "this executor has no batch system with commands; only jobs are checked"
        yield _make_finding("batch system", (Verdict.SKIPPED, message))
    for name, check in _CHECKS.items():
        if name in _OF_JOBS or facts.has_commands:
            yield _make_finding(name, check(facts))
    yield from _damaged_file_findings(facts)


def _damaged_file_findings(facts: Facts) -> Iterator[Finding]:
    sentences = facts.damaged
    if isinstance(sentences, jpsi.JpsiError):
        sentences = [f"the files of jobs cannot be read: {sentences}"]
    for sentence in sentences:
        yield _make_finding("damaged files", (Verdict.WARNING, sentence))


def _make_finding(name: str, result: _Result) -> Finding:
    verdict, message, *advice = result
    return Finding(name=name, verdict=verdict, message=message, advice=advice[0] if advice else {})


def _check_connection(found: str | jpsi.JpsiError) -> _Result:
    if isinstance(found, jpsi.JpsiError):
        return Verdict.WRONG, str(found)
    return Verdict.OK, f"commands run on {found}"


def _check_commands(facts: Facts) -> _Result:
    if isinstance(facts.programs, jpsi.JpsiError):
        return Verdict.WRONG, f"the commands of the batch system cannot be searched for: {facts.programs}"
    missing = [name for name, path in facts.programs.items() if path is None]
    if missing:
        what = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not on PATH"
        return Verdict.WRONG, f"{what}: load the batch system's module, or run jpsi where users submit jobs"
    return Verdict.OK, ", ".join(f"{path}" for path in facts.programs.values())


def _check_version(facts: Facts) -> _Result:
    if isinstance(facts.version, jpsi.JpsiError):
        return Verdict.WARNING, f"the version is not known: {facts.version}"
    if facts.answer_error is not None:
        # another batch system may have a command of this name
        said = f"; its command says {facts.version}" if facts.version else ""
        return Verdict.SKIPPED, f"the batch system does not answer{said}"
    return Verdict.OK, facts.version or "the batch system does not print it"


def _check_answer(facts: Facts) -> _Result:
    if facts.answer_error is not None:
        found = f"the batch system does not answer: {facts.answer_error}"
        if facts.other_that_answers is not None:
            found += f"; {facts.other_that_answers} answers: try jpsi doctor -x {facts.other_that_answers}"
        return Verdict.WRONG, found
    return Verdict.OK, "it lists your jobs"


def _check_queues(facts: Facts) -> _Result:
    if isinstance(facts.queues, jpsi.JpsiError):
        return Verdict.WARNING, f"the queues are not known: {facts.queues}"
    usable = [it for it in facts.queues if it.is_open is not False]
    default = next((it for it in facts.queues if it.is_default), None)
    names = ", ".join(it.name for it in usable if it.name) or "a queue without a name"
    if not usable:
        return Verdict.WARNING, "no queue takes jobs"
    if default is None:
        return Verdict.OK, f"{names}; the batch system does not say which one is the default"
    return _check_default_queue(default, usable[0], names)


def _check_default_queue(default: jpsi.Queue, other: jpsi.Queue, names: str) -> _Result:
    if default.is_open is False:
        advice = {"defaults": {"queue_name": other.name}}
        return Verdict.WARNING, f"jobs go to {default.name}, which takes no jobs; others: {names}", advice
    if default.is_started is False:
        return Verdict.WARNING, f"jobs go to {default.name}, which starts no jobs at the moment"
    return Verdict.OK, f"{names}; jobs go to {default.name or 'it'} unless they name another"


def _check_time_limit(facts: Facts) -> _Result:
    queues = () if isinstance(facts.queues, jpsi.JpsiError) else facts.queues
    default = next((it for it in queues if it.is_default), None)
    if default is None or facts.default_duration is None:
        return Verdict.SKIPPED, "the limit of the default queue is not known"
    rule = f"the time limit of a job that requests none is {facts.default_duration or 'no limit'}"
    if default.max_walltime and (not facts.default_duration or facts.default_duration > default.max_walltime):
        advice = {"config": {"default_duration": int(default.max_walltime.total_seconds())}}
        message = f"{rule}, and {default.name or 'the queue'} allows {default.max_walltime}"
        return Verdict.WARNING, message, advice
    return Verdict.OK, rule


def _check_job(facts: Facts) -> _Result:
    probe = facts.probes.get(PLAIN)
    if probe is None:
        return Verdict.SKIPPED, "no probe job was submitted"
    if probe.refusal is not None:
        return Verdict.WRONG, f"the batch system refuses the simplest job: {probe.refusal}"
    if probe.status is None or not probe.status.final:
        what = f"had not ended after {probe.seconds:.0f} s, and jpsi cancelled it: {_describe_status(probe)}"
        return Verdict.WARNING, f"the probe job {what}"
    if probe.status.state is not jpsi.JobState.COMPLETED:
        return Verdict.WRONG, f"the simplest job is {probe.status.state.value}: {_describe_status(probe)}"
    where = "" if probe.node is None else f" on {probe.node}"
    return Verdict.OK, f"it ran{where}, and ended after {probe.seconds:.1f} s"


def _check_work_directory(facts: Facts) -> _Result:
    probe = facts.probes.get(PLAIN)
    if probe is None or probe.status is None or not probe.status.final:
        return Verdict.SKIPPED, "no probe job has ended"
    if probe.status.evidence in {jpsi.Evidence.MARKER, jpsi.Evidence.PROCESS}:
        return Verdict.OK, f"the job left its exit marker in {probe.folder}"
    message = (
        f"the job left no exit marker in its folder, {probe.folder}: the nodes do not see that "
        "directory, or may not write to it; configure a directory that they share"
    )
    return Verdict.WRONG, message, {"config": {"work_directory": _SHARED}}


def _check_accounting(facts: Facts) -> _Result:
    if PLAIN not in facts.probes or facts.probes[PLAIN].refusal is not None:
        return Verdict.SKIPPED, "there is no job to look up"
    if isinstance(facts.is_accounted, jpsi.JpsiError):
        return Verdict.WARNING, f"the accounting does not answer: {facts.is_accounted}"
    if facts.is_accounted is None:
        message = "if a job leaves the queue without an exit marker, jpsi cannot find out how it ended"
        shown = ", and the queue shows only for a while how a job ended" if facts.queue_tells_end else ""
        return Verdict.WARNING, f"there is none{shown}: {message}"
    found = "it knows the job" if facts.is_accounted else "it answers, but does not know the job yet"
    return Verdict.OK, found


def _compare_with_plain(facts: Facts, *, name: str, good: str, what: str) -> _Result:
    plain, probe = facts.probes.get(PLAIN), facts.probes.get(name)
    if plain is None or probe is None or plain.refusal is not None:
        return Verdict.SKIPPED, "the simplest job did not run, so that this says nothing"
    if probe.refusal is not None:
        return Verdict.WARNING, f"the batch system refuses {what}: {shorten(probe.refusal, _MAX_LENGTH)}"
    if plain.status is None or plain.status.state is not jpsi.JobState.COMPLETED:
        return Verdict.SKIPPED, "the simplest job did not run, so that this says nothing"
    if probe.status is None or probe.status.state is not jpsi.JobState.COMPLETED:
        return Verdict.WARNING, f"{what} does not run, unlike one without: {_describe_status(probe)}"
    return Verdict.OK, good


def _check_arrays(facts: Facts) -> _Result:
    if facts.answer_error is not None:
        return Verdict.SKIPPED, "the batch system does not answer"
    if facts.array_size is None and facts.jobs_per_submission > 1:
        return Verdict.OK, f"up to {facts.jobs_per_submission} jobs are submitted with one command"
    if facts.array_size is None:
        return Verdict.OK, "jobs are submitted one by one"
    return Verdict.OK, f"up to {facts.array_size} jobs are submitted as one array"


def _describe_status(probe: ProbeResult) -> str:
    if probe.status is None:
        return "its status is not known"
    return " ".join((probe.status.message or str(probe.status)).split())


_CHECKS: Mapping[str, Callable[[Facts], _Result]] = {
    "commands": _check_commands,
    "version": _check_version,
    "answer": _check_answer,
    "queues": _check_queues,
    "time limit": _check_time_limit,
    "job": _check_job,
    "work directory": _check_work_directory,
    "accounting": _check_accounting,
    "names": partial(
        _compare_with_plain,
        name=NAMED,
        good="long names with letters of any alphabet are accepted",
        what="a long name with letters of any alphabet",
    ),
    "memory": partial(
        _compare_with_plain,
        name=SIZED,
        good="a job that asks for memory runs",
        what="a job that asks for memory",
    ),
    "arrays": _check_arrays,
}
# The checks that make sense without a batch system.
_OF_JOBS = frozenset({"job", "work directory", "names", "memory"})
