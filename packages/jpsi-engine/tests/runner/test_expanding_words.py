"""The words of the runner's script that the shell expands, read by real shells."""

from __future__ import annotations

import subprocess

import pytest

from jpsi_engine.runner.script_input import HOME, home_path_word
from jpsi_engine.runner.spec_environment import expanding_word

KEPT = pytest.mark.parametrize("keep", [True, False], ids=["kept", "emptied"])


def expand(shell: str, text: str, environment: dict[str, str]) -> str:
    """Return the only argument of a command line that consists of `text`."""
    script = f'set -u; count() {{ [ $# = 1 ] && printf %s "$1"; }}\ncount {text}\n'
    result = subprocess.run(
        [shell, "-s"], input=script, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stderr == ""
    return result.stdout


@KEPT
def test_value_is_never_split_globbed_or_expanded_again(shell: str, keep: bool) -> None:
    environment = {"A": "* $(echo no) ${B1} `no`  two", "B1": "'\"\\"}

    found = expand(shell, expanding_word("${A}${B1}", {}, keep_unset=keep), environment)

    assert found == environment["A"] + environment["B1"]


@KEPT
def test_expansion_of_an_unset_variable_works_under_set_u(shell: str, keep: bool) -> None:
    found = expand(shell, expanding_word("<${UNSET_1}>", {}, keep_unset=keep), {})

    assert found == ("<${UNSET_1}>" if keep else "<>")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~", "/home/of me"),
        ("~/", "/home/of me/"),
        ("~/a b/$x", "/home/of me/a b/$x"),
        ("~user", "~user"),
        ("~user/x", "~user/x"),
        ("/a/~", "/a/~"),
        ("a/~/b", "a/~/b"),
        ("-n", "-n"),
    ],
)
def test_only_a_leading_tilde_and_slash_is_the_home_directory(shell: str, path: str, expected: str) -> None:
    assert expand(shell, home_path_word(path), {HOME: "/home/of me"}) == expected
