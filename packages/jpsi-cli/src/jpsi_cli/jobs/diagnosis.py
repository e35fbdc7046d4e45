"""Derives from the facts about a job why it is in its state, and advice, for `jpsi explain` and `jpsi top`.

It has pure functions and tables of messages: the module `explain` collects the facts, and shows the result.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import attrs

import jpsi
from jpsi.plugin import word
from jpsi_engine import describe_never

from ..interpreters import describe_missing_interpreter
from ..output import HELD_ADVICE, format_size
from ..stored_jobs import Owner, name_settings
from .job_table import format_age


@attrs.frozen(kw_only=True)
class JobFacts:
    """The facts about a job."""

    status: jpsi.JobStatus
    spec: jpsi.JobSpec
    #: The kind of document that it was submitted for; None for a job of its own.
    owner: Owner | None = None
    #: The id of the job for the advised commands.
    job: str = "JOB"
    #: What `jpsi resubmit` is advised with, if not this job: those of its array that have failed alike.
    again: str = ""
    #: What has become of the jobs that repeat it, or those of its array; empty if none do.
    repeated: str = ""
    #: True if it is repeated, and all of its array that have failed alike.
    is_repeated: bool = False
    #: Other jobs that ended like it, but whose last lines may differ, as `jpsi logs` takes them.
    others: str = ""
    #: The directory where it runs.
    directory: Path = Path()
    #: A remark about a job that is not certain to have ended.
    remark: str | None = None
    #: True if the job was certainly not submitted, and not only as far as is known.
    is_unsent: bool = True
    #: True if it is submitted once other jobs have ended.
    is_deferred: bool = False
    #: The name of the batch system if it does not mention the job; empty if it does, or was not queried.
    missing_in: str = ""
    #: The damage of its files, and what to do; empty if they are not damaged.
    damage: str = ""
    #: How often the batch system has requeued it after it had ended, without effect.
    reruns: int = 0
    #: How the attempts ended after which the job was submitted again, a sentence each.
    earlier_ends: Sequence[str] = ()
    #: The time limit that its batch system kept, which may have rounded the requested one; None if unknown.
    time_limit: timedelta | None = None
    #: True if jpsi was to cancel it before it ended.
    was_cancelled_by_jpsi: bool = False
    #: How long it ran, or has been waiting.
    elapsed: timedelta | None = None
    #: The number of jobs before it, and the estimated start, if the batch system reports them.
    position: int | None = None
    start_estimate: str | None = None
    #: The last lines of its standard error.
    errors: Sequence[str] = ()
    #: The interpreter that the first line of its program names and that does not exist; None if it may exist.
    missing_interpreter: str | None = None
    #: The requests for which no queue can ever start the job, with the numbers: a sentence for each.
    excess: Sequence[str] = ()
    #: How much memory it requested and used; empty if one of the two is not known.
    memory: str = ""
    #: False if no batch system gives it memory, so that a request for it has no effect.
    is_given_memory: bool = True
    #: The queue that jpsi chose for it, and why; empty if the user named one.
    queue: str = ""
    #: The jobs that it depends on, with their states: a sentence for each.
    dependencies: Sequence[str] = ()

    @property
    def is_missing(self) -> bool:
        """True if the batch system does not mention a job that has begun to run or was submitted."""
        return bool(self.missing_in) and self.status.state is not jpsi.JobState.NEW


@attrs.frozen
class Diagnosis:
    """Why a job is in its state, in a sentence, and the advice."""

    sentence: str
    #: Changes or checks, the most likely one first.
    advice: Sequence[str]


def diagnose(facts: JobFacts) -> Diagnosis:
    """Return why the job is in its state, and what to change."""
    if facts.damage and not facts.status.final:
        return Diagnosis(facts.damage, ["find out what is wrong and what can be done: jpsi doctor"])
    if facts.status.final:
        return Diagnosis(
            _describe_end(facts),
            list(
                dict.fromkeys((*facts.earlier_ends, *_advice_after_end(facts), *_advice_on_leftovers(facts)))
            ),
        )
    advice = list(dict.fromkeys((*facts.earlier_ends, *_advice_before_end(facts))))
    return Diagnosis(_describe_live_job(facts), advice)


def _describe_live_job(facts: JobFacts) -> str:
    status, remark = facts.status, facts.remark
    elapsed = "" if facts.elapsed is None else f", for {format_age(facts.elapsed)} now"
    if facts.is_missing:
        what = "it began to run" if status.state is jpsi.JobState.ACTIVE else "it was submitted"
        elapsed = "" if facts.elapsed is None else f" {format_age(facts.elapsed)} ago"
        sentence = (
            f"{what}{elapsed}; now {facts.missing_in} does not mention it, and it has left no exit code"
        )
        return sentence if remark is None else f"{sentence}; {remark}"
    if status.state is jpsi.JobState.ACTIVE:
        return f"it runs{elapsed}" if remark is None else remark
    if status.state is jpsi.JobState.NEW:
        return remark or "it was not submitted"
    sentence = f"it waits{elapsed}: {status.message or 'the batch system does not say why'}"
    if remark is not None:
        sentence += f"; {remark}"
    if facts.position is not None:
        sentence += f"; {facts.position} jobs are before it"
    if facts.start_estimate is not None:
        sentence += f"; it is expected to start at {facts.start_estimate}"
    return sentence


#: The reasons of ends that only a program's own words explain.
OWN_REASONS = {None, jpsi.Reason.EXIT_CODE, jpsi.Reason.SIGNAL, jpsi.Reason.LAUNCH}
# A shell exits with these if it cannot start its program: bash 5.1 with 126 if there is no interpreter.
_NOT_STARTED_CODES = {126, 127}


def may_not_be_found(status: jpsi.JobStatus, program: str, errors: Sequence[str]) -> bool:
    """Return True if a job may have failed since its program, or the interpreter of that, was not found."""
    # as shells name the line of a script: `./a.sh: 2: `, `./a.sh: line 2: `
    own_line = re.compile(rf"{re.escape(program)}: (line )?\d+: ")
    if status.state is not jpsi.JobState.FAILED or any(own_line.match(line) for line in errors):
        return False
    # launchers have exit codes of their own, such as 2 of srun
    is_named = any(program in line and "no such file" in line.lower() for line in errors)
    return status.reason is jpsi.Reason.EXECUTABLE or status.exit_code in _NOT_STARTED_CODES or is_named


# Messages of the plugins about jobs that wait; the first match counts.
_WAIT_REASONS = (
    *HELD_ADVICE,
    (r"held, or waits", "if it waits for no other job, let it start: jpsi release {job}"),
    (
        r"never starts|ended so that|never be satisfied",
        "it never starts: cancel it, and check the job that it depends on",
    ),
    (r"depend|waits for a job", "it starts after the job that it waits for: jpsi ls shows whether that runs"),
    (r"allows or has up", "{less}; if nodes are down, it may start when they are up"),
    (r"no node satisfies", "all nodes that fit are in use or down: wait, or {less}"),
    (
        r"account",
        "name another project with --project, or wait until other jobs of this one have ended",
    ),
    (
        r"elements of the array|running element limit",
        "it starts when another element has ended: the %N of its array limits how many run at a time",
    ),
    (r"quality of service|limit", "wait until other jobs of yours have ended, or {less}"),
    (r"licen[cs]e", "it starts when a licence is free"),
    (r"reservation", "wait until the reservation begins, or submit the job without --reservation"),
    (
        r"down|not available|inactive|failed",
        "the administrators have to repair that; meanwhile try another queue: --queue",
    ),
    (r"earliest|begin time|start time", "its request sets a later start time: wait"),
    (r"priority|in use|resources|busy|enough|full", "nothing is wrong; {less} and it may start sooner"),
)
_REFRESH = "jpsi ls --refresh"
_ASK_FOR_LESS = "ask for less: --time, --nodes, --processes or --memory"


def _advice_before_end(facts: JobFacts) -> Iterator[str]:
    if facts.status.state is jpsi.JobState.NEW:
        if not facts.is_unsent:
            yield f"have jpsi look for it: jpsi wait {facts.job}"
        elif not facts.is_deferred:
            end = f"end it, so that its program does not submit it either: jpsi cancel {facts.job}"
            again = (
                f"submit it again: jpsi resubmit {facts.job}"
                if facts.owner is None
                else f"run it again: {facts.owner.value}"
            )
            yield f"{end}; then {again}"
    elif facts.is_missing:
        yield f"find out how it ended, which takes a minute or two: jpsi wait {facts.job}"
    elif facts.status.state is jpsi.JobState.ACTIVE and _REFRESH not in (facts.remark or _REFRESH):
        yield f"query the batch system: {_REFRESH}"
    elif facts.status.state is jpsi.JobState.QUEUED:
        text = facts.status.message or ""
        never = facts.excess or [it for it in [describe_never(text, "--")] if it is not None]
        if never:
            yield from (name_settings(facts.owner, it) for it in never)
            return
        found = (advice for pattern, advice in _WAIT_REASONS if re.search(pattern, text, re.IGNORECASE))
        advice = next(found, None)
        if advice is not None:
            yield name_settings(facts.owner, advice.format(less=_ASK_FOR_LESS, job=facts.job, it="it"))
        yield from facts.dependencies
        if facts.queue:
            yield facts.queue


def _describe_end(facts: JobFacts) -> str:
    status = facts.status
    if status.state is jpsi.JobState.COMPLETED:
        return "it completed, with exit code 0"
    reason = status.message or (
        f"exit code {status.exit_code}" if status.exit_code else "the reason is not known"
    )
    elapsed = "" if facts.elapsed is None else f", after {format_age(facts.elapsed)}"
    if status.state is not jpsi.JobState.CANCELED:
        return f"it failed{elapsed}: {reason}"
    # the sentence does not say twice that the job was cancelled
    rest = (status.message or "").removeprefix("the job was cancelled").lstrip(": ")
    what = "jpsi cancelled it" if facts.was_cancelled_by_jpsi else "it was cancelled"
    return f"{what}{elapsed}: {rest}" if rest else f"{what}{elapsed}"


def _advice_on_leftovers(facts: JobFacts) -> Iterator[str]:
    """Yield what the user should know of a job that has ended, whatever its final status is."""
    if facts.others:
        yield f"the last lines of the others may differ: jpsi logs --stderr --tail 3 {facts.others}"
    if facts.repeated:
        yield facts.repeated
    if facts.memory:
        yield facts.memory
    if facts.reruns:
        times = "once" if facts.reruns == 1 else f"{facts.reruns} times"
        yield f"the batch system has started it again {times} since; that did nothing, as it had ended"
    if facts.damage:
        yield facts.damage


def _advice_after_end(facts: JobFacts) -> Iterator[str]:
    if facts.status.state is jpsi.JobState.COMPLETED:
        if facts.status.metadata.get("post_launch") == "failed":
            yield "its post_launch failed: look at that script"
        if facts.status.metadata.get("cleanup") == "failed":
            yield f"the files to clean up are still there: {facts.status.message}"
        return
    # the program's own words are nearer to the cause than the meaning of its exit code
    if facts.missing_interpreter is not None:
        program = facts.spec.executable or ""
        path = word(str(facts.directory / program))
        yield describe_missing_interpreter(program, path, facts.missing_interpreter)
        return
    printed = _advise_by_errors(facts) if facts.status.reason in OWN_REASONS else None
    if printed is not None and printed.is_last:
        yield printed.advice if printed.is_certain else f"perhaps: {printed.advice}"
    if printed is None or not printed.is_certain or facts.status.reason is not jpsi.Reason.EXIT_CODE:
        yield from _advice_by_reason(facts)
    if printed is not None and not printed.is_last:
        yield f"perhaps: {printed.advice}"


# What the advice to repeat jobs names.
_REPEAT = "{again}"
_REASONS = {
    jpsi.Reason.TIMEOUT: (
        "give it more time{time}: jpsi resubmit --time TIME {again}; or have it save its state and resume"
    ),
    jpsi.Reason.OUT_OF_MEMORY: "give it more memory{memory}: jpsi resubmit --memory SIZE {again}",
    jpsi.Reason.SETUP: "fix what the message names, and submit it again: jpsi resubmit {again}",
    jpsi.Reason.STAGING: "check the files that the message names: their paths, the disk, and the permissions",
    jpsi.Reason.EXECUTABLE: "name the program by its path, or have --pre-launch put it on PATH",
    jpsi.Reason.PRE_LAUNCH: "look at that script, which runs before the command: jpsi logs --stderr {job}",
    jpsi.Reason.LAUNCH: "check the launcher, --launcher, and what it printed: jpsi logs --stderr {job}",
    jpsi.Reason.NODE_FAIL: "the job is not to blame, submit it again: jpsi resubmit {again}",
    jpsi.Reason.PREEMPTED: "submit it to a queue without preemption: jpsi resubmit --queue QUEUE {again}",
    jpsi.Reason.DEADLINE: "submit it again with a later deadline, or less time: --time",
    jpsi.Reason.DEPENDENCY: "check the job that it waited for; --after any:ID waits for any end",
    jpsi.Reason.REQUEUED: "wait: it runs again",
    jpsi.Reason.LOST: "its node may have crashed, or not see the work directory: see jpsi logs {job}",
    jpsi.Reason.ATTACH_UNVERIFIED: "check the native id and the executor (-x)",
}
_RUN_AGAIN = "{run}, the document of its {owner}"
# Instead of those, for jobs of workflows and requests, which take no notice of what repeats a job.
_OWNED_REASONS = {
    jpsi.Reason.TIMEOUT: "give it more time{time} in FILE, the document of its {owner}: {run}",
    jpsi.Reason.OUT_OF_MEMORY: "give it more memory{memory} in FILE, the document of its {owner}: {run}",
    jpsi.Reason.SETUP: f"fix what the message names, and run it again: {_RUN_AGAIN}",
    jpsi.Reason.NODE_FAIL: f"the job is not to blame, run it again: {_RUN_AGAIN}",
    jpsi.Reason.DEADLINE: (
        "run it again with a later deadline, or less time, in FILE, the document of its {owner}: {run}"
    ),
    jpsi.Reason.PREEMPTED: "name a queue without preemption in FILE, the document of its {owner}: {run}",
}
_REQUEST_TIMEOUT = (
    "give it more time{time}: jpsi request run --time TIME FILE, the document of its request; "
    "or have it save its state and resume"
)
_CODES = {
    126: "a program in it cannot be executed: chmod +x, or it was built for another kind of machine",
    127: "a program in it was not found: check its path, or load its module in --pre-launch",
}
# The module that jobs of groups and of replicas in workflows run.
_SUPERVISOR = "jpsi_jobspec.group_supervisor"
_KILLED = "the usual cause is too little memory: give it more{memory}, with --memory"
_SIGNALS = {
    "SIGKILL": _KILLED,
    "SIGSEGV": "the program used memory that is not its own: a bug in it, or a stack too small (ulimit -s)",
    "SIGBUS": "a file that it has mapped became shorter, or its disk is full; or a bug in the program",
    "SIGABRT": "the program aborted itself: its last lines say why",
    "SIGFPE": "the program divided by zero or did similar arithmetic: a bug in it, or bad input",
    "SIGILL": "the program was made for another kind of processor than the node has",
    "SIGTERM": "another process ended it: the batch system at the time limit, or a user",
    "SIGXCPU": "it used up its CPU time: a limit of the site, or of its shell (ulimit -t)",
    "SIGPIPE": "it wrote to a pipe whose reader had ended",
}


def _advice_by_reason(facts: JobFacts) -> Iterator[str]:
    status, resources, attributes = facts.status, facts.spec.resources, facts.spec.attributes
    memory = getattr(resources, "memory", None)
    duration = facts.time_limit or attributes.duration
    owner = facts.owner
    requested = {
        "job": facts.job,
        "repeated": facts.repeated,
        "owner": "" if owner is None else owner.noun,
        "run": "" if owner is None else owner.value,
        "again": facts.again or facts.job,
        "memory": "" if memory is None else f" than {format_size(memory)}",
        "time": "" if not duration else f" than {format_age(duration)}",
    }
    number = status.metadata.get("signal")
    if isinstance(number, int) and status.reason in {None, jpsi.Reason.SIGNAL, jpsi.Reason.EXIT_CODE}:
        name = _signal_name(number)
        if attributes.warn is not None and name == f"SIG{attributes.warn[0].removeprefix('SIG')}":
            setting = name_settings(owner, "--warn")
            yield f"jpsi sent it {name}, as {setting} asks: the program has to handle that signal"
        elif (advice := _SIGNALS.get(name)) is _KILLED and not facts.is_given_memory:
            yield f"the usual cause is that {name_settings(owner, _OWN_MEMORY)}"
        elif advice is not None:
            yield name_settings(owner, advice).format(**requested)
    elif status.reason is jpsi.Reason.EXIT_CODE and _SUPERVISOR in (facts.spec.arguments or ()):
        yield (
            "a task in its allocation failed: jpsi workflow status FILE names it, and jpsi workflow logs "
            "--stderr FILE TASK shows what it wrote; FILE is the document of the workflow"
        )
    elif status.reason is jpsi.Reason.EXIT_CODE:
        where = "its last lines" if facts.errors else f"its output: jpsi logs {facts.job}"
        advice = _CODES.get(status.exit_code or 0, f"the program itself returned this: look at {where}")
        yield name_settings(owner, advice)
    elif status.reason is not None and status.reason in _REASONS:
        yield from _advice_on_directory(facts)
        program = facts.spec.executable or ""
        if status.reason is jpsi.Reason.EXECUTABLE and len(program.split()) > 1:
            yield f"if that is a line of shell: sh -c {word(program)}"
        yield _advise_path(facts) or _advise_repetition(facts, status.reason).format(**requested)
        if status.reason is jpsi.Reason.DEPENDENCY:
            yield from facts.dependencies


def _advise_repetition(facts: JobFacts, reason: jpsi.Reason) -> str:
    """Return the advice about a reason, a format; or what has become of the repetition that it advises."""
    owner, advice = facts.owner, _REASONS[reason]
    if reason is jpsi.Reason.OUT_OF_MEMORY and not facts.is_given_memory:
        return name_settings(owner, _OWN_MEMORY)
    if owner is not None and reason in _OWNED_REASONS:
        is_longer = owner is Owner.REQUEST and reason is jpsi.Reason.TIMEOUT
        return _REQUEST_TIMEOUT if is_longer else _OWNED_REASONS[reason]
    return "{repeated}" if facts.is_repeated and _REPEAT in advice else name_settings(owner, advice)


def _advise_path(facts: JobFacts) -> str:
    """Return what to do about a program that was named by its path; empty if it was not."""
    program, message = facts.spec.executable or "", facts.status.message or ""
    if facts.status.reason is not jpsi.Reason.EXECUTABLE or "/" not in program or "$" in program:
        return ""
    if "was not found" in message:
        is_absolute = program.startswith("/")
        where = (
            "where the job ran"
            if is_absolute
            else f"in {facts.directory}: check the path, and {name_settings(facts.owner, '--dir')}"
        )
        return f"there is no {program} {where}"
    is_refused = "may not be executed" in message
    return f"let it be executed: chmod +x {word(str(facts.directory / program))}" if is_refused else ""


# Messages about directories that the runner could not use.
_STREAM_FAILURE = re.compile(r"the file for standard (?:output|error) could not be opened: (?P<path>.+)")
_DIRECTORY_FAILURE = "the job's directory could not be entered"


def _advice_on_directory(facts: JobFacts) -> Iterator[str]:
    message = facts.status.message or ""
    if (match := _STREAM_FAILURE.search(message)) is not None:
        parent = (facts.directory / match["path"]).parent
        yield f"make the directory of that file if there is none: mkdir -p {word(str(parent))}"
    elif _DIRECTORY_FAILURE in message:
        advice = "if there is no such directory, make it, or submit the job with --create-dir"
        yield name_settings(facts.owner, advice)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


_NO_LIBRARY = "the library {what} is not found on the node: have --pre-launch load its module"
_NO_MEMORY = "it ran out of memory: ask for more, with --memory"
# Where no batch system gives it any.
_OWN_MEMORY = (
    "its machine had too little memory for it, and --memory has no effect there: have it use less, or run "
    "fewer jobs at a time"
)
_NO_MODULES = "the job's shell does not know {what}: let jpsi load modules, with --setup module:NAME"
_NO_COMMAND = "{what} is not found on the node: check its path, or load its module in --pre-launch"
# A shell goes on after these.
_OF_SHELLS = frozenset({_NO_MODULES, _NO_COMMAND})
# What launchers and make print after the errors of the programs that they have started.
_TRAILER = re.compile(
    r"(srun|slurmstepd|mpirun|mpiexec|prterun|aprun|make|gmake)(\[\d+\])?: |-{20,}$|Primary job +terminated",
    re.IGNORECASE,
)
# The exit code of a shell that did not find its last command, and of the loader of programs.
_NOT_FOUND_CODE = 127
# What programs print on standard error, and its usual cause.
_ERROR_PATTERNS = (
    (
        r"error while loading shared libraries: (?P<what>[^:]+)",
        _NO_LIBRARY,
    ),
    (
        r"(ModuleNotFoundError|ImportError): No module named '?(?P<what>[\w.]+)",
        "Python does not find the module {what}: have --pre-launch activate its environment",
    ),
    (r"(?P<what>\b(module|ml)): (command )?not found", _NO_MODULES),
    (r"(?P<what>[\w./+-]+): (command )?not found", _NO_COMMAND),
    (
        r"oom.?kill|out of memory|cannot allocate memory|MemoryError|bad_alloc",
        _NO_MEMORY,
    ),
    (r"no space left on device|disk quota exceeded", "the disk is full, or your quota used up: make room"),
    (r"(?P<what>[^\s:'\"]+)['\"]?: permission denied", "{what} may not be read, written or executed by you"),
    (
        (
            r"no such file or directory: ['\"]?(?P<what>/[^\s'\"]+)|"
            r"(?P<name>(?<![^\s:'\"])/[^\s:'\"]+)['\"]?: no such file or directory"
        ),
        "{what} does not exist on the node",
    ),
    (
        (
            r"no such file or directory: ['\"]?(?P<what>[^\s'\"]+)|"
            r"(?P<name>[^\s:'\"]+)['\"]?: no such file or directory"
        ),
        "{what} does not exist on the node: paths are relative to --dir",
    ),
    (r"read-only file system", "it wrote where nothing can be written on the node"),
    (r"connection (refused|timed out)|could not resolve host", "the nodes may have no network access"),
    (r"illegal instruction", "the program was made for another kind of processor than the node has"),
)


@attrs.frozen
class _PrintedError:
    """An error that a program has printed, and the advice on it."""

    advice: str
    #: False if the program may have gone on after that, and ended by something else.
    is_certain: bool
    #: False if it has printed more since.
    is_last: bool


def _advise_by_errors(facts: JobFacts) -> _PrintedError | None:
    """Return the last error that the program has printed and that has a usual cause; None if none has."""
    lines = [it for it in facts.errors if it.strip() and not _TRAILER.match(it)]
    tolerated = None
    for line in reversed(lines):
        found = next(
            (
                (advice, match)
                for pattern, advice in _ERROR_PATTERNS
                if (match := re.search(pattern, line, re.IGNORECASE)) is not None
            ),
            None,
        )
        if found is None:
            continue
        printed = _judge(facts, *found, is_last=line is lines[-1])
        if printed.is_certain or printed.is_last or found[0] not in _OF_SHELLS:
            return printed
        # what stands before it may say more
        tolerated = tolerated or printed
    return tolerated


def _judge(facts: JobFacts, advice: str, match: re.Match[str], *, is_last: bool) -> _PrintedError:
    """Return whether a job ended by an error, from its place and the exit code, and the advice."""
    groups = match.groupdict()
    what = groups.get("what") or groups.get("name") or ""
    has_code = facts.status.exit_code == _NOT_FOUND_CODE
    is_certain = has_code and (advice in _OF_SHELLS or advice is _NO_LIBRARY)
    is_certain |= is_last and advice not in _OF_SHELLS
    shown = _OWN_MEMORY if advice is _NO_MEMORY and not facts.is_given_memory else advice
    return _PrintedError(
        name_settings(facts.owner, shown).format(what=what),
        is_certain=is_certain,
        is_last=is_last or is_certain,
    )
