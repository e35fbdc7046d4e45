"""The lookup of ids by a unique prefix."""

from __future__ import annotations

import re

from sqlalchemy import Column, select

from ..errors import AmbiguousError, NotFoundError
from .database import Transaction

_BEGINNING = re.compile(r"[0-9a-f-]{1,36}")
_TOLD = 3


def full_id(tx: Transaction, column: Column[str], beginning: str) -> str:
    """Return the one id in a table that begins with a prefix.

    Raises:
        NotFoundError: no id begins with it.
        AmbiguousError: several ids begin with it.
    """
    what = column.table.name
    found: list[str] = []
    if _BEGINNING.fullmatch(beginning):
        begins = column.startswith(beginning, autoescape=True)
        statement = select(column).where(begins).order_by(column).limit(_TOLD)
        found = list(tx.execute(statement).scalars())
    if len(found) == 1 or beginning in found:
        return beginning if beginning in found else found[0]
    if found:
        msg = f"several {what}s begin with {beginning}: {', '.join(found)}; write more of it"
        raise AmbiguousError(msg)
    msg = f"there is no {what} {beginning}"
    raise NotFoundError(msg)
