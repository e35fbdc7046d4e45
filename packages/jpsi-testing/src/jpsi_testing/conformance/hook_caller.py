"""Calls the hooks of a plugin in conformance tests, and fails if they are no pure functions."""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import inspect
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import attrs
import pluggy

from jpsi import JobSpec
from jpsi.plugin import (
    CommandResult,
    ExecutorConfig,
    ExecutorHooks,
    PluginError,
    Script,
    ShellLine,
    Site,
    SubmitContext,
    SubmitException,
)
from jpsi.plugin.engine import installed, load_plugin

#: The tag of the jobs in `Hooks`.
TAG = "jpsi-0b9e6f0e-0000-4000-a000-000000000000-1"

# The functions that a hook must not call, with the modules that hold them.
_EFFECTS = (
    *((subprocess, "Popen"), (builtins, "open"), (os, "getcwd")),
    *((time, "sleep"), (time, "time"), (time, "monotonic")),
)


@contextlib.contextmanager
def _forbid_effects() -> Iterator[None]:
    """Fail the test if this thread runs a program, reads a file, asks a clock or sleeps within the block."""
    thread = threading.get_ident()
    before = [(module, name, getattr(module, name)) for module, name in _EFFECTS]
    for module, name, effect in before:
        setattr(module, name, _forbid(effect, thread))
    try:
        yield
    finally:
        for module, name, effect in before:
            setattr(module, name, effect)


def _forbid(effect: Callable[..., Any], thread: int) -> Callable[..., Any]:
    """Return a replacement for an effect that fails in one thread.

    Executors of other tests may still use the effect in theirs.
    """

    def guarded(*args: object, **kwargs: object) -> object:
        if threading.get_ident() == thread:
            raise AssertionError("a hook takes values and returns values, and does nothing else")
        return effect(*args, **kwargs)

    return guarded


class Hooks:
    """The hooks of one plugin; a call passes only the arguments that the hook declares."""

    def __init__(self, plugin: object, config: ExecutorConfig) -> None:
        self.plugin = plugin
        #: Arguments that every hook may declare.
        self.site = Site(config=config)
        self.context = SubmitContext(site=self.site, job_id="0b9e6f0e-0000-4000-a000-000000000000", tag=TAG)

    def has(self, name: str) -> bool:
        """Return True if the plugin itself implements a hook."""
        return callable(getattr(self.plugin, name, None))

    def get(self, name: str, default: Any = None, **values: Any) -> Any:  # noqa: ANN401  as below
        """Call a hook, or return the default if the plugin does not implement it."""
        return self(name, **values) if self.has(name) else default

    def __call__(self, name: str, **values: Any) -> Any:  # noqa: ANN401  the arguments and answer of any hook
        """Call a hook twice, check that both calls return the same, and return that."""
        function: Callable[..., Any] = getattr(self.plugin, name)
        arguments = self._arguments(function, values)
        original = copy.deepcopy(arguments)
        with _forbid_effects():
            first, second = _result_or_error(function, arguments), _result_or_error(function, arguments)
        assert arguments == original, f"the hook {name} changed its arguments"
        assert repr(first) == repr(second), f"the hook {name} returned different results"
        if isinstance(first, Exception):
            raise first
        return first

    def call_again(self, name: str, **values: Any) -> Any:  # noqa: ANN401  as above
        """Call a hook once, without the checks; for tests that call it thousands of times."""
        function: Callable[..., Any] = getattr(self.plugin, name)
        return function(**self._arguments(function, values))

    def _arguments(self, function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
        values = {"site": self.site, "context": self.context, "seen": {}, **values}
        return {key: values[key] for key in _parameters(function)}

    def script(self, spec: JobSpec, context: SubmitContext | None = None) -> Script | None:
        """Return the complete script of a job; None if the batch system cannot express the spec."""
        try:
            script = self("render_script", spec=spec, context=context or self.context)
        except ValueError:
            return None
        assert isinstance(script, Script)
        return attrs.evolve(script, run=ShellLine("exec /bin/sh /x/run; exit 125"))


def assert_selects(group: str, name: str, plugin: object) -> None:
    """Fail unless this name selects this plugin, or a copy of it on the plugin path."""
    try:
        candidate = installed().find(group, name)
        found = load_plugin(candidate)
    except PluginError as e:
        msg = f"{name!r} selects no plugin; is its distribution installed with its entry point? {e}"
        raise AssertionError(msg) from e
    assert found is plugin or _source(found) == _source(plugin), (
        f"{candidate.label} is {candidate.value}, {found!r}, but the plugin under test is {plugin!r}"
    )


def _source(plugin: object) -> tuple[str, bytes]:
    """Return the source of a plugin, to compare it with a copy on the plugin path, another module."""
    target = plugin if inspect.ismodule(plugin) or inspect.isclass(plugin) else type(plugin)
    return "" if inspect.ismodule(target) else target.__qualname__, Path(inspect.getfile(target)).read_bytes()


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _result_or_error(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:  # noqa: ANN401  as above
    try:
        found = function(**values)
    except (ValueError, SubmitException) as e:
        return e
    return list(found) if inspect.isgenerator(found) else found


def command_result(stdout: str = "", stderr: str = "", returncode: int = 0) -> CommandResult:
    """Return the result of a command that has ended in time.

    >>> command_result("job 17").checked().stdout
    'job 17'
    """
    return CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)


def executor_hooks(plugin: object) -> ExecutorHooks:
    """Return the hooks of one executor plugin, which take all arguments by name and use some of them.

    Raises:
        pluggy.PluginValidationError: the plugin has an unknown hook, or a hook with an unknown argument.
    """
    manager = pluggy.PluginManager("jpsi")
    manager.add_hookspecs(ExecutorHooks)
    manager.register(plugin)
    manager.check_pending()
    return cast("ExecutorHooks", manager.hook)
