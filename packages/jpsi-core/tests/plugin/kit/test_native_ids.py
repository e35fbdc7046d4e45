"""Native ids: what is one, and which was printed."""

from __future__ import annotations

import pytest

from jpsi.plugin.kit import IdForm, the_one_id

FORM = IdForm("ACME", r"[1-9][0-9]*", largest=100)


@pytest.mark.parametrize("text", ["", "0", "-1", "17\n", "17 18", "101", "all"])
def test_what_is_no_id_is_refused_with_the_name_of_the_system(text: str) -> None:
    assert not FORM.has(text)
    with pytest.raises(ValueError, match="is no job id of ACME's"):
        FORM.canonical(text)


def test_an_id_is_its_own_spelling() -> None:
    assert FORM.canonical("100") == "100"


def test_one_id_may_be_printed_twice() -> None:
    assert the_one_id(["17", "17"], "17 17") == "17"


@pytest.mark.parametrize(("found", "what"), [([], "no job id"), (["2", "1"], r"several job ids \(1, 2\)")])
def test_anything_but_one_id_is_refused_with_what_was_printed(found: list[str], what: str) -> None:
    with pytest.raises(ValueError, match=rf"{what} in the answer 'printed'"):
        the_one_id(found, "printed\n")
