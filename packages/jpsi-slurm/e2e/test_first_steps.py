"""The first steps of the documentation, with Slurm as the default executor."""

from __future__ import annotations

from pathlib import Path

from pages import Reader


def test_the_first_steps_are_the_same_on_slurm(tmp_path: Path) -> None:
    root = tmp_path / "reader"
    root.mkdir()
    reader = Reader(root, hidden=())
    config = root / "etc/xdg/jpsi/config.yaml"
    config.parent.mkdir(mode=0o755)
    config.write_text("default_executor: slurm\n")
    config.chmod(0o644)

    # the nox session puts it there
    reader.follow(Path(__file__).with_name("start.md").read_text())
