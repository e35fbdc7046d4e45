"""What holds for the tests of every package."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is.
settings.register_profile(
    "jpsi", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("jpsi"), max_examples=2000)
settings.load_profile("jpsi")

# The number of new objects after which garbage is collected. With the interpreter's own, that took a tenth of
# the time of all tests.
_GC_THRESHOLD = 20_000


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from the tests that pytest collects: they live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Search for doctests only in files that have some; most have none, and each worker collects all."""
    collectors = yield
    if not collectors or ">>>" in file_path.read_text(encoding="utf-8", errors="replace"):
        return collectors
    return [it for it in collectors if not isinstance(it, DoctestModule)]


# Python itself ignores these, and has the programs that it starts heed them.
_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_ignored() -> Iterator[None]:
    """Have programs heed signals, whatever has started the tests: what nohup(1) ignores is inherited.

    A hang-up still ends no worker: a handler holds for this process alone, programs have the default again.
    """
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: lambda *_: None}
    ignored = [it for it in signal.valid_signals() if signal.getsignal(it) is signal.SIG_IGN]
    inherited = [it for it in ignored if it not in _IGNORED_BY_PYTHON]
    for number in inherited:
        signal.signal(number, handlers.get(number, signal.SIG_DFL))
    yield
    for number in inherited:
        signal.signal(number, signal.SIG_IGN)
