"""`flux bulksubmit` of the fake of Flux: inputs replace placeholders in braces.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandError, FakeScheduler, Invocation

from .submit import submit

_INPUTS, _LINKED = ":::", ":::+"
_FAILED = 2


def bulksubmit(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a command for each input; inputs are arguments or lines of standard input."""
    template, lists = _split_inputs(invocation.arguments[1:])
    lists = lists or [(_INPUTS, [line for line in invocation.stdin.split("\n") if line])]
    try:
        jobs = [[word.format(*inputs) for word in template] for inputs in _combine_inputs(lists)]
    except (IndexError, KeyError) as e:
        raise CommandError(1, f"flux: ERROR: Replacement key {e} not found\n") from e
    code, ids, errors = 0 if jobs else 1, "", ""
    # Flux prints ids in the order in which it validated the jobs.
    for words in _shuffle_jobs(jobs):
        try:
            ids += submit(scheduler, attrs.evolve(invocation, argv=["flux", "submit", *words]))
        except CommandError as e:
            code, errors = e.result.returncode, errors + e.result.stderr
            if code >= _FAILED:
                raise CommandError(code, e.result.stderr.replace("submit", "bulksubmit")) from e
    return CommandResult(returncode=code, stdout=ids, stderr=errors)


def _split_inputs(words: Iterable[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the command, and the lists of inputs, each with its separator."""
    template: list[str] = []
    lists: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith(_INPUTS):
            lists.append((word, []))
        else:
            (lists[-1][1] if lists else template).append(word)
    return template, lists


def _combine_inputs(lists: Sequence[tuple[str, list[str]]]) -> Iterator[list[str]]:
    """Yield the inputs of each job: all combinations, except that a linked list follows the one before it."""
    positions = enumerate(lists)
    links = {position: itertools.cycle(inputs) for position, (mark, inputs) in positions if mark == _LINKED}
    for free in itertools.product(*(inputs for mark, inputs in lists if mark != _LINKED)):
        left = iter(free)
        yield [next(links[position]) if position in links else next(left) for position in range(len(lists))]


def _shuffle_jobs(jobs: Sequence[list[str]]) -> Iterator[list[str]]:
    """Yield the jobs with neighbours swapped."""
    for pair in range(0, len(jobs), 2):
        yield from reversed(jobs[pair : pair + 2])
