"""The default hooks, which hold for a backend without its own."""

from __future__ import annotations

import platform
import subprocess

import pluggy
import pytest

from jpsi.contract.command import CommandResult
from jpsi.contract.config import BatchConfig
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks
from jpsi.contract.observation import NOT_OFFERED, Failure, FailureKind
from jpsi.layers import default_hooks
from jpsi.layers.layer import find_hook_problems, implemented, specified
from jpsi.layers.stack import BATCH_HOOKS
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobSpec

SILENT = {"check_spec", "make_engine"}
FAILED = CommandResult(returncode=1, stderr="no\nway")


@pytest.fixture
def hooks() -> pluggy.HookRelay:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    manager.register(default_hooks)
    return manager.hook


def test_every_optional_hook_has_a_default() -> None:
    assert find_hook_problems(default_hooks, [ExecutorHooks]) == []
    assert implemented(default_hooks).keys() == specified([ExecutorHooks]).keys() - {
        *BATCH_HOOKS,
        *SILENT,
    }


def test_nothing_is_offered(hooks: pluggy.HookRelay) -> None:
    assert hooks.config_class() is BatchConfig
    assert hooks.probe(site=None) is NOT_OFFERED
    assert hooks.find(tags=[], site=None) is NOT_OFFERED
    assert hooks.query_finished(native_ids=[], site=None) is NOT_OFFERED
    assert hooks.submit_several(scripts=[], spec=JobSpec(), contexts=[]) is NOT_OFFERED
    assert hooks.hold(native_ids=[], site=None) is NOT_OFFERED
    assert hooks.release(native_ids=[], site=None) is NOT_OFFERED
    for hook in (hooks.parse_find, hooks.parse_finished, hooks.parse_probe):
        assert hook(result=FAILED, tags=[], native_ids=[], site=None) == {}
    assert hooks.parse_submit_several(result=FAILED, contexts=[]) == {}


def test_failure_is_ambiguous(hooks: pluggy.HookRelay) -> None:
    assert hooks.classify_failure(result=FAILED, site=None) == Failure(FailureKind.AMBIGUOUS, "no way")


@pytest.mark.parametrize("name", ["parse_cancel", "parse_hold", "parse_release"])
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (CommandResult(returncode=0), {}),
        (FAILED, {"1": "no way", "2": "no way"}),
        (CommandResult(returncode=0, timed_out=True), {"1": "no answer in time", "2": "no answer in time"}),
    ],
    ids=["done", "failed", "timed out"],
)
def test_request_fails_for_all_or_none(
    hooks: pluggy.HookRelay, name: str, result: CommandResult, expected: dict[str, str]
) -> None:
    assert getattr(hooks, name)(result=result, native_ids=["1", "2"], site=None) == expected


@pytest.mark.parametrize("count", [1, 3])
def test_every_process_is_on_this_machine(hooks: pluggy.HookRelay, count: int) -> None:
    lines = hooks.nodes(spec=JobSpec("x", resources=ResourceSpecV1(process_count=count)), site=None)

    printed = subprocess.run(
        ["sh", "-c", "\n".join(lines)], check=True, capture_output=True, text=True
    ).stdout
    assert printed == f"{platform.node()}\n" * count
