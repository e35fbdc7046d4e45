"""Asking qacct for jobs that have left the queue, and reading its answers.

Only there are exit codes. A job shows up seconds after its end; one that was deleted while it was pending
never does. Each question has the whole file of accounts read, and can name one job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Observation, hookimpl

from .commands import gridengine
from .ends import observation

# The file comes with the first job that ends, and is not everywhere to be seen.
_NOT_FOUND = re.compile(r"job (?:id|name) \S+ not found|accounting.*: No such file or directory")
_BETWEEN = re.compile(r"^=+$", re.MULTILINE)
_FIELD = re.compile(r"^(\w+) +(.*?) *\n", re.MULTILINE)
# An account without them was cut off; the last of them is below all that counts.
_NEEDED = frozenset({"failed", "exit_status", "ru_wallclock", "maxvmem"})


@hookimpl
def query_finished(native_ids: Sequence[str]) -> Command:
    """The command that asks for the one job."""
    (native_id,) = native_ids
    number, _, task = native_id.partition(".")
    return gridengine("qacct", "-j", number, *(("-t", task) if task else ()))


@hookimpl
def parse_finished(result: CommandResult) -> Mapping[str, Observation]:
    """What qacct said about a job; of one that was put back, its last run."""
    if result.returncode == 1 and _NOT_FOUND.search(result.stderr):
        return {}
    last = dict(_accounts(result.checked().stdout))
    told = {native_id: observation(account) for native_id, account in last.items()}
    return {native_id: it for native_id, it in told.items() if it is not None}


def _accounts(output: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for text in _BETWEEN.split(output):
        account = dict(_FIELD.findall(text))
        number, task = account.get("jobnumber", ""), account.get("taskid", "")
        if number.isdecimal() and account.keys() >= _NEEDED:
            yield (f"{number}.{task}" if task.isdecimal() else number), account
