"""Tools for plugins, grouped by purpose.

Readers of scripts and options, directives, host lists, command output.
"""

from jpsi.contract import (
    directories_command,
    read_directories,
)
from jpsi.plugin.kit.answers import carried_tag, moment, refusals, tagged
from jpsi.plugin.kit.command_text import command_lines
from jpsi.plugin.kit.directive_words import Given, dash_options, gnu_options
from jpsi.plugin.kit.hostlists import hostlist
from jpsi.plugin.kit.indices import read_indices, write_indices
from jpsi.plugin.kit.missing_program import need_program
from jpsi.plugin.kit.native_ids import IdForm, the_one_id
from jpsi.plugin.kit.readers import (
    attribute,
    count,
    output,
    passed_over,
    path,
    read_amount,
    read_count,
    read_exclusive,
    read_name,
    read_path,
)
from jpsi.plugin.kit.script_form import ScriptForm
from jpsi.plugin.kit.script_launcher import ScriptLauncher
from jpsi.plugin.kit.script_reader import ScriptReader
from jpsi.plugin.kit.signals import SIGNALS, heed_signals, pass_signals, trap_signals
from jpsi.plugin.kit.submit_errors import SubmitErrors

__all__ = [
    "SIGNALS",
    "Given",
    "IdForm",
    "ScriptForm",
    "ScriptLauncher",
    "ScriptReader",
    "SubmitErrors",
    "attribute",
    "carried_tag",
    "command_lines",
    "count",
    "dash_options",
    "directories_command",
    "gnu_options",
    "heed_signals",
    "hostlist",
    "moment",
    "need_program",
    "output",
    "pass_signals",
    "passed_over",
    "path",
    "read_amount",
    "read_count",
    "read_directories",
    "read_exclusive",
    "read_indices",
    "read_name",
    "read_path",
    "refusals",
    "tagged",
    "the_one_id",
    "trap_signals",
    "write_indices",
]
