"""Submits several independent jobs to Flux with one command.

`JobExecutor.submit_many` leads to it: Flux has no arrays, and a command for each job would be slow.
"""

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

from .commands import command
from .queue import parse_find
from .shape import Shape
from .submit import INHERITED_VARIABLES, arguments

_NAME = "--job-name="
# The prefix that starts a list of inputs of `flux bulksubmit`.
_INPUTS = ":::"
# Flux prints ids in the order in which several processes validated the jobs: of 100 ids, 29 to 69 were not in
# the order of the inputs (measured on Flux 0.88). jpsi therefore matches ids and jobs by name.
_SUBMIT_AND_LIST = (
    'ids=$(flux bulksubmit "$@"); code=$?; printf "%s\\n" "$ids"; '
    '[ "$code" -eq 0 ] || exit "$code"; exec flux jobs --json $ids'
)


@hookimpl
def submit_several(
    scripts: Sequence[Script], spec: JobSpec, contexts: Sequence[SubmitContext]
) -> Command | NotOffered:
    """Return the command that submits scripts and lists the jobs; NOT_OFFERED if it cannot express them.

    It cannot if the jobs need their own Flux instances. Names and scripts, which differ between the jobs, are
    inputs of `flux bulksubmit`, in which it replaces nothing.
    """
    jobs = [arguments(script) for script in scripts]
    names = [word.removeprefix(_NAME) for words in jobs for word in words if word.startswith(_NAME)]
    common = [word for word in jobs[0] if not word.startswith(_NAME)]
    if Shape.for_spec(spec).nested or not _is_expressible(names, common):
        return NOT_OFFERED
    runs = [script.run for script in scripts]
    command_template = [f"{_NAME}{{0}}", *common, "--input=/dev/null", "/bin/sh", "-c", "{1}"]
    inputs = [_INPUTS, *names, f"{_INPUTS}+", *runs]
    return command(
        contexts[0].site,
        "/bin/sh",
        "-c",
        _SUBMIT_AND_LIST,
        "bulk",
        *command_template,
        *inputs,
        unset=INHERITED_VARIABLES,
    )


def _is_expressible(names: Sequence[str], common: Sequence[str]) -> bool:
    """Return True if `flux bulksubmit` passes these on unchanged; it replaces braces outside of inputs."""
    has_braces = any("{" in word or "}" in word for word in common)
    return not has_braces and not any(name.startswith(_INPUTS) for name in names)


@hookimpl
def parse_submit_several(result: CommandResult, contexts: Sequence[SubmitContext]) -> Mapping[str, str]:
    """Return the native ids of the jobs by the tags in their names."""
    return parse_find(result, [context.tag for context in contexts])
