"""Handing several jobs over to Flux with one command; each of them is a job by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jpsi.plugin import (
    NOT_OFFERED,
    Command,
    CommandResult,
    JobSpec,
    NotOffered,
    Script,
    SubmitContext,
    hookimpl,
)

from ..commands import command
from ..queue import parse_find
from .flux_submit import NOT_THIS_JOBS, arguments
from .resources import Shape

_NAME = "--job-name="
# What begins like this begins the inputs of `flux bulksubmit`.
_INPUTS = ":::"
# Ids come in the order in which jobs were validated, which several processes do: of 100, 29 to 69 were not
# in that of the inputs (measured on Flux 0.88). So the names tell which is whose.
_NAMED = (
    'ids=$(flux bulksubmit "$@"); code=$?; printf "%s\\n" "$ids"; '
    '[ "$code" -eq 0 ] || exit "$code"; exec flux jobs --json $ids'
)


@hookimpl
def submit_several(
    scripts: Sequence[Script], spec: JobSpec, contexts: Sequence[SubmitContext]
) -> Command | NotOffered:
    """The command that submits scripts and shows the jobs, unless they need Flux instances of their own.

    What differs between the jobs are inputs, which nothing is replaced in.
    """
    jobs = [arguments(script) for script in scripts]
    names = [word.removeprefix(_NAME) for words in jobs for word in words if word.startswith(_NAME)]
    common = [word for word in jobs[0] if not word.startswith(_NAME)]
    if Shape.of(spec).nested or not _can_be_said(names, common):
        return NOT_OFFERED
    runs = [script.run for script in scripts]
    submission = [f"{_NAME}{{0}}", *common, "--input=/dev/null", "/bin/sh", "-c", "{1}"]
    inputs = [_INPUTS, *names, f"{_INPUTS}+", *runs]
    return command(
        contexts[0].site, "/bin/sh", "-c", _NAMED, "bulk", *submission, *inputs, unset=NOT_THIS_JOBS
    )


def _can_be_said(names: Sequence[str], common: Sequence[str]) -> bool:
    """Whether `flux bulksubmit` takes these for what they are; braces are replaced but for inputs."""
    has_braces = any("{" in word or "}" in word for word in common)
    return not has_braces and not any(name.startswith(_INPUTS) for name in names)


@hookimpl
def parse_submit_several(result: CommandResult, contexts: Sequence[SubmitContext]) -> Mapping[str, str]:
    """The ids of the jobs, by the tags in their names."""
    return parse_find(result, [context.tag for context in contexts])
