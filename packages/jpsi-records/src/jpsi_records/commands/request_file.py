"""Reads request files for the commands of `jpsi request`; each problem is reported with its file and line."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from jpsi import DocumentWarning
from jpsi.plugin import explain_yaml_error

from ..errors import InvalidRequestError
from ..formatting import printable
from ..model import RequestSpec, read_request_spec

# The keys at the beginning of a problem: `mounts: /in ...`, `placement.nodes ...`, `'a' ...`.
_STEP = re.compile(r"[^\s.:']+")


def read_file(file: str, *, is_lenient: bool = False) -> RequestSpec:
    """Return the request spec in a YAML or JSON file; `-` is standard input.

    Args:
        file: the file.
        is_lenient: True to warn of unknown keys and ignore them.

    Raises:
        InvalidRequestError: the file cannot be read, or is no valid request.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        document, root = _parse(text, file)
    except (OSError, UnicodeError, ValueError) as e:
        why = e.strerror if isinstance(e, OSError) else e
        raise InvalidRequestError(f"{file} cannot be read: {why}", e) from e
    lines = _key_lines(root)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DocumentWarning)
        try:
            spec: RequestSpec | None = read_request_spec(document, lenient=True)
            problems: Sequence[str] = ()
        except InvalidRequestError as e:
            spec, problems = None, e.problems
    unknown = [str(it.message) for it in caught]
    if is_lenient:
        for it in unknown:
            click.echo(f"jpsi: warning: {printable(_locate(it, file, lines))}", err=True)
    else:
        # first, since an unknown key may be the whole reason for the other problems
        problems = [*(f"{it} (--lenient ignores it)" for it in unknown), *problems]
    if spec is None or problems:
        raise InvalidRequestError.of([_locate(it, file, lines) for it in problems])
    return spec


def _parse(text: str, file: str) -> tuple[Any, yaml.Node | None]:
    """Return the document in the text of a file, and its YAML node, which has the lines.

    Raises:
        InvalidRequestError: the text is no YAML, or nested too deeply.
        ValueError: it is no JSON, or a value in it is not possible, such as a date.
    """
    is_json = file.endswith(".json")
    try:
        document = json.loads(text) if is_json else None
        root = _compose(text.replace("\t", " ") if is_json else text)
        return document if is_json else yaml.safe_load(text), root
    except RecursionError as e:
        raise InvalidRequestError(f"{file}: is nested too deeply", e) from e
    except (yaml.YAMLError, _SyntaxError) as e:
        found = explain_yaml_error(text, e)
        place = f"{file}:{found.line}" if found.line else file
        raise InvalidRequestError(f"{place}: {found}", e) from e


class _SyntaxError(Exception):
    """An error of the YAML parser that is none of PyYAML's own."""


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    # PyYAML 6.0 does not expect an escape above \U0010FFFF, nor %YAML with thousands of digits.
    except (ValueError, OverflowError) as e:
        raise _SyntaxError from e


def _key_lines(root: yaml.Node | None) -> Mapping[tuple[str, ...], int]:
    """Return the lines of the keys of a document and of the mappings in it."""
    lines: dict[tuple[str, ...], int] = {}
    for key, value in _pairs(root):
        lines[(key.value,)] = key.start_mark.line + 1
        for inner, _ in _pairs(value):
            lines.setdefault((key.value, inner.value), inner.start_mark.line + 1)
    return lines


def _pairs(node: Any) -> Any:  # noqa: ANN401  nodes of PyYAML, which has no types
    return node.value if isinstance(node, yaml.MappingNode) else ()


def _locate(problem: str, file: str, lines: Mapping[tuple[str, ...], int]) -> str:
    """Return a problem with the file and line that it is about in front; the keys are its first words."""
    steps = tuple(_STEP.findall(problem)[:2])
    paths = (steps, steps[:1], ("placement", *steps[:1]))
    line = next((lines[it] for it in paths if it in lines), 1)
    return f"{file}:{line}: {problem}"
