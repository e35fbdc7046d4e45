"""Renders the runner of an array: a script that all elements share, and blocks with each element's lines.

An element reads its index from the index variable, and its lines from the block that holds them. The lines
are those of a single job, except for the claim, which belongs to the array: the first element to run makes it
in one step, so that no other element reads half of it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from jpsi.plugin import Arrays, word
from jpsi.plugin.kit import forward_signals, trap_signals
from jpsi_engine.runner.claim_and_markers import (
    BATCH_FUNCTIONS,
    OWN,
    BatchFrame,
    first_set_variable,
    private_umask,
)
from jpsi_engine.runner.requeue import RequeueRules, count_runs, define_functions
from jpsi_engine.runner.script import runner_lines
from jpsi_engine.runner.script_input import Run
from jpsi_engine.spool import BLOCK, Layout
from jpsi_engine.verdict import SETUP_CODE

_FIND_TOOL = "PATH=${PATH-}:/usr/bin:/bin command"
# The option with which the script is started for one process of an element; its value is the element's index.
_ELEMENT_OPTION = "--element="


@attrs.frozen(slots=True)
class ElementFrame(BatchFrame):
    """The frame of an array element; the shared script holds most of it."""

    #: The shared script, and the element's index.
    common: str = attrs.field(kw_only=True)
    index: int | str = attrs.field(kw_only=True)

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:  # noqa: ARG002  see there
        """See `Frame`."""
        yield f"_jpsi_begin {folder.rpartition('/')[2]} {attempt}"

    def define(self, lines: Iterable[str]) -> Iterable[str]:  # noqa: ARG002  see there
        """See `Frame`."""
        return ()

    def rerun_words(self, file: str) -> list[str]:  # noqa: ARG002  see there
        """See `Frame`."""
        return ["/bin/sh", word(self.common), f"{_ELEMENT_OPTION}{self.index}"]


_INDEX = """\
# The index of this element, from the batch system or from the launcher that starts one of its processes.
case ${{1-}} in
{option}*) _jpsi_index=${{1#{option}}}; shift ;;
*) _jpsi_index={index} ;;
esac
case $_jpsi_index in "" | *[!0-9]*) exit {code} ;; esac"""

_BEGIN = """\
_jpsi_begin() {{
  {umask}
  _jpsi_folder={jobs}/$1
  _jpsi_mark={events}/$1.$2
  _jpsi_element_id={native_id}
  _jpsi_native_id=$_jpsi_element_id{common}
  [ -n "$_jpsi_native_id" ] || exit {code}
  # The batch job that makes the claim runs this array, no other ever does; the other elements find its claim.
  if [ ! -e "$_jpsi_array/claim" ]; then
    _jpsi_draft=$_jpsi_array/claim.$_jpsi_index.$$
    echo "$_jpsi_native_id" >"$_jpsi_draft" && {found} ln "$_jpsi_draft" "$_jpsi_array/claim" 2>/dev/null
    {found} rm -f "$_jpsi_draft"
  fi
  read -r _jpsi_claim <"$_jpsi_array/claim" || exit {code}
  [ "$_jpsi_claim" = "$_jpsi_native_id" ] || exit {code}
  [ -d "$_jpsi_folder" ] || {found} mkdir -m 700 "$_jpsi_folder" || :
  [ -e "$_jpsi_folder/array.$2" ] || echo {array} "$_jpsi_index" >"$_jpsi_folder/array.$2" || :"""


def render_array_runner(
    array: str, layout: Layout, arrays: Arrays, rules: RequeueRules, functions: Sequence[str] = ()
) -> str:
    """Return the script that every element of an array runs.

    Args:
        array: jpsi's id of the array.
        layout: the paths of the spool where the jobs run.
        arrays: the variables from which an element learns its index and its native id.
        rules: those for an element that the batch system runs again.
        functions: the lines of the functions that elements use; the shared script defines them once.
    """
    begin = _BEGIN.format(
        umask="\n  ".join(private_umask()),
        jobs=word(layout.jobs),
        events=word(layout.events),
        native_id=first_set_variable(arrays.id_variable, default=""),
        common=_strip_brackets(arrays.id_brackets),
        found=_FIND_TOOL,
        code=SETUP_CODE,
        array=word(array),
    )
    index = first_set_variable(arrays.index_variable, default="")
    count_lines = "\n".join(count_runs("$2", rules)).splitlines()
    return "\n".join(
        [
            "#!/bin/sh",
            f"# The script of jpsi's array {array}; intent.json beside it holds the requests of its jobs.",
            _INDEX.format(option=_ELEMENT_OPTION, index=index, code=SETUP_CODE),
            f"_jpsi_array={word(f'{layout.arrays}/{array}')}",
            BATCH_FUNCTIONS,
            *functions,
            *define_functions(rules),
            *forward_signals(OWN),
            begin,
            *(f"  {line}" for line in [*count_lines, *trap_signals(OWN, "_jpsi_note signalled; ")]),
            "  _jpsi_note active",
            "}",
            f"_jpsi_block=$_jpsi_array/elements.$(((_jpsi_index - 1) / {BLOCK}))",
            f'[ -s "$_jpsi_block" ] || exit {SETUP_CODE}',
            '. "$_jpsi_block"',
            f"exit {SETUP_CODE}",
            "",
        ]
    )


def _strip_brackets(brackets: str) -> str:
    """Return the line that removes the text between two characters from an id; empty if there are none."""
    if not brackets:
        return ""
    first, last = map(word, brackets)
    name = "_jpsi_native_id"
    return f"\n  {name}=${{{name}%%{first}*}}{word(brackets)}${{{name}#*{last}}}"


#: Words that stand for the id of an element's job, its index and its arguments in the lines of an
#: `ElementForm`. No text of a user contains them, and they need no quotes.
JOB_ID, INDEX, ARGUMENTS = (f"{name}-{os.urandom(16).hex()}" for name in ("id", "index", "arguments"))
_STAND_INS = re.compile(f"({JOB_ID}|{INDEX}| {ARGUMENTS})")


class ElementForm:
    """The lines of elements that differ in the ids of their jobs, their indices and their arguments alone."""

    def __init__(self, run: Run) -> None:
        """Render the lines of an element; `run` has the words that stand for what differs."""
        self._pieces = _STAND_INS.split(element_text(run))

    def text(self, job_id: str, index: int, arguments: Iterable[str]) -> str:
        """Return the lines of one element, none of whose arguments has a reference to a variable."""
        words = "".join([f" {word(it)}" for it in arguments])
        actual = {JOB_ID: job_id, INDEX: str(index), f" {ARGUMENTS}": words}
        return "".join([actual.get(it, it) for it in self._pieces])


def element_text(run: Run) -> str:
    """Return the lines of one element, with its `ElementFrame`."""
    return "\n".join(runner_lines(run))


def element_blocks(elements: Iterable[str]) -> Iterator[str]:
    """Yield the text of each block file in order: the lines of up to `BLOCK` elements.

    Args:
        elements: the lines of each element, in their order.
    """
    numbered = enumerate(elements, 1)
    while block := [f"{index})\n{text}\n;;\n" for index, text in itertools.islice(numbered, BLOCK)]:
        yield "".join(["case $_jpsi_index in\n", *block, "esac\n"])
