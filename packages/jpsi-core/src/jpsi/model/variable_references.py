"""The rule for `${NAME}` in arguments and environment values: which references are expanded.

`${NAME}`, with NAME a POSIX identifier, refers to an environment variable of the job. One more dollar
sign in front makes it the literal text: `$${NAME}` is `${NAME}`, `$$${NAME}` is `$${NAME}`. Nothing
else is special (J/PSI 0: setEnvironment, setArguments).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_REFERENCE = re.compile(r"(\$+)\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Reference(NamedTuple):
    """A reference to an environment variable in a text."""

    name: str


def pieces(text: str) -> Iterator[str | Reference]:
    """Yield the literal texts and the references that `text` consists of, in order.

    >>> list(pieces("a${B}c$${D}$E"))
    ['a', Reference(name='B'), 'c', '${D}', '$E']
    """
    end = 0
    for match in _REFERENCE.finditer(text):
        dollars, name = match.groups()
        if match.start() > end:
            yield text[end : match.start()]
        yield Reference(name) if len(dollars) == 1 else f"{dollars[1:]}{{{name}}}"
        end = match.end()
    if end < len(text):
        yield text[end:]


def has_reference(text: str) -> bool:
    """Return True if `text` contains a reference or an escaped one."""
    return "${" in text and _REFERENCE.search(text) is not None


def expand(text: str, environment: Mapping[str, str], *, keep_unset: bool) -> str:
    """Return `text` with its references replaced from `environment`.

    An unset name stays as written if `keep_unset` is true (arguments), else it is empty (values).

    >>> expand("${A}-${B}", {"A": "1"}, keep_unset=True)
    '1-${B}'
    """
    if "${" not in text:
        return text
    return "".join(
        it if isinstance(it, str) else environment.get(it.name, f"${{{it.name}}}" if keep_unset else "")
        for it in pieces(text)
    )


def escape(text: str) -> str:
    """Return the text that expands to `text` itself.

    >>> escape("cost: $5 for ${USER}")
    'cost: $5 for $${USER}'
    """
    return _REFERENCE.sub(r"$\g<0>", text) if "${" in text else text
