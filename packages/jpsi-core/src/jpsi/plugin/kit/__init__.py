"""Tools for plugins: readers of scripts and options, directives, host lists, command output."""

from typing import TYPE_CHECKING

from jpsi.lazy import door

if TYPE_CHECKING:
    from jpsi.contract import directories_command, must_be, read_directories
    from jpsi.plugin.kit.array_ids import *
    from jpsi.plugin.kit.command_results import *
    from jpsi.plugin.kit.ranges import *
    from jpsi.plugin.kit.script_form import *
    from jpsi.plugin.kit.script_options import *
    from jpsi.plugin.kit.script_words import *
    from jpsi.plugin.kit.shell_lines import *

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
    "array_reader",
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
    "gpu_type",
    "ids_by_tag",
    "ignore_option",
    "is_nearly",
    "join_reader",
    "mail_options",
    "must_be",
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
    "read_mail",
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
    "write_mail",
]

if not TYPE_CHECKING:
    _modules = ["shell_lines", "ranges", "command_results", "array_ids", "script_form", "script_options"]
    _rooms = [*(f"jpsi.plugin.kit.{it}" for it in _modules), "jpsi.plugin.kit.script_words", "jpsi.contract"]
    __getattr__, _ = door(__name__, __all__, _rooms)
