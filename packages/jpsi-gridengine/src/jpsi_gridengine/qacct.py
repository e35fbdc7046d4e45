"""Asking qacct for jobs that have left the queue, and reading its answers.

Only there are exit codes. A job shows up seconds after its end; one that was deleted while it was pending
never does. A task that a parallel job has started by `qrsh -inherit` may have an account of its own, before
the job has one: qacct of 8.1.9 does not tell the two apart, but its file of accounts does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import NOT_OFFERED, Command, CommandResult, NotOffered, Observation, Site, hookimpl

from .commands import gridengine
from .ends import observation

# accounting(5) of 8.1.9: 6 job_number, 34 granted_pe, 36 task_number, 42 pe_taskid. What is left are accounts
# of jobs, and look like those of jobs without tasks. OCS 9 has no such file.
_ASK = """\
accounts=$1/${SGE_CELL:-default}/common/accounting
shift
if [ -r "$accounts" ]; then
    found=$(awk -F: -v OFS=: -v asked="$*" '
        BEGIN { for (i = split(asked, ids, " "); i; i--) wanted[ids[i]] }
        ($6 in wanted || ($6 "." $36) in wanted) && ($34 == "NONE" || $42 == "NONE") {
            $34 = "NONE"
            print
        }' "$accounts") || exit
    [ -z "$found" ] || printf '%s\\n' "$found" | qacct -f /dev/stdin -j
    exit
fi
code=0
for id do
    case $id in
    *.*) qacct -j "${id%.*}" -t "${id#*.}" ;;
    *) qacct -j "$id" ;;
    esac || code=$?
done
exit "$code"
"""

# The file comes with the first job that ends.
_NOT_FOUND = re.compile(
    r"^(?:error: (?:job (?:id|name) \S+|Job-array tasks \S+) not found"
    r"|.*accounting: No such file or directory|no jobs running since startup)$",
    re.MULTILINE,
)
_UNREADABLE = re.compile(r"^error: unable to open ", re.MULTILINE)
_NO_COMMAND = frozenset({126, 127})
_NONE = "NONE"
_BETWEEN = re.compile(r"^=+$", re.MULTILINE)
_FIELD = re.compile(r"^(\w+) +(.*?) *\n", re.MULTILINE)
# An account without them was cut off; the last of them is below all that counts.
_NEEDED = frozenset({"failed", "exit_status", "ru_wallclock", "maxvmem"})


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """The command that asks for these jobs; it is one job as long as nobody knows where the accounts are."""
    if "root" in site.offers:
        return gridengine("/bin/sh", "-c", _ASK, "qacct", site.offers["root"], *native_ids)
    (native_id,) = native_ids
    number, _, task = native_id.partition(".")
    return gridengine("qacct", "-j", number, *(("-t", task) if task else ()))


@hookimpl
def parse_finished(result: CommandResult) -> Mapping[str, Observation] | NotOffered:
    """What qacct said about jobs; of one that was put back, its last run."""
    if result.returncode in _NO_COMMAND or _UNREADABLE.search(result.stderr):
        return NOT_OFFERED
    if not result.stderr or _NOT_FOUND.sub("", result.stderr).strip():
        result.checked()
    last = dict(_accounts(result.stdout))
    told = {native_id: observation(account) for native_id, account in last.items()}
    return {native_id: it for native_id, it in told.items() if it is not None}


def _accounts(output: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for text in _BETWEEN.split(output):
        account = dict(_FIELD.findall(text))
        number, task = account.get("jobnumber", ""), account.get("taskid", "")
        # Only OCS 9 says whether it is a task's; of a parallel job, any other account may be one.
        part = account.get("pe_taskid", account.get("granted_pe", _NONE))
        if number.isdecimal() and account.keys() >= _NEEDED and part == _NONE:
            yield (f"{number}.{task}" if task.isdecimal() else number), account
