"""Implements `jpsi validate`: checks job documents, and with `-x` if that executor could run the jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

import jpsi
from jpsi_engine import QueueLimits, retry_field_problems

from .. import exit_codes, messages
from . import documents
from .job_limits import report_ignored, report_unlisted, require_fit, require_waits
from .submit import make_elements


def validate(
    files: Sequence[str], *, many: str | None, executor: str | None, lenient: bool, as_json: bool
) -> int:
    """Report what is wrong with documents, and return the exit code.

    Args:
        files: the documents.
        many: a file with a document on each line.
        lenient: True to warn of unknown keys only.
        executor: the one that is to run the jobs; None checks the documents only.
        as_json: True to write JSON.
    """
    opened = None if executor is None else _Opened(jpsi.JobExecutor(executor))
    found = {file: _problems(partial(_read_one, file, is_lenient=lenient), opened) for file in files}
    if many is not None:
        found[many] = _problems(partial(documents.read_json_lines, many, is_lenient=lenient), opened)
    if as_json:
        content = [{"file": file, "valid": not it, "problems": list(it)} for file, it in found.items()]
        messages.show_json(content)
    else:
        for file, problems in found.items():
            for problem in problems:
                messages.error(problem)
            messages.show("" if problems else f"{file}: valid\n")
    return exit_codes.USAGE if any(found.values()) else 0


@attrs.frozen
class _Opened:
    """The executor that is to run the jobs, and the limits of its queues, the same for all files."""

    executor: jpsi.JobExecutor
    limits: QueueLimits = attrs.field(
        default=attrs.Factory(lambda it: QueueLimits(it.executor), takes_self=True), init=False
    )


def _read_one(file: str, *, is_lenient: bool) -> list[tuple[str, jpsi.JobSpec]]:
    return [(documents.file_label(file), documents.read_document(file, is_lenient=is_lenient))]


def _problems(read: Callable[[], list[tuple[str, jpsi.JobSpec]]], opened: _Opened | None) -> Sequence[str]:
    """Return what is wrong with documents, or with their jobs for an executor."""
    try:
        specs = [(location, make_elements(spec, None)[0]) for location, spec in read()]
    except jpsi.InvalidJobException as e:
        return e.problems
    if opened is not None:
        report_ignored(opened.executor, specs)
        report_unlisted(opened.limits, specs)
    return [f"{location}: {it}" for location, spec in specs for it in _objections(spec, opened)]


def _objections(spec: jpsi.JobSpec, opened: _Opened | None) -> Sequence[str]:
    if opened is None:
        return retry_field_problems(spec, is_complete=True)
    waits = _refusals(lambda: require_waits(opened.executor, [("", spec)]))
    if waits:
        # they are named already
        spec = attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, after=None))
    return [*waits, *_refusals(lambda: _require_runnable(opened, spec))]


def _require_runnable(opened: _Opened, spec: jpsi.JobSpec) -> None:
    opened.executor.preview(jpsi.Job(spec))
    require_fit(opened.executor, [("", spec)], opened.limits)


def _refusals(check: Callable[[], None]) -> Sequence[str]:
    try:
        check()
    except jpsi.InvalidJobException as e:
        return e.problems
    return ()
