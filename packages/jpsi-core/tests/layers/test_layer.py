"""The hooks that a plugin object implements, and their problems."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from jpsi.contract.hookspecs import ExecutorHooks, LauncherHooks, ObserverHooks, hookimpl
from jpsi.layers.layer import find_hook_problems, implemented, lacking

ALL = (ExecutorHooks, ObserverHooks)


class Hooks:
    @hookimpl
    def submit(self, script: object) -> None: ...

    @hookimpl(wrapper=True)
    def cancel(self):  # noqa: ANN201
        return (yield)

    @hookimpl(specname="hold")
    def other(self, native_ids: object) -> None: ...

    def release(self) -> None: ...

    @property
    def trap(self) -> None:
        raise AssertionError


def test_marked_functions_are_hooks() -> None:
    assert implemented(Hooks()) == {"submit": False, "cancel": True, "hold": False}


def test_a_valid_plugin_has_no_problems() -> None:
    assert find_hook_problems(Hooks(), ALL) == []


def test_all_problems_are_reported_at_once() -> None:
    @hookimpl
    def cancle() -> None: ...

    @hookimpl
    def submit(text: object, spec: object, more: object = 1) -> None: ...

    @hookimpl
    def query(site: object = None) -> None: ...

    plugin = SimpleNamespace(cancle=cancle, submit=submit, query=query)

    assert sorted(find_hook_problems(plugin, ALL)) == [
        "query gives its argument 'site' a default, which pluggy never replaces",
        "submit has no argument 'text', only script, spec, context",
        "there is no hook 'cancle'; did you mean 'cancel'?",
    ]


def test_a_wrapper_that_is_no_generator_is_a_problem() -> None:
    @hookimpl(wrapper=True)
    def query() -> None: ...

    problem = "query has wrapper=True, but no `yield`; write `answer = yield`, or leave wrapper=True out"
    assert find_hook_problems(SimpleNamespace(query=query), ALL) == [problem]


def test_a_hook_of_another_kind_of_plugin_is_a_problem() -> None:
    assert find_hook_problems(Hooks(), [LauncherHooks])


@pytest.mark.parametrize("plugin", [Hooks, SimpleNamespace(submit=1), None])
def test_a_plugin_without_hooks_is_a_problem(plugin: object) -> None:
    assert len(find_hook_problems(plugin, ALL)) == 1


def test_an_old_style_wrapper_is_a_problem() -> None:
    @hookimpl(hookwrapper=True)
    def query() -> Iterator[None]:
        yield

    problem = "query has hookwrapper=True; write wrapper=True and `answer = yield`"
    assert find_hook_problems(SimpleNamespace(query=query), [ExecutorHooks]) == [problem]


def test_a_wrapper_alone_does_not_provide_a_hook() -> None:
    assert lacking([Hooks()], ["submit", "cancel", "query"]) == ("cancel", "query")
