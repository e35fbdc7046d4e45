"""Lets `pip install packages/NAME` in a clone take what it requires of jpsi from the clone as well."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement


class CloneHook(BuildHookInterface[Any]):
    """Puts the folder of each required package that is in the same clone into the metadata of the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, _: dict[str, Any]) -> None:
        """Change the requirements; those of an editable wheel, or of one to keep, remain."""
        if version == "standard" and _is_installed_by_pip():
            core = self.metadata.core
            for requirements in (core.dependencies, *core.optional_dependencies.values()):
                requirements[:] = map(self._in_clone, requirements)

    def _in_clone(self, requirement: str) -> str:
        wanted = Requirement(requirement)
        folder = Path(self.root).parent / wanted.name
        return f"{wanted.name} @ {folder.as_uri()}" if (folder / "pyproject.toml").is_file() else requirement


def _is_installed_by_pip() -> bool:
    """Return True if `pip install` asks for the wheel, so that no other machine will see it."""
    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return "PIP_BUILD_TRACKER" in os.environ and b"install" in words
