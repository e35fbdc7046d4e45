"""Writes plain values as the text of a job document, YAML or JSON."""

from __future__ import annotations

import json
import re
import sys

import yaml


def dump_yaml(value: object) -> str:
    """Return a plain value as YAML in block style, with all text quoted that a parser could misread."""
    return yaml.dump(
        # The copy has no shared parts, and subclasses of str, int, ... become the plain types.
        json.loads(json.dumps(value)),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=sys.maxsize,  # folded text is hard to read
    )


def dump_json(value: object) -> str:
    """Return a plain value as JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A file name that is not UTF-8 has surrogates, which cannot be written to a file as they are.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


class _Dumper(yaml.SafeDumper):
    """A dumper that indents lists, and quotes text that could be misread."""

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


# Text that other YAML parsers, 1.1 or 1.2, take for a number or a truth value, besides what PyYAML does.
_MISREAD = re.compile(r"[-+.]*[0-9]|[yYnN]\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
