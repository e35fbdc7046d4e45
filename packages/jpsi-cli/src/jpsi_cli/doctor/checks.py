"""The checks of `jpsi doctor`: each is a pure function from facts to a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from textwrap import shorten
from typing import Any

import jpsi

from .facts import NAMED, PLAIN, SIZED, Facts, Finding, Trial, Verdict

# Of the text of a refusal, which may quote the request
_LONGEST = 300
_SHARED = "/a/directory/that/all/nodes/see"
_Judged = tuple[Verdict, str] | tuple[Verdict, str, Mapping[str, Any]]


def findings(facts: Facts) -> Iterator[Finding]:
    """Yield all findings, in the order of the report."""
    if facts.connection is not None:
        yield _connection(facts.connection)
    if isinstance(facts.connection, jpsi.JpsiError):
        yield from (_finding(name, (Verdict.SKIPPED, "there is no connection")) for name in _CHECKS)
        yield from _damaged(facts)
        return
    if not facts.has_commands:
        message = "there is none that is asked by commands, so that the jobs alone are looked at"
        yield Finding(name="batch system", verdict=Verdict.SKIPPED, message=message)
    for name, check in _CHECKS.items():
        if name in _OF_JOBS or facts.has_commands:
            yield _finding(name, check(facts))
    yield from _damaged(facts)


def _damaged(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.damaged, jpsi.JpsiError):
        message = f"the files of jobs cannot be read: {facts.damaged}"
        yield Finding(name="damaged files", verdict=Verdict.WARNING, message=message)
        return
    for sentence in facts.damaged:
        yield Finding(name="damaged files", verdict=Verdict.WARNING, message=sentence)


def _finding(name: str, judged: _Judged) -> Finding:
    verdict, message, *advice = judged
    return Finding(name=name, verdict=verdict, message=message, advice=advice[0] if advice else {})


def _connection(found: str | jpsi.JpsiError) -> Finding:
    if isinstance(found, jpsi.JpsiError):
        return Finding(name="connection", verdict=Verdict.WRONG, message=str(found))
    return Finding(name="connection", verdict=Verdict.OK, message=f"commands run on {found}")


def _commands(facts: Facts) -> _Judged:
    if isinstance(facts.programs, jpsi.JpsiError):
        return Verdict.WRONG, f"the commands of the batch system cannot be looked for: {facts.programs}"
    missing = [name for name, path in facts.programs.items() if path is None]
    if missing:
        what = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not on PATH"
        return Verdict.WRONG, f"{what}: load the batch system's module, or run jpsi where users submit jobs"
    return Verdict.OK, ", ".join(f"{path}" for path in facts.programs.values())


def _version(facts: Facts) -> _Judged:
    if isinstance(facts.version, jpsi.JpsiError):
        return Verdict.WARNING, f"it is not known: {facts.version}"
    return Verdict.OK, facts.version or "it is not told"


def _answer(facts: Facts) -> _Judged:
    if facts.silence is not None:
        return Verdict.WRONG, f"the batch system does not answer: {facts.silence}"
    return Verdict.OK, "it tells of the jobs of the user"


def _queues(facts: Facts) -> _Judged:
    if isinstance(facts.queues, jpsi.JpsiError):
        return Verdict.WARNING, f"they are not known: {facts.queues}"
    usable = [it for it in facts.queues if it.is_open is not False]
    default = next((it for it in facts.queues if it.is_default), None)
    names = ", ".join(it.name for it in usable if it.name) or "one without a name"
    if not usable:
        return Verdict.WARNING, "none takes jobs"
    if default is None:
        return Verdict.OK, f"{names}; which of them jobs go to that name none is not told"
    return _default(default, usable[0], names)


def _default(default: jpsi.Queue, other: jpsi.Queue, names: str) -> _Judged:
    if default.is_open is False:
        advice = {"defaults": {"queue_name": other.name}}
        return Verdict.WARNING, f"jobs go to {default.name}, which takes none; others: {names}", advice
    if default.is_started is False:
        return Verdict.WARNING, f"jobs go to {default.name}, which starts none at the moment"
    return Verdict.OK, f"{names}; jobs go to {default.name or 'that'} unless they name another"


def _limit(facts: Facts) -> _Judged:
    queues = () if isinstance(facts.queues, jpsi.JpsiError) else facts.queues
    default = next((it for it in queues if it.is_default), None)
    if default is None or facts.usual is None:
        return Verdict.SKIPPED, "there is no limit to compare with"
    given = f"a job that does not say how long it runs gets {facts.usual or 'no limit'}"
    if default.longest and (not facts.usual or facts.usual > default.longest):
        advice = {"config": {"default_duration": int(default.longest.total_seconds())}}
        return Verdict.WARNING, f"{given}, and {default.name or 'the queue'} allows {default.longest}", advice
    return Verdict.OK, given


def _job(facts: Facts) -> _Judged:
    trial = facts.trials.get(PLAIN)
    if trial is None:
        return Verdict.SKIPPED, "none was tried"
    if trial.refusal is not None:
        return Verdict.WRONG, f"the simplest job is refused: {trial.refusal}"
    if trial.status is None or not trial.status.final:
        return (
            Verdict.WARNING,
            f"it has not ended after {trial.seconds:.0f} s, and was cancelled: {_why(trial)}",
        )
    if trial.status.state is not jpsi.JobState.COMPLETED:
        return Verdict.WRONG, f"the simplest job is {trial.status.state.value}: {_why(trial)}"
    where = "" if trial.node is None else f" on {trial.node}"
    return Verdict.OK, f"it ran{where}, and was over after {trial.seconds:.1f} s"


def _folder(facts: Facts) -> _Judged:
    trial = facts.trials.get(PLAIN)
    if trial is None or trial.status is None or not trial.status.final:
        return Verdict.SKIPPED, "no job has ended that could tell"
    if trial.status.evidence in {jpsi.Evidence.MARKER, jpsi.Evidence.PROCESS}:
        return Verdict.OK, f"the job has left its word in {trial.folder}"
    return (
        Verdict.WRONG,
        (
            f"the job has left no word in its folder, {trial.folder}: the nodes do not see that directory, "
            "or may not write to it; name one that they share"
        ),
        {"config": {"work_directory": _SHARED}},
    )


def _accounting(facts: Facts) -> _Judged:
    if PLAIN not in facts.trials or facts.trials[PLAIN].refusal is not None:
        return Verdict.SKIPPED, "there is no job that it could know"
    if isinstance(facts.is_accounted, jpsi.JpsiError):
        return Verdict.WARNING, f"it does not answer: {facts.is_accounted}"
    if facts.is_accounted is None:
        return Verdict.WARNING, (
            "there is none: of a job that leaves the queue without a word, it will not be known how it ended"
        )
    return (
        Verdict.OK,
        "it knows the job" if facts.is_accounted else "it answers, and does not know the job yet",
    )


def _name(facts: Facts) -> _Judged:
    return _besides(facts, NAMED, "long names of any letters are taken", "a long name of any letters")


def _memory(facts: Facts) -> _Judged:
    return _besides(facts, SIZED, "a job that asks for memory runs", "a job that asks for memory")


def _besides(facts: Facts, name: str, good: str, what: str) -> _Judged:
    plain, trial = facts.trials.get(PLAIN), facts.trials.get(name)
    if plain is None or trial is None or plain.refusal is not None:
        return Verdict.SKIPPED, "there is nothing to compare with"
    if trial.refusal is not None:
        return Verdict.WARNING, f"{what} is refused: {shorten(trial.refusal, _LONGEST)}"
    has_run = plain.status is not None and plain.status.state is jpsi.JobState.COMPLETED
    if not has_run:
        return Verdict.SKIPPED, "there is nothing to compare with"
    if trial.status is None or trial.status.state is not jpsi.JobState.COMPLETED:
        return Verdict.WARNING, f"{what} does not run as one without: {_why(trial)}"
    return Verdict.OK, good


def _arrays(facts: Facts) -> _Judged:
    if facts.silence is not None:
        return Verdict.SKIPPED, "the batch system has not told how large they may be"
    if facts.array_size is None:
        return Verdict.OK, "many jobs are submitted one by one"
    return Verdict.OK, f"up to {facts.array_size} jobs are submitted as one"


def _why(trial: Trial) -> str:
    if trial.status is None:
        return "nothing was heard of it"
    return " ".join((trial.status.message or str(trial.status)).split())


_CHECKS: Mapping[str, Callable[[Facts], _Judged]] = {
    "commands": _commands,
    "version": _version,
    "answer": _answer,
    "queues": _queues,
    "time limit": _limit,
    "job": _job,
    "work directory": _folder,
    "accounting": _accounting,
    "names": _name,
    "memory": _memory,
    "arrays": _arrays,
}
# The checks that make sense without a batch system.
_OF_JOBS = frozenset({"job", "work directory", "names", "memory"})
