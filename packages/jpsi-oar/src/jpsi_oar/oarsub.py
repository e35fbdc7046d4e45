"""Submits a job with oarsub: builds the command, and parses the native id or the refusal.

OAR passes no variable of the client on to a job. So the command first writes them into a file beside the one
that runs the job, and the job reads them from there. The engine runs the command. `nodes` renders the shell
lines by which a running job lists the node of each of its processes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from jpsi.plugin import (
    RANK_VARIABLES,
    Command,
    CommandResult,
    FailureKind,
    JobSpec,
    Script,
    ShellLine,
    SubmitContext,
    hookimpl,
    line,
    node_count,
    resources,
    units,
)
from jpsi.plugin.kit import SubmitErrors, require_one_id

from .directives import CUSTOM, split_types

# Variables of a surrounding job; and those of bash that no shell may set
_INHERITED_VARIABLES = ("OAR_*", "OARDO_*", "BASHOPTS", "SHELLOPTS", *RANK_VARIABLES)
_ENVIRONMENT = ".environment"
# oarsub deletes the jobs that it has just made if the reader of its output has ended: so the shell reads it,
# which goes on if the client is killed.
_RUN = 'answer=$("$@"); code=$?; printf "%s\\n" "$answer"; exit "$code"'
# $0 is the file
_SUBMIT = f'(umask 077 && export -p >"$0") || exit; {_RUN}'

_JOB = re.compile(r"^OAR_JOB_ID=([1-9][0-9]*)\r?$", re.MULTILINE)
_ARRAY = re.compile(r"^OAR_ARRAY_ID=([1-9][0-9]*)\r?$", re.MULTILINE)

# Messages of oarsub and of the admission rules of 2.5.9; a message that is not listed is AMBIGUOUS.
classify_failure = SubmitErrors(
    command="oarsub",
    texts=(
        ("waiting advance reservations", FailureKind.TRANSIENT),
        ("are not allowed to submit jobs", FailureKind.PERMANENT),
        ("There are not enough resources for your request", FailureKind.INVALID_JOB),
        ("Bad resource request", FailureKind.INVALID_JOB),
        ("Cannot recognize ", FailureKind.INVALID_JOB),
        ("Unknown option: ", FailureKind.INVALID_JOB),
    ),
    # a wrong date, a date that is taken, a wrong notification, an unknown queue, an admission rule
    own_codes={7, 10, 16, 248, 250, 254},
    own_words=("ERROR", "/!\\", "--> KO", "[ADMISSION RULE]"),
).failure

# Lines of $OAR_NODEFILE: the node of each of the job's resources, which are cores at most sites
_AWK_NODES = (
    "NF { if (!($1 in slots)) node[++count] = $1; slots[$1]++ } "
    "END { for (i = 1; i <= count; i++) for (left = each ? each : int(slots[node[i]] / cores); "
    "left > 0 && report < processes; left--) { print node[i]; report++ } }"
)


@hookimpl
def submit(script: Script, spec: JobSpec) -> Command:
    """Return the command that submits a script; its directives and the user's property become arguments."""
    condition = CUSTOM.of(spec).get("property")
    words = [*_arguments(script), *([f"--property={condition}"] if condition else [])]
    if not script.file:
        command = ["/bin/sh", "-c", _RUN, "sh", "oarsub", *words, script.run]
        return Command(command, unset=_INHERITED_VARIABLES)
    environment = f"{script.file}{_ENVIRONMENT}"
    # `command` keeps sh from ending with the code of the dot
    run = line("exec", "/bin/sh", "-c", f"{line('command', '.', environment)} || exit 125; {script.run}")
    return Command(["/bin/sh", "-c", _SUBMIT, environment, "oarsub", *words, run], unset=_INHERITED_VARIABLES)


def _arguments(script: Script) -> Iterator[str]:
    for directive in script.directives:
        _, option, *values = shlex.split(directive.text, comments=False)
        for value in split_types(values[0]) if option == "--type" else values:
            yield f"{option}={value}"
        if not values:
            yield option


@hookimpl
def parse_submit(result: CommandResult, context: SubmitContext) -> str:
    """Return the native id of the job or array from oarsub's output, which may contain other text."""
    arrays = _ARRAY.findall(result.stdout) if context.elements is not None else []
    return require_one_id(arrays or _JOB.findall(result.stdout), result.stdout)


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Return shell lines that print the node of each process."""
    requested = resources(spec)
    cores, processes = requested.cpu_cores_per_process or 1, requested.computed_process_count
    count = node_count(requested)
    each = 0 if count is None else units(processes, count)
    awk = line("awk", f"-vcores={cores}", f"-vprocesses={processes}", f"-veach={each}", _AWK_NODES)
    return [ShellLine(f'{awk} "$OAR_NODEFILE"')]
