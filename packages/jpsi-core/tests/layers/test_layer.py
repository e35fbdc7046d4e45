"""What a plugin object implements."""

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


def test_what_is_marked_is_implemented() -> None:
    assert implemented(Hooks()) == {"submit": False, "cancel": True, "hold": False}


def test_sound_plugin_has_no_mistakes() -> None:
    assert find_hook_problems(Hooks(), ALL) == []


def test_all_mistakes_are_told_at_once() -> None:
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


def test_wrapper_that_is_no_generator_is_a_mistake() -> None:
    @hookimpl(wrapper=True)
    def query() -> None: ...

    told = "query has wrapper=True, but no `yield`; write `answer = yield`, or leave wrapper=True out"
    assert find_hook_problems(SimpleNamespace(query=query), ALL) == [told]


def test_hook_of_another_kind_of_plugin_is_a_mistake() -> None:
    assert find_hook_problems(Hooks(), [LauncherHooks])


@pytest.mark.parametrize("plugin", [Hooks, SimpleNamespace(submit=1), None])
def test_what_implements_nothing_is_a_mistake(plugin: object) -> None:
    assert len(find_hook_problems(plugin, ALL)) == 1


def test_wrapper_of_the_old_kind_is_a_mistake() -> None:
    @hookimpl(hookwrapper=True)
    def query() -> Iterator[None]:
        yield

    told = "query has hookwrapper=True; write wrapper=True and `answer = yield`"
    assert find_hook_problems(SimpleNamespace(query=query), [ExecutorHooks]) == [told]


def test_wrapper_answers_nothing_of_its_own() -> None:
    assert lacking([Hooks()], ["submit", "cancel", "query"]) == ("cancel", "query")
