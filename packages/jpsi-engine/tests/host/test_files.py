"""Files of the user: what is not there, and what is something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi_engine.host.files import list_names


def test_a_missing_directory_has_no_names(tmp_path: Path) -> None:
    assert list_names(str(tmp_path / "missing")) == []


def test_a_file_in_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    """An empty answer would say that the jobs in it do not exist."""
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        list_names(str(tmp_path / "file"))
