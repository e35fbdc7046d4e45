from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from jpsi import Plugin
from jpsi_cli.installation.plugins import render_lines

TOY = Plugin(
    kind="executor",
    name="toy",
    aliases=(),
    version="0.3",
    distribution="jpsi-toy",
    origin="/opt/site/jpsi",
    chosen=True,
    why_not=None,
    load_error=None,
)
ERROR = (
    "the executor 'toy' of jpsi-toy 0.3 in /opt/site/jpsi cannot be loaded: ModuleNotFoundError: "
    "No module named 'nosuch'; install the distribution that has it"
)
BROKEN = attrs.evolve(TOY, load_error=ERROR)
OLD = attrs.evolve(TOY, version="0.2", chosen=False, why_not="0.3 is higher")


def toy(**changes: Any) -> Plugin:
    return attrs.evolve(TOY, **changes)


def test_without_a_width_each_is_one_line() -> None:
    assert list(render_lines([TOY, OLD], None)) == [
        "KIND      NAME  VERSION  CHOSEN  DISTRIBUTION  ORIGIN          WHY",
        "executor  toy   0.3      yes     jpsi-toy      /opt/site/jpsi",
        "executor  toy   0.2      no      jpsi-toy      /opt/site/jpsi  0.3 is higher",
    ]
    assert list(render_lines([BROKEN], None))[1].endswith(f"broken  jpsi-toy      /opt/site/jpsi  {ERROR}")


def test_text_that_does_not_fit_is_on_the_next_line() -> None:
    assert list(render_lines([BROKEN, OLD, toy(origin="environment")], 50)) == [
        "KIND      NAME  VERSION  CHOSEN  DISTRIBUTION",
        "executor  toy   0.3      broken  jpsi-toy",
        "    origin: /opt/site/jpsi",
        "    why: the executor 'toy' of jpsi-toy 0.3 in",
        "        /opt/site/jpsi cannot be loaded:",
        "        ModuleNotFoundError: No module named",
        "        'nosuch'; install the distribution that",
        "        has it",
        "executor  toy   0.2      no      jpsi-toy",
        "    origin: /opt/site/jpsi",
        "    why: 0.3 is higher",
        "executor  toy   0.3      yes     jpsi-toy",
    ]


@pytest.mark.parametrize("width", range(1, 250, 7))
def test_no_width_cuts_anything(width: int) -> None:
    words = " ".join(render_lines([BROKEN, OLD], width)).split()

    assert [word for word in [*ERROR.split(), "0.2", "jpsi-toy", "/opt/site/jpsi"] if word not in words] == []


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_lines_fit_the_width(width: int) -> None:
    assert max(map(len, render_lines([BROKEN, OLD], width))) <= width


def test_aliases_share_a_line_with_their_name() -> None:
    names = ("openpbs", "pbs", "pbspro")
    found = [
        toy(name=name, aliases=tuple(it for it in names if it != name), load_error=f"{name} is broken")
        for name in names
    ]

    _, *rows = render_lines(found, None)

    assert [row.split("  ")[1] for row in rows] == ["openpbs (pbs, pbspro)"]


def test_an_alias_with_another_result_has_its_own_line() -> None:
    found = [
        toy(name="gridengine", aliases=("sge",)),
        toy(name="sge", aliases=("gridengine",), chosen=False, why_not="9 is higher"),
    ]

    _, *rows = render_lines(found, None)

    assert [row.split()[1:5] for row in rows] == [
        ["gridengine", "(sge)", "0.3", "yes"],
        ["sge", "(gridengine)", "0.3", "no"],
    ]


def test_control_characters_in_cells_are_escaped() -> None:
    found = toy(name="\x1b[31mtoy", version="1\n2", load_error="first\n  - second\x07", origin="/a b\n")

    _, row = render_lines([found], None)

    assert re.split("  +", row) == [
        "executor",
        "\\x1b[31mtoy",
        "1\\n2",
        "broken",
        "jpsi-toy",
        "/a b\\n",
        "first - second\\x07",
    ]


def test_only_words_are_painted() -> None:
    def paint(text: str, colour: str) -> str:
        return f"<{colour}>{text}</>" if colour else text

    heading, good, bad = render_lines([toy(name="yes"), BROKEN], None, paint)

    assert heading.startswith("<bold>KIND</>      <bold>NAME</>  ")
    assert good.split()[1:4] == ["yes", "0.3", "<green>yes</>"]
    assert bad.split()[3] == "<red>broken</>"
