"""Settings of the documentation; `./dev docs` builds it."""

import logging
import tomllib
from pathlib import Path

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
