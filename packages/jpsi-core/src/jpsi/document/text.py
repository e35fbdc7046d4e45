"""Parses the text of a job document, YAML or JSON, to plain values with the line of each."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import yaml

from jpsi.document.problems import Place, Problems, shown
from jpsi.model import InvalidJobException

#: The largest nesting depth of the values of a document: deeper than those of a spec.
DEPTH = 100
#: The number of values that aliases may repeat: enough for people, too few for a "billion laughs".
REPEATED = 10_000


def parse(text: str, mistakes: Problems) -> object:
    """Return the plain value of a YAML or JSON text.

    `mistakes` receives the line of each value, and the mistakes that plain values cannot show: keys that
    occur twice or are not text, and values that JSON does not have.

    Raises:
        DocumentError: The text is neither YAML nor JSON.
    """
    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return _parse_yaml(text, mistakes)
    # A YAML parser does not always read JSON values right, but it finds their lines. A tab is an error in
    # YAML; in JSON an unescaped tab is always a blank.
    lines = Problems(mistakes.source, mistakes.lines)
    with contextlib.suppress(InvalidJobException):
        _parse_yaml(text.replace("\t", " "), lines)
    return _from_pairs(value, (), mistakes)


_TOO_DEEP = f"nested more than {DEPTH} levels deep, or in itself"


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written, including keys that occur twice."""


def _from_pairs(value: object, place: Place, mistakes: Problems) -> object:
    if len(place) > DEPTH:
        mistakes.add((), f"is {_TOO_DEEP}")
        return None
    if isinstance(value, _Pairs):
        mapping: dict[str, object] = {}
        for key, item in value:
            if key in mapping:
                line = mistakes.lines.get((*place, key))
                mistakes.add_beside(place, f"has the key {shown(key)} twice", line)
            mapping[key] = _from_pairs(item, (*place, key), mistakes)
        return mapping
    if isinstance(value, list):
        return [_from_pairs(item, (*place, index), mistakes) for index, item in enumerate(value)]
    return value


def _parse_yaml(text: str, mistakes: Problems) -> object:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return None if node is None else _Tree(loader, mistakes).value(node, ())
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        sentence = f"holds the character U+{ord(text[error.position]):04X}; write it as an escape, in quotes"
        mistakes.add_beside((), sentence, line)
        raise mistakes.error() from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        sentence = ", ".join(filter(None, (error.context, error.problem)))
        mistakes.add_beside((), f"cannot be read as YAML: {sentence}", mark.line + 1 if mark else None)
        raise mistakes.error() from error
    except (ValueError, OverflowError) as error:
        # PyYAML 6.0 does not expect an escape above \U0010FFFF, nor %YAML with thousands of digits.
        mistakes.add_beside((), "cannot be read as YAML: an escape or a version in it is out of range")
        raise mistakes.error() from error


class _Loader(yaml.SafeLoader):
    """A loader that limits the depth of nodes; dates and `=` are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as in yaml.resolver.BaseResolver
        first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":timestamp", ":value"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = -1

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEPTH:
            raise yaml.composer.ComposerError(problem=_TOO_DEEP, problem_mark=self.get_mark())
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Tree:
    """A converter of YAML nodes to plain values."""

    def __init__(self, loader: _Loader, mistakes: Problems) -> None:
        self.loader = loader
        self.mistakes = mistakes
        self.seen: set[yaml.Node] = set()
        self.repeated = 0

    def value(self, node: yaml.Node, place: Place) -> object:
        self.mistakes.lines.setdefault(place, node.start_mark.line + 1)
        self.limit(node, place)
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self.scalar(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_YAML}seq":
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_YAML}map":
            return self.mapping(node, place)
        tag = node.tag.replace(_YAML, "!!")
        self.mistakes.add(place, f"has the tag {shown(tag)}, which a job document cannot have here")
        return None

    def limit(self, node: yaml.Node, place: Place) -> None:
        self.repeated += node in self.seen
        self.seen.add(node)
        problem = f"aliases repeat more than {REPEATED} values" if self.repeated > REPEATED else None
        # Aliases can nest values deeper than the text.
        if problem := _TOO_DEEP if len(place) > DEPTH else problem:
            raise yaml.composer.ComposerError(problem=problem, problem_mark=node.start_mark)

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        mapping: dict[str, object] = {}
        for key_node, item in node.value:
            line = key_node.start_mark.line + 1
            key = self.key(key_node, place, line)
            if key in mapping:
                self.mistakes.add_beside(place, f"has the key {shown(key)} twice", line)
            elif key is not None:
                self.mistakes.lines.setdefault((*place, key), line)
                mapping[key] = self.value(item, (*place, key))
        return mapping

    def key(self, node: yaml.Node, place: Place, line: int) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self.mistakes.add_beside(place, "has a key that is not text but a list or a mapping", line)
        elif node.tag == f"{_YAML}merge":
            self.mistakes.add_beside(place, "has the key <<; write out what is to be merged", line)
        elif node.tag != f"{_YAML}str":
            sentence = f"has a key that is not text; put it in quotes: {shown(node.value)}"
            self.mistakes.add_beside(place, sentence, line)
        else:
            return _joined(node.value)
        return None

    def scalar(self, node: yaml.ScalarNode, place: Place) -> object:
        try:
            value: object = _SCALARS[node.tag](self.loader, node)
            str(value)  # ValueError: more digits than Python writes
        except (ValueError, OverflowError, KeyError, IndexError):
            kind = node.tag.replace(_YAML, "!!")
            self.mistakes.add(place, f"cannot be read as {kind}: {shown(node.value)}")
            return None
        return _joined(value) if isinstance(value, str) else value


def _joined(text: str) -> str:
    # JSON writes a character above U+FFFF as two escapes.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_YAML = "tag:yaml.org,2002:"
_SCALARS = {
    f"{_YAML}null": yaml.SafeLoader.construct_yaml_null,
    f"{_YAML}bool": yaml.SafeLoader.construct_yaml_bool,
    f"{_YAML}int": yaml.SafeLoader.construct_yaml_int,
    f"{_YAML}float": yaml.SafeLoader.construct_yaml_float,
    f"{_YAML}str": yaml.SafeLoader.construct_yaml_str,
}
