"""The backend calls a hook of its plugin only if it needs the result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from jpsi.contract.hookspecs import ExecutorHooks
from jpsi.contract.transport import Transport
from jpsi.plugin import NOT_OFFERED, Arrays, BatchConfig, Capabilities, Command, NotOffered
from jpsi.plugin.engine import EngineSetup
from jpsi_engine.host.local_transport import LocalTransport
from jpsi_engine.scheduler.backend import Backend

_ARRAYS = Arrays(largest=9, id_variable="ARRAY", index_variable="INDEX")


class Hooks:
    """Hooks that note which of them are called."""

    def __init__(self, watch: Command | NotOffered = NOT_OFFERED) -> None:
        self.called: list[str] = []
        self._watch = watch

    def probe(self, site: object) -> NotOffered:
        return NOT_OFFERED

    def capabilities(self, site: object) -> Capabilities:
        return Capabilities(default_launcher="single", arrays=_ARRAYS)

    def arrays_of(self, native_ids: list[str], site: object) -> dict[str, str]:
        self.called.append("arrays_of")
        return dict.fromkeys(native_ids, "17")

    def watch(self, site: object) -> Command | NotOffered:
        self.called.append("watch")
        return self._watch


def _backend(hooks: Hooks, transport: object) -> Backend:
    setup = EngineSetup(
        executor="acme",
        version="1",
        config=BatchConfig(),
        transport=cast("Transport", transport),
        publish=lambda _id, _status: None,
        process_engine=lambda _setup: pytest.fail("a batch system needs no processes"),
    )
    return Backend(setup, cast("ExecutorHooks", hooks))


def test_the_hook_for_arrays_is_not_called_without_jobs() -> None:
    hooks = Hooks()
    backend = _backend(hooks, LocalTransport())

    assert backend.arrays_of([]) == {}
    assert hooks.called == []
    assert backend.arrays_of(["17.1"]) == {"17.1": "17"}


def test_the_hook_for_events_is_not_called_if_the_transport_cannot_read_lines() -> None:
    hooks = Hooks(Command(["watch"]))
    runs_commands_only = SimpleNamespace(is_local=True, run=None, close=None)

    assert not _backend(hooks, runs_commands_only).can_stream_events
    assert hooks.called == []


@pytest.mark.parametrize(("watch", "expected"), [(Command(["watch"]), True), (NOT_OFFERED, False)])
def test_events_are_streamed_if_the_plugin_has_a_command_for_that(
    watch: Command | NotOffered, expected: bool
) -> None:
    assert _backend(Hooks(watch), LocalTransport()).can_stream_events is expected
