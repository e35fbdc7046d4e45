"""The hook implementations of the executor `oar`, collected from the modules of this package.

It is the plugin that the core loads by its entry point; the core calls the hooks to submit and follow jobs.
"""

from jpsi.plugin import Command, hookimpl

from .config import capabilities, config_class
from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .directives import check_spec, read_script, render_script
from .native_ids import arrays_of, canonical_id, element_ids
from .oarstat import find, parse_find, parse_status, query
from .oarsub import classify_failure, nodes, parse_submit, submit


@hookimpl
def version() -> Command:
    """Return the command that prints OAR's version."""
    return Command(["oarsub", "-V"])
