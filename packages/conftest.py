"""What holds for the tests of every package."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes tells how busy the machine is.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_ignored() -> Iterator[None]:
    """Have programs heed signals, whatever has started the tests: what nohup(1) ignores is inherited."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
    ignored = [it for it in numbers if signal.getsignal(it) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
