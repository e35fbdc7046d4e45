"""The help and the messages of `jpsi`, which `texts.txt` shows in one piece."""

from __future__ import annotations

from texts import FILE, parse, render, sections


def test_the_file_has_all_help_and_messages() -> None:
    """After a change: python packages/jpsi-cli/tests/texts.py, and read what it has written."""
    recorded, found = parse(FILE.read_text()), sections()

    # commands of other packages are compared where these are installed
    others = [it for it in recorded if it.startswith(("jpsi request ", "jpsi workflow ")) and it not in found]
    assert list(recorded) == [*others, *found] or recorded.keys() == {*others, *found}
    shared = {heading: recorded[heading] for heading in found if heading in recorded}
    assert render(shared).splitlines() == render({it: found[it] for it in shared}).splitlines()
