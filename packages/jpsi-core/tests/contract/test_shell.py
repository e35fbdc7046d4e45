"""Shell text: quoted text reaches a real shell unchanged."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jpsi.contract.shell import Directive, Script, ShellLine, line, word

HOSTILE = (
    *("", " ", "\t", "\n", "a\nb", "\n\n", "a\\\nb", "\r\n", "'", '"', "''", "'\\''", "it's", "\\", "\\\\"),
    *("$", "$$", "$HOME", "${HOME}", "$(exit 3)", "`exit 3`", "$((1+1))", "!", "!!", "#", "a #b", "~", "~/x"),
    *("*", "?", "[a-z]*", "{a,b}", "<", ">", "|", "&", ";", "(", ")", "a=b", "=", "-n", "--", "-", "%s", ":"),
    *("if", "in", "}", "time"),
    *("\x01", "\x7f", "\x1b[0m", "é", "日本", "\u200b", "\u2028", "\ufeff", "🐚", "\x80", "\x85", "\xa0"),
    # the bytes that dash keeps for itself, which are no UTF-8
    *(bytes([byte]).decode("utf-8", "surrogateescape") for byte in range(0x80, 0x90)),
)
RESERVED = (
    *("if", "then", "elif", "else", "fi", "case", "in", "esac", "for", "while", "until", "do", "done"),
    *("{", "}", "!", "function", "select", "time", "coproc"),
)

texts = (
    st.sampled_from(HOSTILE)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"))
    | st.binary(max_size=8).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
)
batches = settings(deadline=None, max_examples=30)


@pytest.fixture(scope="module", params=["sh", "bash"])
def shell(request: pytest.FixtureRequest) -> str:
    """Return a shell that is /bin/sh on some system; bash is called by the name sh."""
    path = shutil.which(request.param)
    if path is None:
        pytest.skip(f"there is no {request.param} here")
    return path


def arguments_in(shell: str, text: str) -> list[bytes]:
    """Return the arguments of a command that a shell makes of a piece of script."""
    script = f'print() {{ for it in "$@"; do printf \'%s\\0\' "$it"; done; }}\nprint {text}\n'
    result = subprocess.run(
        [shell, "-s"],
        input=os.fsencode(script),
        env={},
        capture_output=True,
        check=True,
    )
    assert result.stderr == b""
    return result.stdout.split(b"\0")[:-1]


def encoded(texts: Iterable[str]) -> list[bytes]:
    """Return the bytes that the operating system gets: two texts may have equal bytes that are no UTF-8."""
    return [os.fsencode(text) for text in texts]


def test_hostile_text_is_one_literal_word(shell: str) -> None:
    assert arguments_in(shell, " ".join(word(text) for text in HOSTILE)) == encoded(HOSTILE)


@batches
@given(words=st.lists(texts, max_size=30))
def test_any_text_is_one_literal_word(shell: str, words: list[str]) -> None:
    assert arguments_in(shell, " ".join(word(text) for text in words)) == encoded(words)


@batches
@given(words=st.lists(texts, max_size=30))
def test_a_line_has_the_words_it_was_made_of(shell: str, words: list[str]) -> None:
    assert arguments_in(shell, line(*words)) == encoded(words)


@batches
@given(prefix=texts, text=texts)
def test_words_written_together_are_one_word(shell: str, prefix: str, text: str) -> None:
    assert arguments_in(shell, word(prefix) + word(text)) == encoded([prefix + text])


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_word_is_a_command_name_like_any_other(shell: str, name: str) -> None:
    script = f"PATH=/nonexistent\n{word(name)}\n"

    result = subprocess.run([shell, "-c", script], capture_output=True, check=False)

    assert result.returncode == 127


def test_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot contain NUL"):
        word("a\0b")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", "a"),
        ("/usr/bin/x-1_2.3,4:5@6%7+8", "/usr/bin/x-1_2.3,4:5@6%7+8"),
        ("", "''"),
        ("a b", "'a b'"),
        ("a=b", "'a=b'"),
        ("if", "'if'"),
        ("a\n", "'a\n'"),
    ],
)
def test_only_text_without_special_characters_is_unquoted(text: str, quoted: str) -> None:
    """Text that people read has no needless quotes."""
    assert word(text) == quoted


# ------------------------------------------------------------------------------------------ directives


@given(st.text())
def test_a_directive_is_one_line_with_its_value_for_every_reader_or_an_error(value: str) -> None:
    try:
        text = Directive.of("#SBATCH", "--comment", value).text
    except ValueError:
        return

    assert text.splitlines() == [text]
    assert shlex.split(text, comments=False) == ["#SBATCH", f"--comment={value}"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a\nb", "no line breaks can stand in a directive"),
        ("a\rb", "no line breaks can"),
        ("a\u2028b", "no line breaks can"),
        ("\x85", "no line breaks can"),
        ("a\0b", "no control characters can"),
        ("a\x1b[31mb", "no control characters can"),
        ("a\tb", "no control characters can"),
        ("a\x9bb", "no control characters can"),
        ("a'b", "no quotes can"),
        ('a"b', "no quotes can"),
        ("a\\b", "no backslashes can"),
        ("$(x)", "no $ can"),
        ("`x`", "no ` can"),
        ("$'a\n\x01'", "no line breaks, quotes, $ or control characters can"),
    ],
    ids=ascii,
)
def test_a_directive_refuses_a_value_that_it_cannot_express_and_names_it(value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^--job-name cannot be .*: {re.escape(reason)}"):
        Directive.of("#SBATCH", "--job-name", value)


@given(st.text())
def test_each_refusal_of_a_directive_names_something(value: str) -> None:
    try:
        Directive.of("#SBATCH", "--job-name", value)
    except ValueError as e:
        assert re.search(r": no \S.* can stand in a directive$", str(e))  # noqa: PT017  many are refused by none


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "#PBS -N plain"),
        ("two words", "#PBS -N 'two words'"),
        ("été", "#PBS -N 'été'"),
        ("", "#PBS -N ''"),
        ("a#b", "#PBS -N 'a#b'"),
        ("select=2:ncpus=4", "#PBS -N select=2:ncpus=4"),
    ],
)
def test_directive_quotes_only_what_needs_it(value: str, text: str) -> None:
    assert Directive.of("#PBS", "-N", value, joint=" ").text == text


def test_option_without_a_value_is_a_flag() -> None:
    assert Directive.of("#SBATCH", "--exclusive").text == "#SBATCH --exclusive"


def test_script_holds_the_directives_and_one_line() -> None:
    script = Script([Directive.of("#SBATCH", "--nodes", "2")], ShellLine("exec /bin/sh /spool/run.1"))

    assert script.text == "#!/bin/sh\n#SBATCH --nodes=2\nexec /bin/sh /spool/run.1\n"
