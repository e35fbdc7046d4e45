"""Tools for plugins, grouped by purpose.

Readers of scripts and options, directives, host lists, command output.
"""

from jpsi.contract import (
    directories_command,
    read_directories,
)
from jpsi.plugin.kit.array_ids import ArrayIds
from jpsi.plugin.kit.command_results import (
    IdForm,
    SubmitErrors,
    extract_tag,
    ids_by_tag,
    parse_time,
    refusals,
    require_one_id,
)
from jpsi.plugin.kit.output_fields import extract_intact_tag, is_nearly, parse_count, parse_limit
from jpsi.plugin.kit.ranges import expand_hostlist, read_indices, write_indices
from jpsi.plugin.kit.script_form import ScriptForm
from jpsi.plugin.kit.script_reader import (
    ParsedOption,
    ScriptReader,
    attribute_reader,
    count_reader,
    dash_options,
    gnu_options,
    ignore_option,
    output_reader,
    path_reader,
    read_amount,
    read_count,
    read_exclusive,
    read_name,
    read_path,
)
from jpsi.plugin.kit.shell_lines import (
    SIGNALS,
    command_lines,
    forward_signals,
    require_program,
    trap_signals,
    unignore_signals,
)

__all__ = [
    "SIGNALS",
    "ArrayIds",
    "IdForm",
    "ParsedOption",
    "ScriptForm",
    "ScriptReader",
    "SubmitErrors",
    "attribute_reader",
    "command_lines",
    "count_reader",
    "dash_options",
    "directories_command",
    "expand_hostlist",
    "extract_intact_tag",
    "extract_tag",
    "forward_signals",
    "gnu_options",
    "ids_by_tag",
    "ignore_option",
    "is_nearly",
    "output_reader",
    "parse_count",
    "parse_limit",
    "parse_time",
    "path_reader",
    "read_amount",
    "read_count",
    "read_directories",
    "read_exclusive",
    "read_indices",
    "read_name",
    "read_path",
    "refusals",
    "require_one_id",
    "require_program",
    "trap_signals",
    "unignore_signals",
    "write_indices",
]
