"""`flux submit` and `flux batch` of the fake of Flux.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shlex
from collections.abc import Iterator, Mapping

from jpsi.plugin import DependencyKind, line, word
from jpsi_testing.fake import (
    Arguments,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    OptionTable,
    refuse_if,
    wait_for_jobs,
)

from ..native_ids import canonical_id
from .native_ids import format_id
from .states import NEVER, WAITS

_QUEUES = frozenset({"batch", "debug"})
_NODES, _CORES = 2, 8
# The requests of a task or slot, with their defaults
_PER_UNIT = (("cores", "1"), ("gpus", "0"))
_URI = "local:///run/flux/local"

# flux-submit(1) and flux-batch(1), OPTIONS: those without a value
_FLAGS = "dry-run help label-io quiet unbuffered"
# Those with a value
_VALUED = (
    "add-file bank|B begin-time cwd dependency env env-file env-remove error flags gpus-per-node input "
    "job-name log log-stderr nodes|N output queue|q requires rlimit setattr|S setopt|o signal taskmap "
    "tasks-per-core tasks-per-node time-limit|t urgency wait-event"
)


def unrecognized(command: str) -> tuple[int, str]:
    """Return the exit code and the message of a command about an unknown option."""
    usage = f"usage: flux {command} [OPTIONS...]\n"
    return 2, f"{usage}flux {command}: error: unrecognized arguments: {{}}\n"


_SUBMIT = OptionTable(
    flags=f"{_FLAGS} exclusive wait watch",
    valued=f"{_VALUED} bcc cc cores cores-per-task|c gpus-per-task|g ntasks|n",
    unknown=unrecognized("submit"),
)
_BATCH = OptionTable(
    flags=f"{_FLAGS} exclusive|x wrap",
    valued=f"{_VALUED} broker-opts conf cores-per-slot|c dump gpus-per-slot|g nslots|n",
    unknown=unrecognized("batch"),
)
# RFC 23
_DURATION = re.compile(r"([0-9.]+)(s|m|h|d|ms)?\Z")
_UNITS = {None: 60.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TAGGED = re.compile(r"(.*?)(?: ?(jpsi-[0-9a-f-]+))?", re.DOTALL)
# RFC 36
_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}
_DIRECTIVE = re.compile(r"\W*(?:flux|FLUX):(.*)")


def submit(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Submit a command."""
    arguments = _SUBMIT.parse(invocation.arguments[1:])
    refuse_if({"job command and arguments are missing": not arguments.words}, 1, "flux-submit: ERROR: {}\n")
    # without --input, standard input is an open socket, which never ends
    stdin = word(arguments.last("input", "/dev/zero"))
    script = f"#!/bin/sh\n{line('exec', *arguments.words)} <{stdin}\n"
    native_id = next_id(scheduler)
    own = {"FLUX_JOB_ID": format_id(native_id), "FLUX_TASK_RANK": "0", "PMI_RANK": "0", "PMI_SIZE": "1"}
    environment = {"FLUX_URI": _URI, **invocation.environment, **own}
    job = FakeJob(native_id, script=script, environment=environment)
    return _submit_job(scheduler, invocation, arguments, job, "task")


def batch(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Submit a script from a file or standard input; it runs in its own Flux instance."""
    arguments = _BATCH.parse(invocation.arguments[1:])
    invocation = invocation.reading_script(arguments.words, "flux-batch: ERROR: {error}\n")
    script = invocation.stdin
    directives = _BATCH.parse(_directives(script))
    arguments = Arguments({**directives.values, **arguments.values}, arguments.words)
    refusals = {
        "batch does not appear to start with '#!'": not script.startswith("#!"),
        "Number of slots to allocate must be specified": not {"nslots", "nodes"} & arguments.values.keys(),
    }
    refuse_if(refusals, 1, "flux-batch: ERROR: {}\n")
    native_id = next_id(scheduler)
    environment = {
        **{name: value for name, value in invocation.environment.items() if name != "FLUX_JOB_ID"},
        "FLUX_ENCLOSING_ID": format_id(native_id),
        "FLUX_URI": f"local:///run/flux/flux-{native_id}/local-0",
    }
    job = FakeJob(native_id, script=script, arguments=arguments.words[1:], environment=environment)
    return _submit_job(scheduler, invocation, arguments, job, "slot")


def _submit_job(
    scheduler: FakeScheduler, invocation: Invocation, arguments: Arguments, job: FakeJob, unit: str
) -> str:
    """Put a job into the queue, or raise Flux's error."""
    command = "flux-batch" if unit == "slot" else "flux-submit"
    _check_options(arguments, unit, command)
    _check_request(arguments, unit)
    dependencies = list(_dependencies(scheduler, arguments, unit))
    whole = arguments.last("job-name", "batch" if unit == "slot" else arguments.words[0].rpartition("/")[2])
    # Flux has the tag in the name only; the fake job has them apart, so that tests find it by name.
    job.name, job.tag = _TAGGED.fullmatch(whole).groups("")  # type: ignore[union-attr]  # it matches any text
    job.queue = arguments.last("queue", "batch")
    attributes = dict(it.partition("=")[::2] for it in reversed(arguments.values.get("setattr", [])))
    job.project = arguments.last("bank", attributes.get("bank", ""))
    job.directory = arguments.last("cwd", invocation.directory)
    job.stdout = _file(arguments, "output")
    job.stderr = _file(arguments, "error") if "error" in arguments.values else job.stdout
    job.slots = int(arguments.last(f"n{unit}s", "1")) * int(arguments.last(f"cores-per-{unit}", "1"))
    job.time_limit = _seconds(arguments.last("time-limit", "0"))
    # Flux makes a job that can never start fail
    give_up = functools.partial(scheduler.end_as, job.native_id, FakeState.FAILED)
    job.blocked = wait_for_jobs(dependencies, scheduler.listed, WAITS, NEVER, give_up)
    job.attributes = {"name": whole, "nodes": int(arguments.last("nodes", "1"))}
    if arguments.last("urgency", "16") in {"0", "hold"}:
        job.state = FakeState.HELD
    scheduler.submit(job)
    return f"{format_id(job.native_id, invocation)}\n"


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


def _check_options(arguments: Arguments, unit: str, command: str) -> None:
    """Raise the error with which a command itself refuses its options."""
    nodes = int(arguments.last("nodes", "0"))
    is_short = nodes > int(arguments.last(f"n{unit}s", str(nodes)))
    is_duration = _DURATION.match(arguments.last("time-limit", "0"))
    refusals = {
        "exclusive can only be set with a node count": "exclusive" in arguments.values and not nodes,
        "node count must not be greater than task count": is_short,
        "invalid Flux standard duration": not is_duration,
    }
    refuse_if(refusals, 1, f"{command}: ERROR: {{}}\n")


def _check_request(arguments: Arguments, unit: str) -> None:
    """Raise the error with which the broker refuses a job."""
    queue, nodes = arguments.last("queue", "batch"), int(arguments.last("nodes", "1"))
    cores, gpus = (int(arguments.last(f"{it}-per-{unit}", default)) for it, default in _PER_UNIT)
    _refuse({f"Invalid queue '{queue}' specified": queue not in _QUEUES}, unit, 1)
    refusals = {
        f"unsatisfiable request: need {nodes} exclusive node(s), only {_NODES} eligible": nodes > _NODES,
        "unsatisfiable request: need 1 slot(s) with 1 GPU(s) each, only 0 available (total GPUs: 0)": gpus,
        f"unsatisfiable request: need 1 slot(s) of {cores} core(s)": cores > _CORES,
    }
    _refuse(refusals, unit, 75)


def _dependencies(
    scheduler: FakeScheduler, arguments: Arguments, unit: str
) -> Iterator[tuple[DependencyKind, str]]:
    """Yield the kinds and ids in the options `--dependency`."""
    known = {job.native_id for job in scheduler.listed()}
    for scheme, _, value in (text.partition(":") for text in arguments.values.get("dependency", [])):
        _refuse({f'dependency scheme "{scheme}" not supported': scheme not in _KINDS}, unit)
        native_id = None
        with contextlib.suppress(ValueError):
            native_id = canonical_id(value)
        refusals = {
            f'dependency: {scheme}: "{value}" is not a valid jobid': native_id is None,
            f"dependency: {scheme}: id {value}: job not found": native_id not in known,
        }
        _refuse(refusals, unit)
        yield _KINDS[scheme], native_id or ""


def _refuse(refusals: Mapping[str, object], unit: str, errno: int = 22) -> None:
    """Raise the error of the broker about the first of these messages whose value is true."""
    refuse_if(refusals, 1, "flux-batch: ERROR: {}\n" if unit == "slot" else f"[Errno {errno}] {{}}\n")


def _file(arguments: Arguments, option: str) -> str | None:
    # output without a file goes to the key-value store
    path = arguments.last(option, "/dev/null")
    return None if path in {"none", "kvs"} else path


def _seconds(text: str) -> float | None:
    match = _DURATION.match(text)
    return None if match is None else float(match[1]) * _UNITS[match[2]] or None
