"""Settings of the documentation; `./dev docs` builds it."""

import logging
import sys
import tomllib
from pathlib import Path

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
html_title = f"jpsi {release}"
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Have the build warn where a page that is made from something else does not say what that says."""
    app.connect("builder-inited", _compare)
    app.connect("autodoc-skip-member", _is_elsewhere)
    # napoleon, at 500, takes what stands before a colon in the docstring of an attribute for its type.
    app.connect("autodoc-process-docstring", _keep, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)


def _compare(_: Sphinx) -> None:
    import conformance
    import fields

    for mistake in [*conformance.mistakes(), *fields.mistakes()]:
        getLogger(__name__).warning("%s", mistake)


def _is_elsewhere(
    app: Sphinx,
    what: str,
    name: str,
    _: object,
    skip: bool,  # noqa: FBT001  as Sphinx calls it
    __: object,
) -> bool:
    """Whether the page about door 2 leaves something to another: what door 1 has, and the hooks."""
    import jpsi

    is_door_2 = what == "module" and app.env.docname == "reference/plugin"
    return skip or (is_door_2 and (name.rpartition(".")[2] in jpsi.__all__ or name.endswith("Hooks")))


_kept: dict[str, list[str]] = {}


def _keep(_: Sphinx, what: str, name: str, __: object, ___: object, lines: list[str]) -> None:
    if what in {"attribute", "property"} and "Raises:" not in lines:
        _kept[name] = list(lines)


def _restore(_: Sphinx, __: str, name: str, ___: object, ____: object, lines: list[str]) -> None:
    lines[:] = _kept.pop(name, lines)
