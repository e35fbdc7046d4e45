"""Writes plugins/backend-hooks.md: the hooks that a backend must implement, and the others' defaults.

    python docs/backend_hooks.py [--check]

It reads the hooks of executors and the default implementations of core. With `--check` nothing is written,
and a page that is not what they say is an error.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from jpsi.layers import default_hooks
from jpsi.plugin import NOT_OFFERED, ExecutorHooks

PAGE = Path(__file__).parent / "plugins" / "backend-hooks.md"
INTRODUCTION = """\
# What a backend must say

*For: authors of plugins for a batch system.*

These hooks of an executor have no default: a backend must implement each, unless it brings an engine of its
own. `python docs/backend_hooks.py` makes this page from the hooks and from core's default implementations;
[write an executor](executor.md) shows how to implement them, and [the reference](../reference/hooks.md)
lists what each gets and returns.
"""
DEFAULTS = """\
All others are optional. This is what core says without them:
"""
#: Hooks whose results of all layers count, and the one that replaces the engine.
OPTIONAL = {
    "check_spec": "No problem: every valid spec can run.",
    "make_engine": "Return None: the engine of jpsi-engine runs the backend.",
}
#: The hook whose output a hook reads, where the names do not say it.
READS = {"parse_event": "watch", "parse_finished": "query_finished", "parse_cancel": "parse_cancel"}


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE.name} is not what the hooks say: python docs/backend_hooks.py writes it")
        return 1
    return 0


def page() -> str:
    """Return the text of the page."""
    needed = "".join(f"| `{name}` | {sentence(getattr(ExecutorHooks, name))} |\n" for name in required())
    given = "".join(f"| `{name}` | {without(name)} |\n" for name in hooks() if name not in required())
    head = "| hook | {} |\n|---|---|\n"
    return (
        f"{INTRODUCTION}\n{head.format('what it says')}{needed}\n"
        f"{DEFAULTS}\n{head.format('without it')}{given}"
    )


def hooks() -> list[str]:
    """Return the names of all hooks of executors, in their order."""
    return [name for name in vars(ExecutorHooks) if not name.startswith("_")]


def required() -> list[str]:
    """Return the hooks that have no default."""
    return [name for name in hooks() if not hasattr(default_hooks, name) and name not in OPTIONAL]


def without(name: str) -> str:
    """Return what core says if a backend does not implement a hook."""
    if name in OPTIONAL:
        return OPTIONAL[name]
    command = READS.get(name, name.removeprefix("parse_"))
    if is_offered(command):
        return sentence(getattr(default_hooks, name))
    return "Not offered." if command == name else f"Not needed without `{command}`."


def is_offered(name: str) -> bool:
    """Return False if the default of a hook is NOT_OFFERED."""
    default = getattr(default_hooks, name)
    return bool(inspect.signature(default).parameters) or default() is not NOT_OFFERED


def sentence(function: object) -> str:
    """Return the first sentence of a docstring, on one line."""
    text = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", text)[0]


if __name__ == "__main__":
    raise SystemExit(main())
