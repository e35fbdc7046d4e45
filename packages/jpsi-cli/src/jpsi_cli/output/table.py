"""Aligns the cells of a table in columns."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = "  "


def align(lines: Sequence[Sequence[str]]) -> str:
    """Return the lines of a table, whose cells all have as many characters as the longest of their column.

    >>> print(align([["A", "B"], ["long", "c"]]), end="")
    A     B
    long  c
    """
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (_GAP.join(f"{cell:{size}}" for cell, size in zip(line, sizes, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)
