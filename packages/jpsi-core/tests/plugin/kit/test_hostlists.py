"""Short forms of lists of nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin.kit import hostlist


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("node01", ("node01",)),
        ("node[01-02]", ("node01", "node02")),
        ("a,b[1,3-4],c", ("a", "b1", "b3", "b4", "c")),
        ("r[0-1]n[1-2]", ("r0n1", "r0n2", "r1n1", "r1n2")),
        ("n[098-101]", ("n098", "n099", "n100", "n101")),
        ("n[1-999999999999]", ("n1-999999999999",)),
        ("n[1", ("n", "1")),
    ],
)
def test_lists_of_nodes(text: str, expected: tuple[str, ...]) -> None:
    assert hostlist(text) == expected


@given(st.text(alphabet="an0123456789[]-,", max_size=20))
def test_any_list_of_nodes_is_read(text: str) -> None:
    assert all(hostlist(text))
