"""Stands in for `pip` in the tests of pages: installs from folders, without an index.

    page_installer.py REPOSITORY SITE install [-q] [-e] [--no-deps] [--target DIRECTORY] WHAT...

WHAT is the folder of a project with a pyproject.toml, or a package of this repository: that is installed
with the packages of this repository that it requires, also by its extras, unless they are there already.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from distributions import lay


def main() -> None:
    parser = argparse.ArgumentParser(prog="pip")
    parser.add_argument("repository", type=Path)
    parser.add_argument("site", type=Path)
    parser.add_argument("command", choices=["install"])
    parser.add_argument("-q", "--quiet", action="store_true", required=True)
    parser.add_argument("-e", "--editable", action="store_true")
    parser.add_argument("--no-deps", action="store_true", help="none is installed for a folder")
    parser.add_argument("--target", type=Path)
    parser.add_argument("what", nargs="+")
    options = parser.parse_args()
    for what in options.what:
        name = what.partition("[")[0]
        if "/" in name or name == ".":
            install(Path(name), options.target or options.site, is_linked=options.target is None)
            continue
        for project in required(options.repository, Requirement(what)):
            if not is_installed(project.name):
                install(project, options.site, is_linked=True)


def required(repository: Path, requirement: Requirement) -> Iterator[Path]:
    """Yield the folders of the packages of this repository that a requirement leads to."""
    folder = repository / "packages" / requirement.name
    if not folder.is_dir():
        return
    yield folder
    settings = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    extras = settings.get("optional-dependencies", {})
    for needed in (settings.get("dependencies", []), *(extras[it] for it in requirement.extras)):
        for it in needed:
            yield from required(repository, Requirement(it))


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def install(project: Path, target: Path, *, is_linked: bool) -> None:
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    described = settings["project"]
    modules = _modules(project)
    files = {} if is_linked else {path: text for module in modules for path, text in _texts(module)}
    if is_linked:
        for module in modules:
            (target / module.name).symlink_to(module.resolve())
    lay(
        target,
        described["name"],
        described["version"],
        files=files,
        requires=described.get("dependencies", ()),
        **{
            group.removeprefix("jpsi."): names
            for group, names in described.get("entry-points", {}).items()
            if group.startswith("jpsi.")
        },
    )


def _modules(project: Path) -> list[Path]:
    """Return the files of a project's wheel: the packages of `src`, else modules beside pyproject.toml."""
    source = project / "src"
    return sorted(source.iterdir()) if source.is_dir() else sorted(project.glob("*.py"))


def _texts(module: Path) -> list[tuple[str, str]]:
    if module.is_file():
        return [(module.name, module.read_text())]
    paths = sorted(path for path in module.rglob("*") if path.suffix in {".py", ".typed"})
    return [(str(path.relative_to(module.parent)), path.read_text()) for path in paths]


if __name__ == "__main__":
    main()
