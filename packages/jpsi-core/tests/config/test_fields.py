"""An executor's configuration object of what is configured."""

from __future__ import annotations

import enum
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from jpsi.config.fields import structured
from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.document.values import Problems, Value
from jpsi.model.errors import ConfigError


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen(slots=True, kw_only=True)
class Inner:
    size: int = 1


def _small(_: object, __: object, value: float) -> None:
    if value > 100:
        msg = "is too much"
        raise ValueError(msg)


@attrs.frozen(slots=True, kw_only=True)
class Config(BatchConfig):
    colour: Colour = Colour.RED
    ratio: float = attrs.field(default=0.5, validator=_small)
    flag: bool | None = None
    names: tuple[str, ...] = ()
    inner: Inner = Inner()
    table: dict[str, timedelta] = attrs.field(factory=dict)
    _hidden: int = 0
    derived: int = attrs.field(default=1, init=False)


@attrs.frozen(slots=True, kw_only=True)
class Pair(ExecutorConfig):
    low: int = 0
    high: int = 9

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            msg = "they are the wrong way round"
            raise ValueError(msg)


def structure(values: dict[str, Any], config_class: type[ExecutorConfig] = Config) -> ExecutorConfig:
    section = Value(values, ("executors", "toy", "config"), Problems("config.yaml"))
    return structured(config_class, section.mapping())


def test_values_are_converted_to_the_types_of_the_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")

    config = structure(
        {
            "work_directory": "~/jpsi",
            "kill_delay": 2,
            "keep_time": "1d12h",
            "default_duration": "01:00:00",
            "colour": "red",
            "ratio": 1,
            "flag": True,
            "names": ["a", "b"],
            "inner": {"size": 3},
            "table": {"x": "90s"},
            "hidden": 4,
        }
    )

    assert config == Config(
        work_directory=Path("/home/me/jpsi"),
        kill_delay=timedelta(seconds=2),
        keep_time=timedelta(hours=36),
        default_duration=timedelta(hours=1),
        ratio=1.0,
        flag=True,
        names=("a", "b"),
        inner=Inner(size=3),
        table={"x": timedelta(seconds=90)},
        hidden=4,
    )


def test_null_is_a_value_where_none_is_one() -> None:
    assert structure({"work_directory": None, "flag": None}) == Config()


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("shel", "x", "is not known to Config; did you mean 'shell'?"),
        ("derived", 1, "is not known to Config"),
        ("shell", 1, "must be text, not 1"),
        ("shell", None, "must be text, not null"),
        ("keep_count", "12", "must be a whole number, not '12'"),
        ("keep_count", 1.5, "must be a whole number, not 1.5"),
        ("keep_count", True, "must be a whole number, not true"),
        ("flag", "no", "must be true or false, not 'no'"),
        ("kill_delay", "soon", "'soon' is not a time such as"),
        ("kill_delay", -1, "must be a time such as"),
        ("colour", "blue", "'blue' is not a valid Colour"),
        ("names", [1], "must be text, not 1"),
        ("inner", {"siz": 3}, "siz"),
        ("work_directory", 3, "must be text, not 3"),
    ],
)
def test_a_wrong_value_is_reported_with_its_place(name: str, raw: object, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        structure({name: raw})

    assert f"config.yaml: executors.toy.config.{name}: " in str(caught.value)
    assert expected in str(caught.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        structure({"shell": 1, "nonsense": 2, "ratio": "x", "flag": False})

    assert len(str(caught.value).splitlines()) == 4


def test_a_refusal_of_a_validator_is_reported_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        structure({"ratio": 1000, "shell": "/bin/sh", "array_size": 0})

    assert "config.yaml: executors.toy.config.ratio: is too much" in str(caught.value)
    assert "config.yaml: executors.toy.config.array_size: array_size must be " in str(caught.value)
    assert "shell" not in str(caught.value)


def test_contradicting_values_are_named() -> None:
    with pytest.raises(ConfigError, match="Pair cannot be made of low, high: they are the wrong way round"):
        structure({"low": 2, "high": 1}, Pair)


def test_fields_of_a_batch_executor_are_not_those_of_any() -> None:
    with pytest.raises(ConfigError, match="is not known to ExecutorConfig"):
        structure({"grace": 1}, ExecutorConfig)
