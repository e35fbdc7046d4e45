"""What holds for the tests of every package."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

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
