"""Words and options of directives, as submit commands read them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin.kit.script_words import dash_options, directive_words, gnu_options, suggest_option


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  -n 4\t-N2 ", ["-n", "4", "-N2"]),
        ("--job-name='my job'", ["--job-name=my job"]),
        ('--comment="it\'s"', ["--comment=it's"]),
        (r"-J a\ b", ["-J", "a b"]),
        ("-n 4 # don't", ["-n", "4"]),
        ("--comment=a#b", ["--comment=a#b"]),
    ],
)
def test_words_are_split_as_by_a_shell(text: str, words: list[str]) -> None:
    assert directive_words(text) == words


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)))
def test_quoted_words_survive_a_round_trip(words: list[str]) -> None:
    assert directive_words(" ".join(f"{shlex.quote(word)}" for word in words)) == words


def test_a_quote_without_its_partner_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not closed"):
        directive_words("-J 'my job")


_LETTERS = {"n": "ntasks", "x": "exclusive", "k": "no-kill"}
_PLAIN = {"exclusive", "no-kill"}
# Of several batch systems
_NAMES = (
    *("begin-time", "cn_mem", "cpus-per-task", "gpu-bind", "h", "i", "mem", "ntasks", "now", "output"),
    *("partition", "requeue", "time"),
)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--ntasks=4"], [("ntasks", "4")]),
        (["--ntasks", "4"], [("ntasks", "4")]),
        (["-n", "4"], [("ntasks", "4")]),
        (["-n4"], [("ntasks", "4")]),
        (["-xn4"], [("exclusive", None), ("ntasks", "4")]),
        (["-xk"], [("exclusive", None), ("no-kill", None)]),
        (["--exclusive"], [("exclusive", None)]),
        (["--exclusive=user"], [("exclusive", "user")]),
        (["--ntas=4"], [("ntasks", "4")]),
        (["--unknown=a"], [("unknown", "a")]),
        (["-l", "a"], [("l", "a")]),
        (["--comment="], [("comment", "")]),
    ],
)
def test_options_as_getopt_long_has_them(words: list[str], options: list[tuple[str, str | None]]) -> None:
    assert list(gnu_options(words, _LETTERS, _PLAIN)) == options


@pytest.mark.parametrize("words", [["a.sh"], ["--"], ["-"], ["--ntasks"], ["-n"]])
def test_a_word_that_is_no_option_is_an_error(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"is no option|needs a value"):
        list(gnu_options(words, _LETTERS, _PLAIN))


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-cwd"], [("cwd", None)]),
        (["-pe", "mpi", "8"], [("pe", "mpi 8")]),
        (["-n", "4", "-nn", "x"], [("n", "4"), ("nn", "x")]),
        (["-n4"], [("n", "4")]),
        (["-nn4"], [("nn", "4")]),
    ],
)
def test_options_with_one_dash(words: list[str], options: list[tuple[str, str | None]]) -> None:
    assert list(dash_options(words, {"cwd": 0, "pe": 2, "n": 1, "nn": 1})) == options


@pytest.mark.parametrize("word", ["-n4", "-nn4", "-notify"])
def test_a_value_is_only_joined_to_an_option_if_the_command_allows_it(word: str) -> None:
    with pytest.raises(ValueError, match=f"'{word}' is no option"):
        list(dash_options([word, "x"], {"n": 1, "nn": 1}, joins_values=False))


def test_a_misspelt_option_with_one_dash_is_recognised() -> None:
    with pytest.raises(ValueError, match=r"'-notfy' is no option; did you mean -notify\?"):
        list(dash_options(["-notfy"], {"notify": 0, "pe": 2}))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ntaks", "ntasks"),
        ("tiem", "time"),
        ("patition", "partition"),
        ("ouput", "output"),
        ("memm", "mem"),
        ("cpu-per-task", "cpus-per-task"),
    ],
)
def test_a_misspelt_option_is_recognised(name: str, known: str) -> None:
    assert suggest_option(name, _NAMES, "--") == f"; did you mean --{known}?"


@pytest.mark.parametrize("name", ["exit-timeout", "cpu-bind", "ln_mem", "sh", "si", "tim", "queue", ""])
def test_another_option_is_not_taken_for_a_misspelt_one(name: str) -> None:
    assert not suggest_option(name, _NAMES, "--")


@pytest.mark.parametrize("words", [["a"], ["-z"], ["-pe", "mpi"], ["-cwdx"]])
def test_an_unknown_option_is_an_error(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"is no option|needs a value"):
        list(dash_options(words, {"cwd": 0, "pe": 2, "n": 1}))
