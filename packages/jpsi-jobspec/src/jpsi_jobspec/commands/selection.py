"""Finds the last run of a document, and its entries by the names that `status` shows.

The commands that show, await or cancel runs begin with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from jpsi import InvalidJobException, JobState

from ..document import suggest_name
from ..groups import mark_lost
from ..planning import Kind
from ..run_store import Journal, Part, inner_journal, latest_run
from .messages import workflow_command


@attrs.frozen(slots=True)
class Inside:
    """Some entries inside of a group."""

    journal: Journal
    names: tuple[str, ...]

    @property
    def has_begun(self) -> bool:
        """True if the allocation of the group has ever started."""
        return self.journal.life is not None


@attrs.frozen(slots=True)
class Named:
    """Some entries of a run."""

    #: The entries at the top.
    top: tuple[str, ...]
    #: The entries inside of groups, by the name of the group at the top.
    inside: Mapping[str, Inside]

    def __bool__(self) -> bool:
        return bool(self.top or self.inside)

    def parts(self, run: Journal) -> list[Part]:
        """Return the states of all their replicas, as far as they are on disk."""
        found = [part for name in self.top for part in run.parts[name]]
        for group, it in self.inside.items():
            it.journal.read_new_events()
            if run.have_ended([group]):
                mark_lost(it.journal)
            found += [part for name in it.names for part in it.journal.parts[name]]
        return found

    def cancelled(self, run: Journal) -> list[str]:
        """Return the names of those that were cancelled."""
        cancelled = (it.entry.id for it in self.parts(run) if it.state is JobState.CANCELED)
        return list(dict.fromkeys(cancelled))

    def have_ended(self, run: Journal) -> bool:
        """Return True if all of them have ended."""
        return all(it.state.final for it in self.parts(run))

    def cancel(self, run: Journal) -> Named:
        """Request the end of all of them; return those whose end a caller can wait for.

        Entries of a group that has not begun are left out: they are cancelled when the group begins.
        """
        if self.top:
            run.cancel(*self.top)
        for it in self.inside.values():
            it.journal.cancel(*it.names)
        return Named(self.top, {group: it for group, it in self.inside.items() if it.has_begun})


def select_entries(words: Iterable[str], run: Journal) -> Named:
    """Return the entries that words name; a group in a group stands for all that is in it.

    Raises:
        InvalidJobException: there is no such entry.
    """
    inner_journals = {
        it.id: inner_journal(run.path, it) for it in run.plan.entries if it.kind is Kind.ALLOCATION
    }
    found = {name for word in words for name in _find_names(word, run, inner_journals)}
    chosen = {
        group: tuple(name for name in it.parts if name in found) for group, it in inner_journals.items()
    }
    return Named(
        tuple(name for name in run.parts if name in found),
        {group: Inside(inner_journals[group], names) for group, names in chosen.items() if names},
    )


def _find_names(word: str, run: Journal, inner_journals: Mapping[str, Journal]) -> list[str]:
    """Return the names of the entries that a word names."""
    inner = None if word in run.parts else inner_journals.get(word.partition("/")[0])
    known = (run if inner is None else inner).parts
    matching = [it for it in known if it == word or it.startswith(f"{word}/")]
    if not matching:
        everything = [*run.parts, *(name for it in inner_journals.values() for name in it.parts)]
        raise InvalidJobException(f"there is no task {word!r}; {suggest_name(word, everything)}")
    return matching


def last_run(file: str) -> Journal:
    """Return the last run of a document.

    Raises:
        InvalidJobException: there is none.
    """
    last = latest_run(file)
    if last is None:
        msg = f"{file} was never run; `{workflow_command('run', file)}` runs it"
        if not Path(file).exists():
            msg = f"{file} was never run here, and does not exist"
        raise InvalidJobException(msg)
    return last
