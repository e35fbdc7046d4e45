"""The options and arguments of the commands, as parameters of click.

The help and the usage errors of every command need only this package, not the library.
"""

from __future__ import annotations

from .click_commands import SETTINGS, command, executor_option, flag, json_option, option
from .foreign_options import FOREIGN_COMMANDS, FOREIGN_OPTIONS, OTHER_WAYS
from .job_options import FAKE_PARAMETERS, KINDS, PLUGIN_PARAMETERS, RUN_PARAMETERS
from .selection_options import (
    ATTACH_PARAMETERS,
    JOBS,
    JSON_LINES,
    LOGS_PARAMETERS,
    LS_PARAMETERS,
    RESUBMIT_PARAMETERS,
    SCRIPT_PARAMETERS,
    SHOW_PARAMETERS,
    SUBMIT_PARAMETERS,
    USAGE_PARAMETERS,
    VALIDATE_PARAMETERS,
    WAIT_PARAMETERS,
)
