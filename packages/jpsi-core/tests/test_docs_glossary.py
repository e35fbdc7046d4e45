"""The glossary names modules that exist, and stays short."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
GLOSSARY = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")


def test_every_module_that_the_glossary_names_exists() -> None:
    named = set(re.findall(r"`(jpsi\w*(?:\.\w+)+)`", GLOSSARY))
    sources = ROOT.glob("packages/*/src/**/*.py")
    modules = {".".join(it.with_suffix("").parts).partition(".src.")[2] for it in sources}

    missing = [it for it in sorted(named) if not {it, f"{it}.__init__"} & modules]

    assert (len(named) > 30, missing) == (True, [])


def test_the_glossary_has_at_most_40_terms() -> None:
    assert len(re.findall(r"^: ", GLOSSARY, re.MULTILINE)) <= 40
