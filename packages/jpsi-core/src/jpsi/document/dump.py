"""Plain values as the text of a job document, YAML or JSON."""

from __future__ import annotations

import json
import re
import sys

import yaml


def dump_yaml(value: object) -> str:
    """A plain value as YAML in block style, every text such that no reader takes it for something else."""
    return yaml.dump(
        # Nothing occurs twice in what comes back, and subclasses of str, int, ... become what they are.
        json.loads(json.dumps(value)),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=sys.maxsize,  # folded text is hard to read
    )


def dump_json(value: object) -> str:
    """A plain value as JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A file name that is not UTF-8 has surrogates, which cannot be written to a file as they are.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


class _Dumper(yaml.SafeDumper):
    """Indents lists, and quotes what could be misread."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  PyYAML's names
        super().increase_indent(flow, indentless=False)

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


_Dumper.add_representer(str, _Dumper.represent_text)


def _style(text: str) -> str | None:
    lines = text.split("\n")
    if not all(line.isprintable() for line in lines):
        return '"'
    if len(lines) > 1:
        return "|" if all(line == line.rstrip() for line in lines) and text[0] not in " \n" else '"'
    return "'" if _MISREAD.match(text) else None


# What other readers of YAML, 1.1 or 1.2, take for a number or a truth value, besides what PyYAML does.
_MISREAD = re.compile(r"[-+.]*[0-9]|[yYnN]\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
