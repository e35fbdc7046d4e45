"""A directory of the plugin path, for tests of plugins: the test installs distributions in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


class PluginDirectory:
    """A directory such as `pip install --target` makes, private to the test."""

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700, exist_ok=True)
        #: The path of the directory.
        self.path = path

    def add(
        self,
        name: str,
        version: str = "1.0",
        *,
        entry_points: Mapping[str, Mapping[str, str]],
        files: Mapping[str, str] | None = None,
        requires: Iterable[str] = (),
    ) -> Path:
        """Install a distribution, and return its metadata directory.

        Args:
            name: its name.
            version: its version.
            entry_points: by group, the module of each name: `{"jpsi.executors": {"x": "module"}}`.
            files: its files, by path: `{"module.py": "..."}`.
            requires: its requirements, as pip writes them.
        """
        for file, text in (files or {}).items():
            target = self.path / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        folder = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        required = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
        (folder / "METADATA").write_text(_METADATA.format(name=name, version=version) + required)
        (folder / "entry_points.txt").write_text("".join(map(_section, entry_points.items())))
        (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files or {}))
        return folder


def _section(group: tuple[str, Mapping[str, str]]) -> str:
    name, entries = group
    return f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
