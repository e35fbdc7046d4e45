"""Handing a job over to Flux, and finding the job's id in what Flux printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import attrs

from jpsi.plugin import (
    RANK_VARIABLES,
    Command,
    CommandResult,
    JobSpec,
    Script,
    SubmitContext,
    hookimpl,
)
from jpsi.plugin.kit import the_one_id

from ..commands import command
from ..native_ids import DIGITS, HOOKED, canonical_id
from .resources import Shape

#: flux-environment(7): what a surrounding job leaves. FLUX_URI stays: it says where Flux is.
NOT_THIS_JOBS = (
    "FLUX_ENCLOSING_ID",
    "FLUX_JOB_*",
    "FLUX_KVS_NAMESPACE",
    "FLUX_PMI_LIBRARY_PATH",
    "FLUX_TASK_*",
    "OMPI_MCA_btl_vader_backing_directory",
    *RANK_VARIABLES,
)
_SENTINEL = "flux:"
# 0.1 s after an instance has begun its ids have five digits and more; none has more than eleven.
_ID = re.compile(rf"[f{HOOKED}][{DIGITS}]{{5,11}}\Z")


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """The command that submits a script: `flux batch` if the job needs a Flux instance of its own.

    Its directives become arguments. `flux submit` reads none, and `flux batch` splits words of theirs at more
    than blanks.
    """
    words = arguments(script)
    if Shape.of(spec).nested:
        text = attrs.evolve(script, directives=()).text
        return command(context.site, "flux", "batch", *words, stdin=text, unset=NOT_THIS_JOBS)
    # Otherwise standard input would be an open socket. There is no `--` before a command: Flux 0.58 runs it.
    run = ("--input=/dev/null", "/bin/sh", "-c", script.run)
    return command(context.site, "flux", "submit", *words, *run, unset=NOT_THIS_JOBS)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """The job's id in what `flux submit` or `flux batch` printed, whatever else stands around it."""
    return the_one_id(map(canonical_id, printed_ids(result)), result.stdout)


def printed_ids(result: CommandResult) -> list[str]:
    """The lines that are ids."""
    lines = [line.strip() for line in result.stdout.splitlines() if _ID.match(line.strip())]
    # A word such as `friday` could be an id, but not beside one that has its hook.
    hooked = [line for line in lines if line.startswith(HOOKED)]
    return hooked or lines


def arguments(script: Script) -> list[str]:
    """The arguments in the directives of a script."""
    return [word for directive in script.directives for word in _words(directive.text)]


def _words(directive: str) -> Iterator[str]:
    """The arguments in a directive, however its sentinel is spelled (RFC 36)."""
    before, sentinel, text = directive.partition(_SENTINEL)
    if sentinel and not before.strip("# "):
        yield from shlex.split(text, comments=True)
