"""Settings of the documentation; `./dev docs` builds it."""

import logging
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

sys.path.insert(0, str(Path(__file__).parent))

_core = Path(__file__).parents[1] / "packages" / "jpsi-core" / "pyproject.toml"

project = "jpsi"
author = "the jpsi authors"
release = tomllib.loads(_core.read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Docstrings are read as they are written: a name in one pair of backticks is code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
exclude_patterns = ["_build"]
# A section of the site may have no pages yet; Sphinx 9 gives this warning a subtype, but no type by which
# suppress_warnings could name it.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: getattr(record, "subtype", None) != "empty_glob"
)

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["jpsi.css"]
html_theme_options = {
    # until jpsi is on an index
    "announcement": "Not published yet: for <code>pip install 'jpsi[slurm]'</code> type "
    "<code>./dev install slurm</code> in a clone.",
}
html_title = f"jpsi {release}"
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Have the build warn where a page that is made from something else does not say what that says."""
    app.connect("builder-inited", _compare)
    app.add_directive("door", Door)
    app.add_directive("notebook", Notebook)
    app.add_directive("rooms", Rooms)
    app.connect("autodoc-skip-member", _is_elsewhere)
    # napoleon, at 500, takes what stands before a colon in the docstring of an attribute for its type.
    app.connect("autodoc-process-docstring", _keep, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)


def _compare(_: Sphinx) -> None:
    import doors
    import fields
    import rooms

    import conformance

    for checked in (conformance, doors, fields, rooms):
        for mistake in checked.mistakes():
            getLogger(__name__).warning("%s", mistake)


class _Made(Directive):
    """Something that is made while the docs are built, from what its one argument names."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the content, and have each build read the page again: no file of its own changes."""
        self.state.document.settings.env.note_reread()
        return self.made(self.arguments[0])

    def made(self, what: str) -> list[nodes.Node]:
        """Return what stands there."""
        raise NotImplementedError

    def _read(self, lines: list[str]) -> list[nodes.Node]:
        parent = nodes.container()
        self.state.nested_parse(StringList(lines, "made"), 0, parent)
        return parent.children


class Door(_Made):
    """The names of a door, `:::{door} jpsi.plugin.kit`, each with a sentence and what tells more."""

    def made(self, what: str) -> list[nodes.Node]:
        """Return a table for each purpose."""
        import doors

        return self._read(list(self._lines(what, doors.groups(what))))

    def _lines(self, door: str, groups: dict[str, list[Any]]) -> Iterator[str]:
        for purpose, entries in groups.items():
            yield from ("", f"**{purpose}**", "", "| name | |", "|---|---|")
            for it in entries:
                sentence = it.sentence.replace("|", r"\|")
                yield f"| {{py:obj}}`{it.name} <{_place(door, it.name)}>` | {sentence} |"


class Rooms(_Made):
    """A picture of rooms, `:::{rooms} jpsi_engine`, and below it what each is for."""

    def made(self, what: str) -> list[nodes.Node]:
        """Return the picture and the table."""
        import rooms

        picture = nodes.raw("", f"<p>{rooms.picture(what)}</p>", format="html")
        if what == "distributions":
            return [picture]
        rows = [f"| `{name}` | {about} |" for name, about in rooms.sentences(what)]
        return [picture, *self._read(["| room | what it is for |", "|---|---|", *rows])]


class Notebook(_Made):
    """A notebook of the repository, `:::{notebook} examples/functions.ipynb`, run during the build."""

    def made(self, what: str) -> list[nodes.Node]:
        """Return its cells and their outputs."""
        import notebooks

        return self._read(list(notebooks.page(Path(__file__).parents[1] / what)))


def _place(door: str, name: str) -> str:
    """Return where a name is documented: what programs have is on the page of that."""
    import jpsi

    return f"jpsi.{name}" if name in jpsi.__all__ else f"{door}.{name}"


def _is_elsewhere(
    app: Sphinx,
    what: str,
    name: str,
    member: object,
    skip: bool,  # noqa: FBT001  as Sphinx calls it
    __: object,
) -> bool:
    """Whether the page about door 2 leaves something to another: what door 1 has, and the hooks."""
    import jpsi
    from jpsi_engine import job_store

    short = name.rpartition(".")[2]
    is_door_2 = what == "module" and app.env.docname == "reference/plugin"
    is_of_store = short in job_store.__all__ and getattr(job_store, short) is member
    return skip or (is_door_2 and (short in jpsi.__all__ or is_of_store or name.endswith("Hooks")))


_kept: dict[str, list[str]] = {}


def _keep(_: Sphinx, what: str, name: str, __: object, ___: object, lines: list[str]) -> None:
    if what in {"attribute", "property"} and "Raises:" not in lines:
        _kept[name] = list(lines)


def _restore(_: Sphinx, __: str, name: str, ___: object, ____: object, lines: list[str]) -> None:
    lines[:] = _kept.pop(name, lines)
