"""`jpsi validate`: whether job documents say what they must, and whether they could run."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jpsi

from . import codes, documents, messages
from .fence import fenced, in_options


def validate(files: Sequence[str], *, executor: str | None, as_json: bool) -> int:
    """Say what is wrong with documents and return the exit code.

    Args:
        files: the documents.
        executor: where they are meant to run; None looks at the documents alone.
        as_json: whether a program reads it.
    """

    def command() -> int:
        opened = None if executor is None else jpsi.JobExecutor(executor)
        found = {file: _problems(file, opened) for file in files}
        if as_json:
            content = [{"file": file, "valid": not it, "problems": list(it)} for file, it in found.items()]
            messages.show(json.dumps(content, indent=2) + "\n")
        else:
            for file, problems in found.items():
                for problem in problems:
                    messages.error(in_options(problem))
                messages.show("" if problems else f"{file}: valid\n")
        return codes.USAGE if any(found.values()) else 0

    return fenced(command)


def _problems(file: str, executor: jpsi.JobExecutor | None) -> Sequence[str]:
    try:
        spec = documents.read(file)
        if executor is not None:
            executor.preview(jpsi.Job(spec))
    except jpsi.InvalidJobException as e:
        return e.problems
    return ()
