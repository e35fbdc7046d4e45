from __future__ import annotations

import pytest

from jpsi_gridengine import hooks


@pytest.mark.parametrize("text", ["*", "17.1-3:1", "-u", "", "17 18", "myjob"])
def test_only_ids_are_attached_to(text: str) -> None:
    with pytest.raises(ValueError, match="no job id"):
        hooks.canonical_id(text)
    assert hooks.canonical_id("17.3") == "17.3"
