"""The help and the messages of `jpsi`, which `texts.txt` shows in one piece."""

from __future__ import annotations

from texts import FILE, OF_OTHER_PACKAGES, parse, render, sections


def test_the_file_has_all_help_and_messages() -> None:
    """After a change: python packages/jpsi-cli/tests/texts.py, and read what it has written."""
    recorded, found = parse(FILE.read_text()), sections()

    # commands of other packages are compared where these are installed
    missing = [it for it in recorded if it not in found and it.startswith(OF_OTHER_PACKAGES)]
    expected = {heading: text for heading, text in recorded.items() if heading not in missing}
    assert render(found).splitlines() == render(expected).splitlines()
