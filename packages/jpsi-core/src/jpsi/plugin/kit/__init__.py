"""Tools for plugins, grouped by purpose.

Readers of scripts and options, directives, host lists, command output.
"""

from jpsi.contract import directories_command, read_directories
from jpsi.plugin.kit.array_ids import ArrayIds
from jpsi.plugin.kit.command_results import (
    IdForm,
    SubmitErrors,
    extract_intact_tag,
    extract_tag,
    ids_by_tag,
    is_nearly,
    parse_count,
    parse_limit,
    parse_time,
    refusals,
    require_one_id,
)
from jpsi.plugin.kit.ranges import expand_hostlist, read_indices, write_indices
from jpsi.plugin.kit.script_form import Draft, JobRequest, Option, Reader, ScriptForm
from jpsi.plugin.kit.script_options import (
    AFTER,
    attribute_option,
    count_option,
    dependencies_reader,
    duration_option,
    ignore_option,
    output_reader,
    path_reader,
    read_amount,
    read_count,
    read_exclusive,
    read_name,
    read_path,
    share_gpus,
    variables_reader,
)
from jpsi.plugin.kit.script_words import ParsedOption, dash_options, gnu_options
from jpsi.plugin.kit.shell_lines import (
    SIGNALS,
    command_lines,
    forward_signals,
    require_program,
    trap_signals,
    unignore_signals,
)

__all__ = [
    "AFTER",
    "SIGNALS",
    "ArrayIds",
    "Draft",
    "IdForm",
    "JobRequest",
    "Option",
    "ParsedOption",
    "Reader",
    "ScriptForm",
    "SubmitErrors",
    "attribute_option",
    "command_lines",
    "count_option",
    "dash_options",
    "dependencies_reader",
    "directories_command",
    "duration_option",
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
    "share_gpus",
    "trap_signals",
    "unignore_signals",
    "variables_reader",
    "write_indices",
]
