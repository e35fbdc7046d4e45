"""Submits a script with `flux submit` or `flux batch`: builds the command, and parses the native id.

The engine runs the command. `nodes` renders the shell lines by which a running job lists the node of each of
its processes.
"""

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
    ShellLine,
    SubmitContext,
    hookimpl,
    line,
)
from jpsi.plugin.kit import require_one_id

from .commands import command
from .native_ids import DIGITS, HOOKED, canonical_id
from .shape import Shape

#: flux-environment(7): the variables of a surrounding job. FLUX_URI stays, as clients need it to reach Flux.
INHERITED_VARIABLES = (
    "FLUX_ENCLOSING_ID",
    "FLUX_JOB_*",
    "FLUX_KVS_NAMESPACE",
    "FLUX_PMI_LIBRARY_PATH",
    "FLUX_TASK_*",
    "OMPI_MCA_btl_vader_backing_directory",
    *RANK_VARIABLES,
)
_SENTINEL = "flux:"
# An id has at least five digits 0.1 s after the instance started, and never more than eleven.
_ID = re.compile(rf"[f{HOOKED}][{DIGITS}]{{5,11}}\Z")


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """Return the command that submits a script: `flux batch` if the job needs its own Flux instance.

    The script's directives become arguments, as `flux submit` reads no directives, and `flux batch` splits
    them at more characters than blanks.
    """
    words = arguments(script)
    if Shape.for_spec(spec).nested:
        text = attrs.evolve(script, directives=()).text
        return command(context.site, "flux", "batch", *words, stdin=text, unset=INHERITED_VARIABLES)
    # Otherwise standard input would be an open socket. Flux 0.58 would run a `--` before the command.
    run = ("--input=/dev/null", "/bin/sh", "-c", script.run)
    return command(context.site, "flux", "submit", *words, *run, unset=INHERITED_VARIABLES)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the job's native id from the output of the submission, which may contain other text."""
    return require_one_id(map(canonical_id, parse_printed_ids(result)), result.stdout)


def parse_printed_ids(result: CommandResult) -> list[str]:
    """Return the lines that are ids, in Flux's spelling."""
    lines = [line.strip() for line in result.stdout.splitlines() if _ID.match(line.strip())]
    # A word such as `friday` could be an id, but not if another line has an id with the hook.
    hooked = [line for line in lines if line.startswith(HOOKED)]
    return hooked or lines


def arguments(script: Script) -> list[str]:
    """Return the arguments from the directives of a script."""
    return [word for directive in script.directives for word in _split_directive(directive.text)]


def _split_directive(directive: str) -> Iterator[str]:
    """Yield the arguments in a directive, for all spellings of the sentinel (RFC 36)."""
    prefix, sentinel, text = directive.partition(_SENTINEL)
    if sentinel and not prefix.strip("# "):
        yield from shlex.split(text, comments=True)


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Return shell that prints the node of each process, one per line, in the order of the ranks.

    For a job with its own instance, Flux places processes here as it will for the launcher; the only process
    of any other job is on the node of the shell.
    """
    shape = Shape.for_spec(spec)
    if not shape.nested:
        return [line("hostname")]
    options = [f"--ntasks={shape.processes}", "--label-io", "--input=/dev/null"]
    if shape.nodes is not None:
        options.append(f"--nodes={shape.nodes}")
    if shape.cores is not None:
        options.append(f"--cores-per-task={shape.cores}")
    if shape.gpus is not None:
        options.append(f"--gpus-per-task={shape.gpus}")
    requested = line("flux", "run", *options, "hostname")
    return [ShellLine(f"{requested} | sort -n | sed 's/^ *[0-9]*: //'")]
