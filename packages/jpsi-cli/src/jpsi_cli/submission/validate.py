"""`jpsi validate`: whether job documents say what they must, and whether they could run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

import jpsi

from .. import exit_codes, messages
from ..error_boundary import fenced, in_options
from . import documents


def validate(files: Sequence[str], *, many: str | None, executor: str | None, as_json: bool) -> int:
    """Say what is wrong with documents and return the exit code.

    Args:
        files: the documents.
        many: a file that has one on each line.
        executor: where they are meant to run; None looks at the documents alone.
        as_json: whether a program reads it.
    """

    def command() -> int:
        opened = None if executor is None else jpsi.JobExecutor(executor)
        found = {file: _problems(partial(_one, file), opened) for file in files}
        if many is not None:
            found[many] = _problems(partial(documents.read_many, many), opened)
        if as_json:
            content = [{"file": file, "valid": not it, "problems": list(it)} for file, it in found.items()]
            messages.show(json.dumps(content, indent=2) + "\n")
        else:
            for file, problems in found.items():
                for problem in problems:
                    messages.error(in_options(problem))
                messages.show("" if problems else f"{file}: valid\n")
        return exit_codes.USAGE if any(found.values()) else 0

    return fenced(command)


def _one(file: str) -> list[tuple[str, jpsi.JobSpec]]:
    return [(documents.name_of(file), documents.read(file))]


def _problems(
    read: Callable[[], list[tuple[str, jpsi.JobSpec]]], executor: jpsi.JobExecutor | None
) -> Sequence[str]:
    """What is wrong with documents, or with their jobs where they are to run."""
    try:
        specs = read()
    except jpsi.InvalidJobException as e:
        return e.problems
    if executor is None:
        return ()
    return [f"{place}: {it}" for place, spec in specs for it in _objections(spec, executor)]


def _objections(spec: jpsi.JobSpec, executor: jpsi.JobExecutor) -> Sequence[str]:
    try:
        executor.preview(jpsi.Job(spec))
    except jpsi.InvalidJobException as e:
        return e.problems
    return ()
