"""Finds the arguments and the environment that the kernel would refuse to pass to a program.

execve(2), "Limits on size of arguments and environment": one text has at most 32 pages; all texts together,
with a pointer to each, have at most a quarter of the stack's limit. The kernel refuses more with E2BIG.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from jpsi.model.references import expand

# MAX_ARG_STRLEN of Linux, including the final NUL; other kernels limit only the sum.
_PAGES_PER_TEXT = 32
# The most that Linux grants, whatever the limit of the stack is: three quarters of 8 MiB.
_MOST = 6 << 20
_POINTER_BYTES = 8
# Longer names are left out of messages.
_NAMED = 60


def exec_problems(
    executable: str,
    arguments: Sequence[str],
    environment: Mapping[str, str | None],
    inherited: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield why the kernel would refuse to start a program with these texts, as far as they are known.

    References to unknown variables count as empty, since their values are not known on this machine.

    Args:
        executable: the program.
        arguments: its arguments, as they are in a spec.
        environment: the variables to set; variables with None are unset.
        inherited: the variables that it inherits besides.
    """
    texts = list(_texts(executable, arguments, environment))
    longest = text_bytes()
    is_one = False
    for where, text in texts:
        # no character takes more than four bytes
        if longest is not None and len(text) * 4 >= longest and _size(text) > longest:
            is_one = True
            yield (
                f"{where} takes {_size(text)} bytes, and the kernel passes a program at most {longest} "
                f"in one argument or variable: hand it a file instead"
            )
    if is_one:
        return
    others = [f"{name}={value}" for name, value in (inherited or {}).items() if name not in environment]
    total = sum(_size(text) + _POINTER_BYTES for text in (*(text for _, text in texts), *others))
    if total > (most := all_bytes()):
        besides = f", {len(others)} of them inherited," if others else ""
        yield (
            f"arguments and environment together{besides} take {total} bytes, and the kernel passes "
            f"a program at most {most}: hand it a file instead"
        )


def text_bytes() -> int | None:
    """Return how many bytes one argument or variable may have with its final NUL; None is any number."""
    return _PAGES_PER_TEXT * os.sysconf("SC_PAGE_SIZE") if sys.platform == "linux" else None


def all_bytes() -> int:
    """Return how many bytes all arguments and variables may have, with a NUL and a pointer for each."""
    limit = os.sysconf("SC_ARG_MAX")
    return min(limit, _MOST) if limit > 0 else _MOST


def _texts(
    executable: str, arguments: Sequence[str], environment: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yield the texts to pass, each with its name for messages."""
    known: dict[str, str] = {}
    yield "executable", executable
    for name, value in environment.items():
        if value is None:
            known.pop(name, None)
        else:
            known[name] = expand(value, known, keep_unset=False)
    for index, text in enumerate(arguments):
        yield f"arguments[{index}]", expand(text, known, keep_unset=False)
    for name, value in known.items():
        yield f"environment[{name!r}]" if len(name) < _NAMED else "environment", f"{name}={value}"


def _size(text: str) -> int:
    return 1 + (len(text) if text.isascii() else len(os.fsencode(text)))
