"""The texts that are no native ids of LSF."""

from __future__ import annotations

import pytest

from jpsi_lsf import hooks


@pytest.mark.parametrize("text", ["0", "-5", "abc", "", "7 8", "7[0]", "7[", "2147483647", "7@east"])
def test_invalid_ids(text: str) -> None:
    """LSF's commands take 0 for all jobs, and truncate larger numbers to 32 bits."""
    with pytest.raises(ValueError, match="no job id of LSF's"):
        hooks.canonical_id(text)
