"""Asks the hooks of a plugin, and sees that they are nothing but functions of what they are given."""

from __future__ import annotations

import contextlib
import copy
import inspect
import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import attrs

from jpsi import JobSpec
from jpsi.plugin import ExecutorConfig, PluginError, Script, ShellLine, Site, SubmitContext, SubmitException
from jpsi.plugin.engine import installed, load_plugin

#: The tag that `Hooks` has jobs carry.
TAG = "jpsi-0b9e6f0e-0000-4000-a000-000000000000-1"

_EFFECTS = ("subprocess.Popen", "builtins.open", "time.sleep", "time.time", "time.monotonic", "os.getcwd")


@contextlib.contextmanager
def _nothing_but_values() -> Iterator[None]:
    """Has this thread fail where it runs a program, reads a file, asks a clock or sleeps."""
    thread = threading.get_ident()
    with contextlib.ExitStack() as stack:
        for name in _EFFECTS:
            stack.enter_context(mock.patch(name, _forbidden(pkgutil.resolve_name(name), thread)))
        yield


def _forbidden(effect: Callable[..., Any], thread: int) -> Callable[..., Any]:
    """An effect that one thread may not have; executors of other tests may still be at work in theirs."""

    def guarded(*args: object, **kwargs: object) -> object:
        if threading.get_ident() == thread:
            msg = "a hook takes values and returns values, and does nothing else"
            raise AssertionError(msg)
        return effect(*args, **kwargs)

    return guarded


class Hooks:
    """The hooks of one plugin, asked with the arguments that they want."""

    def __init__(self, plugin: object, config: ExecutorConfig) -> None:
        self.plugin = plugin
        #: What hooks get besides.
        self.site = Site(config=config)
        self.context = SubmitContext(site=self.site, job_id="0b9e6f0e-0000-4000-a000-000000000000", tag=TAG)

    def has(self, name: str) -> bool:
        """Whether the plugin implements a hook itself."""
        return callable(getattr(self.plugin, name, None))

    def __call__(self, name: str, **values: Any) -> Any:  # noqa: ANN401  the arguments and answer of any hook
        """What a hook answers; it is asked twice, and must answer the same."""
        function: Callable[..., Any] = getattr(self.plugin, name)
        values = {"site": self.site, "context": self.context, "seen": {}, **values}
        wanted = {key: values[key] for key in inspect.signature(function).parameters}
        before = copy.deepcopy(wanted)
        with _nothing_but_values():
            first, second = _answer(function, wanted), _answer(function, wanted)
        assert wanted == before, f"the hook {name} has changed what it was given"
        assert repr(first) == repr(second), f"the hook {name} has answered differently"
        if isinstance(first, Exception):
            raise first
        return first

    def script(self, spec: JobSpec, context: SubmitContext | None = None) -> Script | None:
        """The script of a job, complete; None if the batch system has no way to say what is asked for."""
        try:
            script = self("render_script", spec=spec, context=context or self.context)
        except ValueError:
            return None
        assert isinstance(script, Script)
        return attrs.evolve(script, run=ShellLine("exec /bin/sh /x/run; exit 125"))


def assert_leads_to(group: str, name: str, plugin: object) -> None:
    """Fail unless users who ask for this name get this plugin, or a copy of it on the plugin path."""
    try:
        candidate = installed().find(group, name)
        found = load_plugin(candidate)
    except PluginError as e:
        msg = f"{name!r} leads to no plugin, is its distribution installed with its entry point? {e}"
        raise AssertionError(msg) from e
    assert found is plugin or _code(found) == _code(plugin), (
        f"{candidate.label} is {candidate.value}, {found!r}, and not what is tested, {plugin!r}"
    )


def _code(plugin: object) -> tuple[str, bytes]:
    """What a plugin consists of; that of the plugin path is another module with the same text."""
    of = plugin if inspect.ismodule(plugin) or inspect.isclass(plugin) else type(plugin)
    return "" if inspect.ismodule(of) else of.__qualname__, Path(inspect.getfile(of)).read_bytes()


def _answer(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:  # noqa: ANN401  as above
    try:
        found = function(**values)
    except (ValueError, SubmitException) as e:
        return e
    return list(found) if inspect.isgenerator(found) else found
