"""Reads a job document's text, YAML or JSON, as plain values with the line of each, and writes such text."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import Any

import attrs
import yaml

from jpsi.document.values import Problems, Value, ValuePath, shown
from jpsi.model import InvalidJobException

#: The largest nesting depth of the values of a document: deeper than those of a spec.
DEPTH = 100
#: The number of values that aliases may repeat: enough for people, too few for a "billion laughs".
REPEATED = 10_000


def parse(text: str, source: str) -> Value:
    """Return the content of a YAML or JSON text.

    `problems` of the result has the problems that plain values cannot show: keys that occur twice or are not
    text, and values that JSON does not have. A text that is neither YAML nor JSON raises DocumentError, whose
    message calls the text `source`.
    """
    problems = Problems(source)
    text = text.removeprefix("\ufeff")
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return Value(_parse_yaml(text, problems), (), problems)
    # A YAML parser does not always read JSON values right, but it finds their lines. A tab is an error in
    # YAML; in JSON an unescaped tab is always a blank.
    with contextlib.suppress(InvalidJobException):
        _parse_yaml(text.replace("\t", " "), Problems(source, problems.lines))
    return Value(_from_pairs(pairs, (), problems), (), problems)


_TOO_DEEP = f"nested more than {DEPTH} levels deep, or in itself"


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written, including keys that occur twice."""


def _from_pairs(value: object, path: ValuePath, problems: Problems) -> object:
    if len(path) > DEPTH:
        problems.add((), f"is {_TOO_DEEP}")
        return None
    if isinstance(value, _Pairs):
        mapping: dict[str, object] = {}
        for key, item in value:
            if key in mapping:
                line = problems.lines.get((*path, key))
                problems.add_beside(path, f"has the key {shown(key)} twice", line)
            mapping[key] = _from_pairs(item, (*path, key), problems)
        return mapping
    if isinstance(value, list):
        return [_from_pairs(item, (*path, index), problems) for index, item in enumerate(value)]
    return value


def _parse_yaml(text: str, problems: Problems) -> object:
    try:
        loader = _Loader(text, problems)
        node = loader.get_single_node()
        return None if node is None else loader.plain(node, ())
    # PyYAML 6.0 does not expect an escape above \U0010FFFF, nor %YAML with thousands of digits.
    except (yaml.YAMLError, ValueError, OverflowError) as e:
        found = explain_yaml_error(text, e)
        problems.add_beside((), str(found), found.line)
        raise problems.error() from e


@attrs.frozen(slots=True)
class YamlProblem:
    """The reason why a text is not YAML, its place, and what to do about it."""

    #: The rest of a sentence that begins with the place.
    sentence: str
    #: What the user can do; empty if that is unknown.
    hint: str = ""
    #: The line and the column, from 1; 0 if they are unknown.
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.sentence, self.hint)))


def explain_yaml_error(text: str, error: Exception) -> YamlProblem:
    """Return the problem in a text that PyYAML's parser in Python refuses with an error."""
    if isinstance(error, yaml.reader.ReaderError):
        at, line_start = error.position, text.rfind("\n", 0, error.position)
        sentence, hint = f"holds the character U+{ord(text[at]):04X}", "write it as an escape, in quotes"
        return YamlProblem(sentence, hint, text.count("\n", 0, at) + 1, at - line_start)
    if not isinstance(error, yaml.MarkedYAMLError):
        return YamlProblem("cannot be read as YAML: an escape or a version in it is out of range")
    problem, mark = error.problem or "", error.problem_mark
    sentence = f"cannot be read as YAML: {', '.join(filter(None, (error.context, problem)))}"
    hint = next((hint for part, hint in _HINTS if part in problem), "")
    return (
        YamlProblem(sentence, hint)
        if mark is None
        else YamlProblem(sentence, hint, mark.line + 1, mark.column + 1)
    )


#: The usual mistakes, by words of the parser's message.
_HINTS = (
    ("character '\\t'", "write blanks instead of tabs"),
    (
        "mapping values are not allowed here",
        "put it in quotes if it is a text with `: ` in it; put a blank after the `:` of a key, above as well",
    ),
)


class _Loader(yaml.SafeLoader):
    """A loader of plain values that limits their depth and notes their lines; dates and `=` are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as in yaml.resolver.BaseResolver
        first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":timestamp", ":value"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str, problems: Problems) -> None:
        super().__init__(text)
        self.problems = problems
        self.depth = -1
        self.seen: set[yaml.Node] = set()
        self.repeated = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEPTH:
            raise yaml.composer.ComposerError(problem=_TOO_DEEP, problem_mark=self.get_mark())
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def plain(self, node: yaml.Node, path: ValuePath) -> object:
        self.problems.lines.setdefault(path, node.start_mark.line + 1)
        self._limit(node, path)
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_YAML}seq":
            return [self.plain(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_YAML}map":
            return self._mapping(node, path)
        tag = node.tag.replace(_YAML, "!!")
        self.problems.add(path, f"has the tag {shown(tag)}, which a job document cannot have here")
        return None

    def _limit(self, node: yaml.Node, path: ValuePath) -> None:
        self.repeated += node in self.seen
        self.seen.add(node)
        problem = f"aliases repeat more than {REPEATED} values" if self.repeated > REPEATED else None
        # Aliases can nest values deeper than the text.
        if problem := _TOO_DEEP if len(path) > DEPTH else problem:
            raise yaml.composer.ComposerError(problem=problem, problem_mark=node.start_mark)

    def _mapping(self, node: yaml.MappingNode, path: ValuePath) -> dict[str, object]:
        mapping: dict[str, object] = {}
        for key_node, item in node.value:
            line = key_node.start_mark.line + 1
            if problem := _key_problem(key_node):
                self.problems.add_beside(path, problem, line)
            elif (key := _joined(key_node.value)) in mapping:
                self.problems.add_beside(path, f"has the key {shown(key)} twice", line)
            else:
                self.problems.lines.setdefault((*path, key), line)
                mapping[key] = self.plain(item, (*path, key))
        return mapping

    def _scalar(self, node: yaml.ScalarNode, path: ValuePath) -> object:
        try:
            value: object = _SCALARS[node.tag](self, node)
            str(value)  # ValueError: more digits than Python writes
        except (ValueError, OverflowError, KeyError, IndexError):
            kind = node.tag.replace(_YAML, "!!")
            self.problems.add(path, f"cannot be read as {kind}: {shown(node.value)}")
            return None
        return _joined(value) if isinstance(value, str) else value


def _key_problem(node: yaml.Node) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        return "has a key that is not text but a list or a mapping"
    if node.tag == f"{_YAML}merge":
        return "has the key <<; write out what is to be merged"
    if node.tag != f"{_YAML}str":
        return f"has a key that is not text; put it in quotes: {shown(node.value)}"
    return None


def _joined(text: str) -> str:
    # JSON writes a character above U+FFFF as two escapes.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_YAML = "tag:yaml.org,2002:"
_SCALARS = {
    f"{_YAML}{kind}": getattr(yaml.SafeLoader, f"construct_yaml_{kind}")
    for kind in ("null", "bool", "int", "float", "str")
}


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
