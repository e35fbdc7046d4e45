"""The checks of results and errors of hooks, and the plugin that each error names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from jpsi.contract.command import Command
from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.contract.engine import Engine, Submission
from jpsi.contract.hookspecs import (
    Capabilities,
    ExecutorHooks,
    LauncherHooks,
    ObserverHooks,
    TransportHooks,
    hookimpl,
)
from jpsi.contract.observation import NOT_OFFERED
from jpsi.contract.shell import Script
from jpsi.layers import default_hooks
from jpsi.layers.hook_guard import answer_type, spelled, type_test
from jpsi.layers.layer import Layer, relay
from jpsi.model.errors import InvalidJobException, PluginError, SubmitException

ALL = (ExecutorHooks, ObserverHooks)


class StubEngine(Engine):
    def submit(self, submission: Submission) -> str:
        return "17"

    def track(self, job_id: str) -> None:
        pass

    def cancel(self, job_id: str) -> None:
        pass


def plugin(**hooks: Callable[..., Any]) -> SimpleNamespace:
    return SimpleNamespace(**{name: hookimpl(function) for name, function in hooks.items()})


def hook_caller(*layers: object, specifications: tuple[type, ...] = ALL) -> Any:
    """Return the hook caller of layers that are called A, B and so on, the lowest first."""
    named = [Layer(f"plugin {chr(ord('A') + index)}", it) for index, it in enumerate(layers)]
    return relay(named, specifications)


@pytest.mark.parametrize(
    ("hook", "result", "expected"),
    [
        ("render_script", None, "NoneType, not Script; is `return` missing?"),
        ("query", "squeue", "str, not Command"),
        ("find", None, "NoneType, not Command or NotOffered; is `return` missing?"),
        ("config_class", BatchConfig(), "BatchConfig, not type[ExecutorConfig]"),
        ("config_class", dict, "type, not type[ExecutorConfig]"),
        ("parse_status", [], "list, not Mapping[str, Observation]"),
        ("parse_submit", 7, "int, not str"),
        ("check_spec", "no", "str, not Iterable[str]"),
        ("check_spec", [None], "list of NoneType, not Iterable[str]"),
        ("check_spec", True, "bool, not Iterable[str]"),
        ("make_engine", (it for it in ()), "generator, not Engine or None; is wrapper=True missing?"),
    ],
)
def test_a_result_of_a_wrong_type_is_reported_with_its_plugin(
    hook: str, result: object, expected: str
) -> None:
    names = list(inspect.signature(getattr(ExecutorHooks, hook)).parameters)[1:]

    with pytest.raises(PluginError) as caught:
        getattr(hook_caller(plugin(**{hook: lambda: result})), hook)(**dict.fromkeys(names))

    assert str(caught.value) == f"the hook {hook} of plugin A returned {expected}"


@pytest.mark.parametrize(
    ("hook", "result"),
    [
        ("config_class", BatchConfig),
        ("find", NOT_OFFERED),
        ("find", Command(["x"])),
        ("make_engine", None),
        ("make_engine", StubEngine()),
        ("check_spec", []),
        ("check_spec", {"a": 1}),
        ("parse_probe", {}),
    ],
)
def test_a_valid_result_is_returned_unchanged(hook: str, result: object) -> None:
    names = list(inspect.signature(getattr(ExecutorHooks, hook)).parameters)[1:]

    returned = getattr(hook_caller(plugin(**{hook: lambda: result})), hook)(**dict.fromkeys(names))

    assert returned == ([result] if hook == "check_spec" else result)


def test_lines_of_a_launcher_are_no_text() -> None:
    hooks = hook_caller(plugin(launch=lambda: "srun x"), specifications=(LauncherHooks,))

    with pytest.raises(PluginError, match=r"hook launch of plugin A returned str, not Sequence\[ShellLine\]"):
        hooks.launch(spec=None)


def test_the_error_names_the_layer_that_returned_the_result() -> None:
    """The layers below and above are valid, or were not called."""
    sound = plugin(capabilities=lambda: Capabilities(default_launcher="x"), check_spec=lambda: ["a"])
    wrong = plugin(capabilities=lambda: {"a": 1}, check_spec=lambda: [1])
    silent = plugin(capabilities=lambda: None, check_spec=lambda: None)

    hooks = hook_caller(sound, wrong, silent)

    with pytest.raises(PluginError, match=r"\Athe hook capabilities of plugin B returned dict, not Cap"):
        hooks.capabilities(site=None)
    with pytest.raises(PluginError, match=r"\Athe hook check_spec of plugin B returned list of int, not "):
        hooks.check_spec(spec=None, site=None)


def test_the_error_names_a_wrapper_that_returns_nothing() -> None:
    @hookimpl(wrapper=True)
    def render_script(spec: object):  # type: ignore[no-untyped-def]  # noqa: ANN202  a generator
        yield

    @hookimpl(wrapper=True)
    def check_spec():  # type: ignore[no-untyped-def]  # noqa: ANN202  as above
        yield

    over = SimpleNamespace(render_script=render_script, check_spec=check_spec)
    hooks = hook_caller(plugin(render_script=lambda: Script([]), check_spec=lambda: ["a"]), over)

    for call in (
        lambda: hooks.render_script(spec=None, context=None),
        lambda: hooks.check_spec(spec=None, site=None),
    ):
        with pytest.raises(PluginError, match=r"of plugin B returned NoneType, .* is `return` missing"):
            call()


def test_the_error_names_a_layer_with_different_results_each_time() -> None:
    answers = iter([7])
    hooks = hook_caller(plugin(query=lambda: None), plugin(query=lambda: next(answers)))

    with pytest.raises(PluginError, match="the hook query of plugin B returned int, not Command"):
        hooks.query(native_ids=None, site=None)


def test_the_error_names_all_layers_if_none_has_a_result() -> None:
    hooks = hook_caller(plugin(query=lambda: None), plugin(query=lambda: None))

    with pytest.raises(PluginError, match="of plugin A or plugin B returned NoneType, not Command"):
        hooks.query(native_ids=None, site=None)


def test_no_layer_is_called_twice() -> None:
    calls = []
    hooks = hook_caller(
        plugin(make_engine=lambda: None), plugin(make_engine=lambda: calls.append(1) or (_ for _ in ()))
    )

    with pytest.raises(PluginError, match="of plugin B returned generator"):
        hooks.make_engine(setup=None)

    assert calls == [1]


def test_a_relay_made_again_calls_what_its_layers_have_then() -> None:
    layer = plugin(check_spec=lambda: ["a"])
    same = [hook_caller(layer), hook_caller(layer)]
    layer.check_spec = hookimpl(lambda: ["b"])

    assert same[0] is same[1]
    assert [it.check_spec(spec=None, site=None) for it in (same[0], hook_caller(layer))] == [[["a"]], [["b"]]]


def test_a_layer_calls_its_own_object_and_not_an_equal_one() -> None:
    @attrs.define
    class Equal:
        problems: list[str] = attrs.field(eq=False)

        @hookimpl
        def check_spec(self) -> list[str]:
            return self.problems

    one, other = Equal(["a"]), Equal(["b"])

    assert one == other
    assert [hook_caller(it).check_spec(spec=None, site=None) for it in (one, other)] == [[["a"]], [["b"]]]


def test_a_hook_may_be_an_object_without_a_hash() -> None:
    @attrs.define(slots=False)
    class Function:
        problems: list[str]

        def __call__(self) -> list[str]:
            return self.problems

    layers = [plugin(check_spec=Function([it])) for it in ("a", "b")]

    assert [hook_caller(it).check_spec(spec=None, site=None) for it in layers] == [[["a"]], [["b"]]]


def test_a_hook_without_implementation_is_an_error() -> None:
    with pytest.raises(PluginError, match="no plugin implements the hook query"):
        hook_caller(plugin(probe=lambda: None)).query(native_ids=None, site=None)


def test_a_failure_is_reported_with_its_plugin_and_place() -> None:
    def broken(spec: Any) -> list[str]:
        return [spec.nonsense]

    below = plugin(check_spec=lambda: ["a"])
    line = inspect.getsourcelines(broken)[1] + 1

    with pytest.raises(PluginError) as caught:
        hook_caller(below, plugin(check_spec=broken), below_too := plugin(probe=lambda: None)).check_spec(
            spec=None, site=None
        )

    assert below_too
    failed = "failed: AttributeError: 'NoneType' object has no attribute 'nonsense'"
    assert str(caught.value) == f"the hook check_spec of plugin B {failed} ({__file__}, line {line})"
    assert caught.value.exception is caught.value.__cause__


def test_layers_without_result_below_a_wrapper_are_named() -> None:
    @hookimpl(wrapper=True)
    def query():  # type: ignore[no-untyped-def]  # noqa: ANN202  a generator
        return (yield)

    with pytest.raises(PluginError, match="the hook query of plugin A returned NoneType, not Command"):
        hook_caller(plugin(query=lambda: None), SimpleNamespace(query=query)).query(
            native_ids=None, site=None
        )


def test_failure_below_a_wrapper_is_not_the_wrappers() -> None:
    @hookimpl(wrapper=True)
    def query():  # type: ignore[no-untyped-def]  # noqa: ANN202  a generator
        return (yield)

    with pytest.raises(PluginError, match="the hook query of plugin A failed: ZeroDivisionError"):
        hook_caller(plugin(query=lambda: 1 // 0), SimpleNamespace(query=query)).query(
            native_ids=None, site=None
        )


def test_a_failure_during_the_iteration_of_a_result_names_the_hook() -> None:
    def check_spec() -> Any:
        yield "a"
        raise KeyError("b")

    with pytest.raises(PluginError, match="the hook check_spec of plugin A failed: KeyError: 'b'"):
        hook_caller(plugin(check_spec=check_spec)).check_spec(spec=None, site=None)


@pytest.mark.parametrize("error", [InvalidJobException("x"), SubmitException("x"), PluginError("x")])
def test_intended_errors_pass_unchanged(error: Exception) -> None:
    def query() -> None:
        raise error

    with pytest.raises(type(error), match=r"\Ax\Z"):
        hook_caller(plugin(query=query)).query(native_ids=None, site=None)


@pytest.mark.parametrize(
    ("hook", "arguments", "raised"),
    [
        ("render_script", ("spec", "context"), ValueError),
        ("parse_submit", ("result", "context"), ValueError),
        ("canonical_id", ("native_id", "site"), ValueError),
        ("query", ("native_ids", "site"), PluginError),
    ],
)
def test_a_value_error_passes_from_hooks_that_may_raise_it(
    hook: str, arguments: tuple[str, ...], raised: type[Exception]
) -> None:
    def refuse() -> None:
        raise ValueError("x")

    with pytest.raises(raised):
        getattr(hook_caller(plugin(**{hook: refuse})), hook)(**dict.fromkeys(arguments))


@pytest.mark.parametrize("specification", [ExecutorHooks, LauncherHooks, ObserverHooks, TransportHooks])
def test_every_hook_has_a_result_type_that_can_be_checked(specification: type) -> None:
    for hook in (name for name, it in vars(specification).items() if hasattr(it, "jpsi_spec")):
        expected = answer_type(getattr(specification, hook))

        assert expected is None or (spelled(expected) and not type_test(expected)(it for it in [1])), hook


def test_the_default_hooks_are_valid() -> None:
    hooks = hook_caller(default_hooks)

    assert issubclass(hooks.config_class(), ExecutorConfig)
    assert isinstance(hooks.capabilities(site=None), Capabilities)
    assert hooks.probe(site=None) is hooks.hold(native_ids=[], site=None) is NOT_OFFERED
    assert isinstance(hooks.parse_probe(result=None, site=None), Mapping)
