"""Reads and writes job documents: a JobSpec as YAML or JSON, in the format of J/PSI Appendix A.

    version: 1
    resources:                          # slot > core [+ gpu], or node > slot > core [+ gpu]
      - type: slot
        label: task
        count: 4
        with:
          - type: core
            count: 2
    tasks:
      - command: [./simulate, --fast]   # executable and arguments
        slot: task
        count:
          per_slot: 1                   # or total
    attributes:
      system:
        duration: 3600                  # seconds; 0 is unlimited
        environment: {OMP_NUM_THREADS: "2"}
        cwd: /scratch/run               # directory
        job: {name: simulation}         # name; other keys are custom attributes job.<key>
        jpsi: {queue_name: debug}       # the other fields of a spec; see the module extension
      user: {}                          # attributes.user, carried unchanged

Every written document reads back as the same spec.
"""

from __future__ import annotations

import ast
import re
import warnings

from jpsi.document.dump import dump_json, dump_yaml
from jpsi.document.problems import Place, Problems, spelled
from jpsi.document.standard import from_spec, place_of, to_spec
from jpsi.document.text import parse
from jpsi.document.values import Value, inexpressible
from jpsi.model import Dependency, DocumentWarning, InvalidJobException, JobSpec, problems


def read_document(text: str, source: str = "<document>") -> JobSpec:
    """Return the spec of a job document, YAML or JSON.

    Unknown keys of attributes.system and of tasks[0].count give one DocumentWarning.

    Args:
        text: The document.
        source: Its name in messages, usually its file name.

    Raises:
        DocumentError: The document has mistakes; the message names all of them, each with its line and its
            keys.
    """
    mistakes = Problems(source)
    spec = to_spec(Value(parse(text, mistakes), (), mistakes))
    if mistakes.doubts:
        warnings.warn("\n".join(mistakes.doubts), DocumentWarning, stacklevel=2)
    for problem in problems(spec):
        place, sentence = _placed(problem)
        # In place of a wrong value the spec has a harmless one, which is not always valid.
        if not mistakes.concern(place):
            mistakes.add(place, sentence)
    if mistakes:
        raise mistakes.error()
    return spec


def write_document(spec: JobSpec, *, as_json: bool = False) -> str:
    """Return the document of a valid spec, YAML unless `as_json`; `read_document` returns an equal spec.

    Only these differ: a tuple becomes a list, a subclass of text, number, list or mapping the plain type, and
    a Job in `attributes.after` its native id.

    Raises:
        InvalidJobException: The spec is not valid, or has values that a document cannot hold.
    """
    _refuse(problems(spec))
    _refuse(_nameless(spec))
    document = from_spec(spec)
    found = [f"{spelled(place)} {sentence}" for place, sentence in inexpressible(document)]
    _refuse(found)
    return dump_json(document) if as_json else dump_yaml(document)


def _nameless(spec: JobSpec) -> list[str]:
    """Return a problem for each dependency that has no native id yet."""
    after = spec.attributes.after or []
    return [
        f"attributes.after[{index}] is a job that was not submitted yet, which a document cannot name"
        for index, item in enumerate(after)
        if Dependency.of(item).native_id is None
    ]


def _refuse(found: list[str]) -> None:
    subject = "the job"
    if found:
        raise InvalidJobException.of(subject, found)


def _placed(problem: str) -> tuple[Place, str]:
    """Return the place in a document that a sentence of `problems` is about, and the rest of the sentence."""
    match = _PROBLEM.match(problem)
    if match is None:
        return (), problem
    steps = (step.groups() for step in _STEP.finditer(match["field"]))
    return place_of(tuple(name or ast.literal_eval(key) for name, key in steps)), match["sentence"]


# An index or a key; together with names they are the steps of `attributes.user['a'][0]`.
_KEY = r"""(?:\d+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_STEP = re.compile(rf"\.?([a-z_]+)|\[({_KEY})\]")
_PROBLEM = re.compile(rf"(?P<field>[a-z_]+(?:\.[a-z_]+|\[{_KEY}\])*):? (?P<sentence>.*)", re.DOTALL)
