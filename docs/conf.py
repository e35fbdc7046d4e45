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

extensions = ["myst_parser"]
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


def _compare(_: Sphinx) -> None:
    import conformance

    for mistake in conformance.mistakes():
        getLogger(__name__).warning("%s", mistake)
