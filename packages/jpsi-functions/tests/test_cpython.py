"""CPython's own tests for executors, run on jobs where they are installed (Debian: libpython3.11-testsuite).

Debian's are found from another Python 3.11 as well.

Left out are the tests that name an executor of `concurrent.futures` in a program of their own
(test_interpreter_shutdown, test_submit_after_interpreter_shutdown, test_hang_gh83386), and the check that no
thread is left, as the threads of jpsi serve all executors of a process. The classes for pools of threads and
of processes, which look into these, are left out as a whole.
"""

from __future__ import annotations

import functools
import importlib
import sys
import unittest
from types import ModuleType
from typing import Any
from unittest import mock

import cloudpickle  # type: ignore[import-untyped]  # it has no types
import pytest
import test

from jpsi_functions import FunctionExecutor

# One module up to Python 3.11, and a package since then.
_NAMES = ("test_concurrent_futures", *(f"test_concurrent_futures.{it}" for it in (
    "executor", "test_wait", "test_as_completed", "test_shutdown",
)))  # fmt: skip
_LEFT_OUT = {"test_interpreter_shutdown", "test_submit_after_interpreter_shutdown", "test_hang_gh83386"}


def _modules() -> list[ModuleType]:
    found = []
    debian = f"/usr/lib/python{sys.version_info.major}.{sys.version_info.minor}/test"
    if debian not in test.__path__:
        test.__path__.append(debian)
    for name in _NAMES:
        try:
            module = importlib.import_module(f"test.{name}")
        except (ImportError, unittest.SkipTest):
            continue
        # the jobs do not find it
        cloudpickle.register_pickle_by_value(module)
        found.append(module)
    return found


def _mixin(name: str) -> type[Any]:
    return next((vars(it)[name] for it in _modules() if name in vars(it)), _Missing)


class _Missing:
    def test_is_installed(self) -> None:
        pytest.skip("CPython's tests are not installed")

    test_cancel_futures = test_is_installed


class OnJobs:
    """Makes the executor of a test: up to five jobs of this machine at a time."""

    worker_count = 5
    executor_type = functools.partial(FunctionExecutor, "local")

    def setUp(self) -> None:
        self.executor = self.executor_type(max_workers=self.worker_count)

    def tearDown(self) -> None:
        self.executor.shutdown()


class TestExecutor(OnJobs, _mixin("ExecutorTest"), unittest.TestCase):  # type: ignore[misc]
    """`submit` and `map`."""


class TestShutdown(OnJobs, _mixin("ExecutorShutdownTest"), unittest.TestCase):  # type: ignore[misc]
    """`shutdown`."""

    def test_cancel_futures(self) -> None:
        """The test counts on a call that has ended, and a job may start late: the first ends at once."""
        submit, calls = self.executor.submit, []

        def submit_after_the_first(*args: Any) -> Any:
            calls.append(submit(*args))
            calls[0].result()
            return calls[-1]

        with mock.patch.object(self.executor, "submit", submit_after_the_first):
            super().test_cancel_futures()


class TestWait(OnJobs, _mixin("WaitTests"), unittest.TestCase):  # type: ignore[misc]
    """`wait`."""


class TestAsCompleted(OnJobs, _mixin("AsCompletedTests"), unittest.TestCase):  # type: ignore[misc]
    """`as_completed`."""


for _name in _LEFT_OUT:
    setattr(TestShutdown, _name, None)
