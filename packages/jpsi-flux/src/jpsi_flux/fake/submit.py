"""`flux submit` and `flux batch` of the fake of Flux."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from jpsi.plugin import CommandResult, line, word
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from .arguments import Arguments, UnknownOptionError, parse, unrecognized
from .dependencies import dependency_check, dependency_refusal
from .native_ids import format_id

_QUEUES = frozenset({"batch", "debug"})
_NODES, _CORES = 2, 8
_URI = "local:///run/flux/local"

# flux-submit(1) and flux-batch(1), OPTIONS: those without a value; below, those with one
_FLAGS = "dry-run exclusive help label-io quiet unbuffered wait watch wrap"
_VALUED = (
    "add-file bank bcc begin-time broker-opts cc conf cores cores-per-slot cores-per-task cwd "
    "dependency dump env env-file env-remove error flags gpus-per-node gpus-per-slot gpus-per-task "
    "input job-name log log-stderr nodes nslots ntasks output queue requires rlimit setattr setopt "
    "signal taskmap tasks-per-core tasks-per-node time-limit urgency wait-event"
)
_ONLY_SUBMIT = frozenset({"bcc", "cc", "cores", "cores-per-task", "gpus-per-task", "ntasks", "wait", "watch"})
_ONLY_BATCH = frozenset({"broker-opts", "conf", "cores-per-slot", "dump", "gpus-per-slot", "nslots", "wrap"})
_KNOWN = {**dict.fromkeys(_FLAGS.split(), False), **dict.fromkeys(_VALUED.split(), True)}
_SHORT = {"B": "bank", "N": "nodes", "S": "setattr", "o": "setopt", "q": "queue", "t": "time-limit"}
# RFC 23
_DURATION = re.compile(r"([0-9.]+)(s|m|h|d|ms)?\Z")
_UNITS = {None: 60.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TAGGED = re.compile(r"(.*?)(?: ?(jpsi-[0-9a-f-]+))?", re.DOTALL)
# RFC 36
_DIRECTIVE = re.compile(r"\W*(?:flux|FLUX):(.*)")


def submit(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a command."""
    short = {**_SHORT, "n": "ntasks", "c": "cores-per-task", "g": "gpus-per-task"}
    try:
        arguments = parse(invocation.arguments[1:], _drop_options(_ONLY_BATCH), short)
    except UnknownOptionError as e:
        return unrecognized("submit", e)
    if not arguments.words:
        return _fail("flux-submit: ERROR: job command and arguments are missing")
    # without --input, standard input is an open socket, which never ends
    stdin = word(arguments.last("input", "/dev/zero"))
    script = f"#!/bin/sh\n{line('exec', *arguments.words)} <{stdin}\n"
    native_id = next_id(scheduler)
    own = {"FLUX_JOB_ID": format_id(native_id), "FLUX_TASK_RANK": "0", "PMI_RANK": "0", "PMI_SIZE": "1"}
    environment = {"FLUX_URI": _URI, **invocation.environment, **own}
    return _submit_job(
        scheduler, invocation, arguments, FakeJob(native_id, script=script, environment=environment), "task"
    )


def batch(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a script from a file or standard input; it runs in its own Flux instance."""
    short = {**_SHORT, "n": "nslots", "c": "cores-per-slot", "g": "gpus-per-slot", "x": "exclusive"}
    try:
        arguments = parse(invocation.arguments[1:], _drop_options(_ONLY_SUBMIT), short)
        if arguments.words:
            invocation = invocation.reading(arguments.words[0])
        script = invocation.stdin
        directives = parse(_directives(script), _drop_options(_ONLY_SUBMIT), short)
    except OSError as e:
        return _fail(f"flux-batch: ERROR: {e}")
    except UnknownOptionError as e:
        return unrecognized("batch", e)
    arguments = Arguments({**directives.options, **arguments.options}, arguments.words)
    if not script.startswith("#!"):
        return _fail("flux-batch: ERROR: batch does not appear to start with '#!'")
    if not {"nslots", "nodes"} & arguments.options.keys():
        return _fail("flux-batch: ERROR: Number of slots to allocate must be specified")
    native_id = next_id(scheduler)
    remaining = {name: value for name, value in invocation.environment.items() if name != "FLUX_JOB_ID"}
    own = {
        "FLUX_ENCLOSING_ID": format_id(native_id),
        "FLUX_URI": f"local:///run/flux/flux-{native_id}/local-0",
    }
    job = FakeJob(
        native_id, script=script, arguments=tuple(arguments.words[1:]), environment={**remaining, **own}
    )
    return _submit_job(scheduler, invocation, arguments, job, "slot")


def _submit_job(
    scheduler: FakeScheduler, invocation: Invocation, arguments: Arguments, job: FakeJob, unit: str
) -> CommandResult:
    """Put a job into the queue, or return Flux's error."""
    dependencies = arguments.options.get("dependency", [])
    if refusal := _client_refusal(arguments, unit):
        return _fail(f"flux-{'batch' if unit == 'slot' else 'submit'}: ERROR: {refusal}")
    if refusal := _broker_refusal(arguments, unit) or dependency_refusal(scheduler, dependencies):
        before = "flux-batch: ERROR: " if unit == "slot" else f"[Errno {_errno(refusal)}] "
        return _fail(before + refusal)
    whole = arguments.last("job-name", "batch" if unit == "slot" else arguments.words[0].rpartition("/")[2])
    # Flux has the tag in the name only; the fake job has them apart, so that tests find it by name.
    job.name, job.tag = _TAGGED.fullmatch(whole).groups("")  # type: ignore[union-attr]  # it matches any text
    job.queue = arguments.last("queue", "batch")
    banks = [
        text.removeprefix("bank=")
        for text in arguments.options.get("setattr", [])
        if text.startswith("bank=")
    ]
    job.project = arguments.last("bank", [*banks, ""][0])
    job.directory = arguments.last("cwd", invocation.directory)
    job.stdout = _file(arguments, "output")
    job.stderr = _file(arguments, "error") if "error" in arguments.options else job.stdout
    job.slots = int(arguments.last(f"n{unit}s", "1")) * int(arguments.last(f"cores-per-{unit}", "1"))
    job.time_limit = _seconds(arguments.last("time-limit", "0"))
    job.blocked = dependency_check(scheduler, job.native_id, dependencies)
    job.attributes = {
        "name": whole,
        "nodes": int(arguments.last("nodes", "1")),
        "options": dict(arguments.options),
    }
    if arguments.last("urgency", "16") in {"0", "hold"}:
        job.state = FakeState.HELD
    scheduler.submit(job)
    return CommandResult(returncode=0, stdout=f"{format_id(job.native_id, invocation)}\n")


def _drop_options(names: frozenset[str]) -> dict[str, bool]:
    return {name: takes for name, takes in _KNOWN.items() if name not in names}


def _directives(script: str) -> Iterator[str]:
    """Yield the words of the directives, which Flux splits at more characters than blanks (RFC 36)."""
    for text in script.splitlines():
        if match := _DIRECTIVE.match(text):
            lexer = shlex.shlex(match[1], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            yield from lexer
        elif text and not text.startswith("#"):
            break


def next_id(scheduler: FakeScheduler) -> str:
    """Return the id of a new job."""
    # RFC 19: milliseconds since the instance started, a generator, a sequence number
    return str((60_000 + 137 * scheduler.next_number()) << 24)


def _client_refusal(arguments: Arguments, unit: str) -> str | None:
    nodes = int(arguments.last("nodes", "0"))
    if "exclusive" in arguments.options and not nodes:
        return "exclusive can only be set with a node count"
    if nodes > int(arguments.last(f"n{unit}s", str(nodes))):
        return "node count must not be greater than task count"
    duration = arguments.last("time-limit", "0")
    return None if _DURATION.match(duration) else "invalid Flux standard duration"


def _broker_refusal(arguments: Arguments, unit: str) -> str | None:
    queue, nodes = arguments.last("queue", "batch"), int(arguments.last("nodes", "1"))
    if queue not in _QUEUES:
        return f"Invalid queue '{queue}' specified"
    if nodes > _NODES:
        return f"unsatisfiable request: need {nodes} exclusive node(s), only {_NODES} eligible"
    if int(arguments.last(f"gpus-per-{unit}", "0")):
        return "unsatisfiable request: need 1 slot(s) with 1 GPU(s) each, only 0 available (total GPUs: 0)"
    cores = int(arguments.last(f"cores-per-{unit}", "1"))
    return None if cores <= _CORES else f"unsatisfiable request: need 1 slot(s) of {cores} core(s)"


def _errno(refusal: str) -> int:
    if refusal.startswith("unsatisfiable"):
        return 75
    return 1 if refusal.startswith("Invalid queue") else 22


def _file(arguments: Arguments, option: str) -> str | None:
    # output without a file goes to the key-value store
    path = arguments.last(option, "/dev/null")
    return None if path in {"none", "kvs"} else path


def _seconds(text: str) -> float | None:
    match = _DURATION.match(text)
    return None if match is None else float(match[1]) * _UNITS[match[2]] or None


def _fail(message: str) -> CommandResult:
    return CommandResult(returncode=1, stderr=f"{message}\n")
