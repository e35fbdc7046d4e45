"""Replaces functions in tests for one thread, as executors of earlier tests may still have threads."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def in_this_thread(replacement: Callable[_P, _R], original: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that is `replacement` in the thread that called this, and `original` in others.

    It is for `monkeypatch.setattr(time, "sleep", in_this_thread(refuse, time.sleep))` and its like.
    """
    here = threading.get_ident()

    @functools.wraps(original)
    def replaced(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return (replacement if threading.get_ident() == here else original)(*args, **kwargs)

    return replaced
