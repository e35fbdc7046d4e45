"""Implements `jpsi doctor`: examines an executor, and shows the findings."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

import jpsi
from jpsi_engine import job_store

from .. import exit_codes, messages
from ..output import quantities
from .checks import findings
from .damage_advice import advise_on_damage
from .facts import PLAIN, Facts, Finding, ProbeResult, Verdict, configuration, is_healthy
from .probe_jobs import run_probe_jobs
from .system_checks import (
    check_answer,
    find_programs,
    is_accounted,
    read_version,
    remote_host_name,
    shows_end,
)

T = TypeVar("T")

_MARKS = {Verdict.OK: "ok", Verdict.WARNING: "WARNING", Verdict.WRONG: "WRONG", Verdict.SKIPPED: "-"}


def doctor(executor: str | None, *, timeout: str, submits_jobs: bool, as_json: bool) -> int:
    """Examine an executor, show the findings, and return the exit code."""
    seconds = quantities.parse_duration_option(timeout, "--wait").total_seconds()
    with jpsi.JobExecutor(executor) as opened:
        facts = examine_executor(opened, executor or opened.name, seconds if submits_jobs else None)
    found = list(findings(facts))
    if as_json:
        content = {
            "executor": facts.executor,
            "healthy": is_healthy(found),
            "checks": list(map(attrs.asdict, found)),
            "configuration": configuration(facts, found),
        }
        messages.show_json(content)
    else:
        messages.show(report(facts, found))
    return 0 if is_healthy(found) else exit_codes.UNHEALTHY


def examine_executor(executor: jpsi.JobExecutor, name: str, timeout: float | None) -> Facts:
    """Return the facts about an executor; `name` is the name that the user gave.

    No probe job is submitted if `timeout` (seconds) is None, or if the batch system does not answer.
    """
    system = executor.system
    is_target = name.lower() != executor.name.lower()
    connection = _call_or_error(remote_host_name, system) if system.is_remote else None
    if isinstance(connection, jpsi.JpsiError):
        return Facts(executor=name, is_target=is_target, connection=connection, damaged=_damaged_files())
    answer_error = _call_or_error(check_answer, system)
    probes: dict[str, ProbeResult] = {}
    native_id = None
    if timeout is not None and answer_error is None:
        probes, native_id = run_probe_jobs(executor, timeout)
    accounted: bool | jpsi.JpsiError | None = None
    queue_tells_end = False
    if native_id is not None and PLAIN in probes and system.has_commands:
        accounted = _call_or_error(is_accounted, system, native_id)
        queue_tells_end = accounted is None and _call_or_error(shows_end, system, native_id) is True
    # a submission makes the executor query what the site offers
    arrays = system.capabilities.arrays
    return Facts(
        executor=name,
        is_target=is_target,
        connection=connection,
        programs=_call_or_error(find_programs, system),
        version=_call_or_error(read_version, system),
        answer_error=answer_error,
        other_that_answers=None if answer_error is None else _other_that_answers(executor),
        queues=_call_or_error(system.queues) if system.has_commands else (),
        default_duration=system.default_duration,
        array_size=None if arrays is None else arrays.largest,
        jobs_per_submission=system.capabilities.jobs_per_submission,
        probes=probes,
        is_accounted=accounted,
        queue_tells_end=queue_tells_end,
        damaged=_damaged_files(),
    )


def _other_that_answers(executor: jpsi.JobExecutor) -> str | None:
    """Return another executor that gets an answer from programs of the same names, such as qstat."""
    own = _call_or_error(find_programs, executor.system)
    if executor.system.is_remote or isinstance(own, jpsi.JpsiError):
        return None
    for name in sorted({it.name for it in jpsi.plugins(load=False) if it.kind == "executor"}):
        with contextlib.suppress(jpsi.JpsiError), jpsi.JobExecutor(name) as other:
            if other.name != executor.name and own.keys() & find_programs(other.system).keys():
                check_answer(other.system)
                return name
    return None


def _damaged_files() -> Sequence[str] | jpsi.JpsiError:
    """Return what is wrong with files of jobs, and what to do, a sentence for each."""
    found = _call_or_error(job_store.damaged)
    if isinstance(found, jpsi.JpsiError):
        return found
    shown = job_store.shown(it.job for it in found if it.job is not None and not it.job.status.final)
    return [advise_on_damage(it, None if it.job is None else shown.get(it.job.id)) for it in found]


def _call_or_error(call: Callable[..., T], *arguments: object) -> T | jpsi.JpsiError:
    try:
        return call(*arguments)
    except jpsi.JpsiError as e:
        return e


def report(facts: Facts, found: Sequence[Finding]) -> str:
    """Return the text for people: a line for each check, and what to put into the configuration."""
    widths = max(len(it.name) for it in found), max(len(_MARKS[it.verdict]) for it in found)
    lines = [
        f"{it.name:{widths[0]}}  {_MARKS[it.verdict]:{widths[1]}}  {_one_line(it.message)}" for it in found
    ]
    content = configuration(facts, found)
    if content:
        lines += ["", "Put this into the configuration:", "", *_yaml(content)]
    return "".join(f"{line}\n" for line in lines)


def _one_line(text: str) -> str:
    return messages.printable(" ".join(text.split()))


def _yaml(content: object, indent: str = "  ") -> list[str]:
    """Return nested mappings as lines of YAML, with their values in JSON, which YAML includes."""
    lines = []
    for name, value in content.items() if isinstance(content, dict) else ():
        if isinstance(value, dict):
            lines += [f"{indent}{name}:", *_yaml(value, f"{indent}  ")]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value)}")
    return lines
