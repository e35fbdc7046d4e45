"""The problems of a job document: one error names all of them, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from documents import DOCUMENT, changed, document_problems, jpsi, read_quietly, system
from jpsi.document.documents import read_document, write_document
from jpsi.document.text import dump_json, dump_yaml
from jpsi.model.errors import DocumentError, DocumentWarning
from jpsi.model.spec import JobSpec
from jpsi_testing import PYTHON_WORDS, corrupted_documents
from strategies import job_specs, json_values, texts

TAB = (
    "cannot be read as YAML: while scanning for the next token, found character '\\t' that cannot start any "
    "token; write blanks instead of tabs"
)
#: Texts that are no document at all.
NOT_DOCUMENTS = [
    ("a", "1: must be a mapping, not 'a'"),
    ("[version, 1]", "1: must be a mapping, not a list"),
    ("", " is empty"),
    ("# nothing\n", " is empty"),
    ("null", "1: is empty"),
    (DOCUMENT + "\tuser: {}", f"17: {TAB}"),
    (
        "tasks: [",
        (
            "1: cannot be read as YAML: while parsing a flow node, expected the node content, but found "
            "'<stream end>'"
        ),
    ),
    (
        '{"version": 1,\n "tasks" []}',
        "2: cannot be read as YAML: while parsing a flow mapping, expected ',' or '}', but got '['",
    ),
    ("a:\n\tb: c", f"2: {TAB}"),
    ("a:\tb", f"1: {TAB}"),
    (
        "a: b: c",
        (
            "1: cannot be read as YAML: mapping values are not allowed here; put it in quotes if it is a "
            "text with `: ` in it; put a blank after the `:` of a key, above as well"
        ),
    ),
    ("a: *b", "1: cannot be read as YAML: found undefined alias 'b'"),
    (
        DOCUMENT + "---\n" + DOCUMENT,
        "17: cannot be read as YAML: expected a single document in the stream, but found another document",
    ),
    (DOCUMENT + "\0", "17: holds the character U+0000; write it as an escape, in quotes"),
    ("\x7fELF\x02\x01\x01", "1: holds the character U+007F; write it as an escape, in quotes"),
    ('["\\UFFFFFFFF"]', " cannot be read as YAML: an escape or a version in it is out of range"),
    (f"%YAML 1.{'9' * 5000}\n--- a", " cannot be read as YAML: an escape or a version in it is out of range"),
    ("a: &a [*a]", "1: cannot be read as YAML: nested more than 100 levels deep, or in itself"),
    ("[" * 1_500, "1: cannot be read as YAML: nested more than 100 levels deep, or in itself"),
    (
        "[" * 1_500 + "]" * 1_500,
        "1: cannot be read as YAML: nested more than 100 levels deep, or in itself",
    ),
    ("[" * 500 + "]" * 500, " is nested more than 100 levels deep, or in itself"),
    ("- " * 1_500, "1: cannot be read as YAML: nested more than 100 levels deep, or in itself"),
    (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200)),
        "1: cannot be read as YAML: nested more than 100 levels deep, or in itself",
    ),
    (
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 6)),
        "2: cannot be read as YAML: aliases repeat more than 10000 values",
    ),
]
#: Changes of DOCUMENT.
CHANGES = [
    ("version: 1\n", "", "1: version: is missing"),
    (
        "version: 1",
        "version: 2",
        "1: version: is 2, but this jpsi reads version 1 only; a newer one may read it",
    ),
    (
        "version: 1",
        f"version: 0x{'f' * 5000}",
        f"1: version: cannot be read as !!int: '0x{'f' * 57}...",
    ),
    ("version: 1", "version: 0", "1: version: must be 1, not 0"),
    ("version: 1", "version: '1'", "1: version: must be 1, not '1'"),
    ("version: 1", "version: true", "1: version: must be 1, not true"),
    ("duration: 3600", "duration: 1\n    duration: 2", "17: attributes.system: has the key 'duration' twice"),
    (
        "type: slot",
        "type: sloot",
        "3: resources[0].type: must be one of node, slot, not 'sloot'; did you mean 'slot'?",
    ),
    ("type: slot", "type: core", "3: resources[0].type: must be one of node, slot, not 'core'"),
    ("type: core", "type: node", "7: resources[0].with[0].type: must be one of core, gpu, not 'node'"),
    ("type: core", "type: gpu", "6: resources[0].with: must contain a core"),
    ("type: core", "type: 5", "7: resources[0].with[0].type: must be one of core, gpu, not 5"),
    ("count: 4", "count: 0", "5: resources[0].count: must be a whole number of at least 1, not 0"),
    ("count: 4", "count: 4.0", "5: resources[0].count: must be a whole number of at least 1, not 4.0"),
    ("count: 4", "count: true", "5: resources[0].count: must be a whole number of at least 1, not true"),
    (
        "count: 4",
        "count: {min: 1}",
        "5: resources[0].count: must be a whole number of at least 1, not a mapping",
    ),
    ("    count: 4\n", "", "3: resources[0].count: is missing"),
    ("    label: task\n", "", "3: resources[0].label: is missing; a slot needs one"),
    ("label: task", "label: 1", "4: resources[0].label: must be text, not 1; put it in quotes"),
    (
        "    count: 4",
        "    unit: 1\n    count: 4",
        "5: resources[0].unit: is not known here; did you mean 'count'?",
    ),
    (
        "count: 2",
        "count: 2\n        with: []",
        "9: resources[0].with[0].with: is not allowed here: a core cannot contain anything",
    ),
    ("      - type: core\n        count: 2\n", "      []\n", "6: resources[0].with: must contain a core"),
    (
        "with:\n      - type: core\n        count: 2",
        "with: core",
        "6: resources[0].with: must be a list, not 'core'",
    ),
    (
        "        count: 2",
        "        count: 2\n      - {type: core, count: 1}",
        "9: resources[0].with[1]: is one too many: there can be one core here",
    ),
    (
        "        count: 2",
        "        count: 2\n        label: task",
        "9: resources[0].with[0].label: must be unique, but a slot has it, too",
    ),
    (
        "tasks:",
        "  - {type: slot, label: b, count: 1, with: []}\ntasks:",
        "9: resources[1]: is one too many; there must be exactly one vertex, a node or a slot",
    ),
    (
        "slot: task",
        "slot: tsk",
        "11: tasks[0].slot: must be the label of a slot, not 'tsk'; did you mean 'task'?",
    ),
    ("slot: task", "slot: b", "11: tasks[0].slot: must be the label of a slot, not 'b'; there is 'task'"),
    ("    slot: task\n", "", "10: tasks[0].slot: is missing"),
    ("[simulate, --fast]", "simulate", "10: tasks[0].command: must be a list, not 'simulate'"),
    ("[simulate, --fast]", "[]", "10: tasks[0].command: must have at least the executable"),
    ("[simulate, --fast]", "['']", "10: tasks[0].command[0]: is missing"),
    ("--fast", "10", "10: tasks[0].command[1]: must be text, not 10; put it in quotes"),
    ("--fast", '"\\0"', "10: tasks[0].command[1]: contains a NUL character, which no program can be given"),
    (
        "--fast",
        '"\\ud800"',
        "10: tasks[0].command[1]: contains a lone surrogate, which no encoding can express",
    ),
    ("per_slot: 1", "{}", "12: tasks[0].count: must have per_slot or total"),
    (
        "per_slot: 1",
        "per_slot: none",
        "13: tasks[0].count.per_slot: must be a whole number of at least 1, not 'none'",
    ),
    (
        "attributes:",
        "  - command: [b]\nattributes:",
        "14: tasks[1]: is one too many; there must be exactly one task",
    ),
    (
        "    slot: task",
        "    slot: task\n    cmd: a",
        "12: tasks[0].cmd: is not known here; did you mean 'command'?",
    ),
    ("  system:\n    duration: 3600\n", "  {}\n", "14: attributes.system: is missing"),
    ("    duration: 3600\n", "    {}\n", "15: attributes.system.duration: is missing; 0 is unlimited"),
    ("3600", "yes", "16: attributes.system.duration: must be a number of seconds, not true"),
    ("3600", "'3600'", "16: attributes.system.duration: must be a number of seconds, not '3600'"),
    (
        "3600",
        "-1",
        (
            "16: attributes.system.duration: must be a finite number of seconds, at least 0, not -1; "
            "0 is unlimited"
        ),
    ),
    (
        "3600",
        ".inf",
        (
            "16: attributes.system.duration: must be a finite number of seconds, at least 0, not Infinity; "
            "0 is unlimited"
        ),
    ),
    (
        "3600",
        ".nan",
        (
            "16: attributes.system.duration: must be a finite number of seconds, at least 0, not NaN; "
            "0 is unlimited"
        ),
    ),
    (
        "3600",
        "1.0e+300",
        "16: attributes.system.duration: is over 36500 days; zero means no limit",
    ),
]
#: Lines after DOCUMENT.
ADDITIONS = [
    ("task: 1", "17: task: is not known here; did you mean 'tasks'?"),
    ("version: 1", "17: has the key 'version' twice"),
    ("1: 2", "17: has a key that is not text; put it in quotes: '1'"),
    ("yes: 2", "17: has a key that is not text; put it in quotes: 'yes'"),
    ("? [a]\n: 2", "17: has a key that is not text but a list or a mapping"),
    ("<<: {}", "17: has the key <<; write out what is to be merged"),
    ("  users: {}", "17: attributes.users: is not known here; did you mean 'user'?"),
    ("  user:", "17: attributes.user: must be a mapping, not null"),
    ("  user: {a: {b: .nan}}", "17: attributes.user.a.b: must be a finite number, not nan"),
    (
        "  user: {a: !!binary aa==}",
        "17: attributes.user.a: has the tag '!!binary', which a job document cannot have here",
    ),
    (
        "  user: !!set {a, b}",
        "17: attributes.user: has the tag '!!set', which a job document cannot have here",
    ),
    ("  user: {a: !!int b}", "17: attributes.user.a: cannot be read as !!int: 'b'"),
    ("  user: {a: !!bool maybe}", "17: attributes.user.a: cannot be read as !!bool: 'maybe'"),
    ("  user: {a: !!int ''}", "17: attributes.user.a: cannot be read as !!int: ''"),
    (
        "  user: {a: !python/object b}",
        "17: attributes.user.a: has the tag '!python/object', which a job document cannot have here",
    ),
    (
        f"  user: {{a: {'9' * 5000}}}",
        (
            "17: attributes.user.a: cannot be read as !!int: "
            "'99999999999999999999999999999999999999999999999999999999999..."
        ),
    ),
    (
        f"  user: {{a: {':'.join('1' * 400)}.5}}",
        (
            "17: attributes.user.a: cannot be read as !!float: "
            "'1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1..."
        ),
    ),
    (
        '  user: {a: {"\\udfff": 1}}',
        (
            "17: attributes.user.a['\\udfff']: is a key that contains a lone surrogate, which no "
            "encoding can express"
        ),
    ),
]
GPU_PLACE = "resources, beside the core of the slot: {type: gpu, count: 1}"
#: Lines in attributes.system.
SYSTEM = [
    (
        "memory: 1",
        "17: memory: is not known and has no effect; it belongs in attributes.system.jpsi.resources",
    ),
    ("gpu: 1", f"17: gpu: is not known and has no effect; it belongs in {GPU_PLACE}"),
    ("quue_name: a", "17: quue_name: is not known and has no effect; did you mean 'jpsi.queue_name'?"),
    ("directory: /", "17: directory: is not known and has no effect; it belongs in attributes.system.cwd"),
    ("cwd: run", "17: cwd: must be absolute or start with ~/, not 'run'"),
    ("environment:", "17: environment: must be a mapping, not null"),
    ("jpsi:", "17: jpsi: must be a mapping, not null"),
    ("cwd: [/]", "17: cwd: must be text, not a list"),
    ("environment: [A=b]", "17: environment: must be a mapping, not a list"),
    ("environment:\n  A: b\n  B: 5", "19: environment.B: must be text, not 5; put it in quotes"),
    ("environment:\n  A: on", "18: environment.A: must be text, not true; put it in quotes"),
    (
        "environment:\n  1A: b",
        (
            "18: environment['1A']: cannot be set; names consist of letters, digits and _ and do not "
            "start with a digit"
        ),
    ),
    (
        'environment:\n  A: "\\0"',
        "18: environment.A: contains a NUL character, which no program can be given",
    ),
    ("job: {name: 5}", "17: job.name: must be text, not 5; put it in quotes"),
    ("job: {nam: my run}", "17: job.nam: is not used by jpsi; did you mean 'name'?"),
    ("job: {a: null}", "17: job.a: must be text, not null"),
    ("job: {a: [b]}", "17: job.a: must be text, not a list"),
    (
        "job: {a: b}\njpsi: {custom_attributes: {job.a: b}}",
        "18: jpsi.custom_attributes['job.a']: repeats attributes.system.job or tasks[0].count; remove it",
    ),
]
#: Lines in attributes.system.jpsi.
JPSI = [
    ("quue_name: a", "18: quue_name: is not known here; did you mean 'queue_name'?"),
    ("executable: a", "18: executable: belongs in tasks[0].command"),
    ("account: a", "18: account: belongs in attributes.system.jpsi.project_name"),
    ("memory: 1G", "18: memory: belongs in attributes.system.jpsi.resources"),
    ("node_count: 2", "18: node_count: belongs in attributes.system.jpsi.resources"),
    ("image: a.sif", "18: image: belongs in attributes.system.jpsi.container"),
    ("gpu: 2", f"18: gpu: belongs in {GPU_PLACE}"),
    ("resources: {gpus: 1}", f"18: resources.gpus: belongs in {GPU_PLACE}"),
    ("resources: {queue_name: a}", "18: resources.queue_name: belongs in attributes.system.jpsi"),
    ("resources: {duration: 60}", "18: resources.duration: belongs in attributes.system.duration"),
    ("resources: {resources: {}}", "18: resources.resources: is not known here"),
    ("container: {image: a, stage_in: []}", "18: container.stage_in: is not known here"),
    ("queue_name: 5", "18: queue_name: must be text, not 5; put it in quotes"),
    ("launcher: [a]", "18: launcher: must be text, not a list"),
    ("stdout_path: ''", "18: stdout_path: must not be empty"),
    ('stdout_path: "\\0"', "18: stdout_path: contains a NUL character, which no program can be given"),
    ("create_directory: 'yes'", "18: create_directory: must be true or false, not 'yes'"),
    ("cleanup: a", "18: cleanup: must be a list, not 'a'"),
    (
        "cleanup_flags: [onerror]",
        (
            "18: cleanup_flags[0]: must be one of if_present, on_success, on_error, on_cancel, not "
            "'onerror'; did you mean 'on_error'?"
        ),
    ),
    ("stage_in:\n  - {source: a}", "19: stage_in[0].target: is missing"),
    ("stage_in: [{source: a, target: b, flags: []}]", "18: stage_in[0].flags: is not known here"),
    (
        "stage_in: [{source: a, target: b, mode: lnk}]",
        "18: stage_in[0].mode: must be one of copy, link, move, not 'lnk'; did you mean 'link'?",
    ),
    (
        'stage_in: [{source: "\\0", target: b}]',
        "18: stage_in[0].source: contains a NUL character, which no program can be given",
    ),
    ("stage_out: [a]", "18: stage_out[0]: must be a mapping, not 'a'"),
    ("custom_attributes: []", "18: custom_attributes: must be a mapping, not a list"),
    ("custom_attributes: {a: .inf}", "18: custom_attributes.a: must be a finite number, not inf"),
    ("resources: {memory: 0}", "18: resources.memory: must be at least 1, not 0"),
    (
        "resources: {memory: 4}",
        (
            "18: resources.memory: 4 is a number of bytes, too few for any job: "
            "4 GiB are 4294967296, 4 MiB are 4194304"
        ),
    ),
    (
        "resources: {memory: 1.5}",
        "18: resources.memory: must be a whole number of bytes, such as 4294967296, not 1.5",
    ),
    ("resources: {components: 1}", "18: resources.components: must be a list, not 1"),
    (
        "resources: {components: [{process_count: 4, cpu_cores_per_process: 2}]}",
        "18: resources.components: must be at least 2, not 1",
    ),
    (
        "resources: {components: [{process_count: 4, cpu_cores_per_process: 2}, {cores: 1}]}",
        "18: resources.components[1].cores: is not known here",
    ),
    (
        "resources: {components: [{process_count: 4, cpu_cores_per_process: 2}, {}], memory: 1}",
        "18: resources.memory: is not known here",
    ),
    (
        "resources: {components: [{process_count: 4, cpu_cores_per_process: 2}, {memory: 0}]}",
        "18: resources.components[1].memory: must be at least 1, not 0",
    ),
    (
        "resources: {components: [{cpu_cores_per_process: 2}, {process_count: 4}]}",
        (
            "18: resources: means process_count 1, processes_per_node 1 in components[0], but the "
            "document's resources and tasks mean process_count 4, processes_per_node 4"
        ),
    ),
    ("resources: {cores: 1}", "18: resources.cores: is not known here"),
    (
        "resources: {exclusive_node_use: null}",
        "18: resources.exclusive_node_use: must be true or false, not null",
    ),
    ("resources: {process_count: x}", "18: resources.process_count: must be a whole number, not 'x'"),
    (
        "resources: {node_count: x, processes_per_node: 2}",
        "18: resources.node_count: must be a whole number, not 'x'",
    ),
    ("resources: []", "18: resources: must be a mapping, not a list"),
    ("resources: {node_count: 5}", "18: resources: 4 processes cannot occupy 5 nodes"),
    (
        "resources: {process_count: 8}",
        (
            "18: resources: means process_count 8, processes_per_node 8, but the document's "
            "resources and tasks mean process_count 4, processes_per_node 4"
        ),
    ),
    (
        "resources: null",
        (
            "18: resources: means process_count 1, processes_per_node 1, cpu_cores_per_process 1, "
            "but the document's resources and tasks mean process_count 4, processes_per_node 4, "
            "cpu_cores_per_process 2"
        ),
    ),
    (
        "duration: null",
        (
            "18: duration: says that no duration is set, but attributes.system.duration is 3600; remove "
            "this, or write 600 there"
        ),
    ),
    ("duration: 5", "18: duration: must be null, not 5; a duration belongs in attributes.system.duration"),
    ("attributes: null", "18: attributes: says that no attribute is set, but the document has duration"),
    (
        "attributes: {}",
        "18: attributes: must be null, not a mapping; attributes belong in attributes.system.jpsi itself",
    ),
    ("arguments: []", "18: arguments: says that there are no arguments, but tasks[0].command has some"),
    ("arguments: [a]", "18: arguments: must be [], not a list; arguments belong in tasks[0].command"),
]


@pytest.mark.clause("document-keys")
@pytest.mark.parametrize(("text", "expected"), NOT_DOCUMENTS, ids=[case[-1][:60] for case in NOT_DOCUMENTS])
def test_text_that_is_no_document_is_refused(text: str, expected: str) -> None:
    assert document_problems(text) == [expected]


@pytest.mark.clause(
    "document-keys-required",
    "document-form",
    "document-resources-one",
    "document-vertex",
    "document-type",
    "document-count",
    "document-label",
    "document-label-local",
    "document-label-slot",
    "document-core",
    "document-tasks-one",
    "document-task",
    "document-command",
    "document-task-slot",
    "document-task-count",
    "document-duration",
    "document-version",
)
@pytest.mark.parametrize(("old", "new", "expected"), CHANGES, ids=[case[-1] for case in CHANGES])
def test_wrong_value_is_named_with_its_place(old: str, new: str, expected: str) -> None:
    assert document_problems(changed(old, new)) == [expected]


@pytest.mark.clause("document-attributes", "document-attributes-values", "document-user")
@pytest.mark.parametrize(("lines", "expected"), ADDITIONS, ids=[case[-1] for case in ADDITIONS])
def test_wrong_addition_is_named_with_its_place(lines: str, expected: str) -> None:
    assert document_problems(DOCUMENT + lines) == [expected]


@pytest.mark.clause("document-cwd", "document-job")
@pytest.mark.parametrize(("lines", "expected"), SYSTEM, ids=[case[-1] for case in SYSTEM])
def test_wrong_system_attribute_is_named_with_its_place(lines: str, expected: str) -> None:
    assert document_problems(system(lines)) == [expected.replace(": ", ": attributes.system.", 1)]


@pytest.mark.parametrize(("lines", "expected"), JPSI, ids=[case[-1] for case in JPSI])
def test_wrong_jpsi_attribute_is_named_with_its_place(lines: str, expected: str) -> None:
    assert document_problems(jpsi(lines)) == [expected.replace(": ", ": attributes.system.jpsi.", 1)]


def test_all_problems_are_named_at_once_in_the_order_of_lines() -> None:
    text = """\
version: 2
resources:
  - type: node
    count: 0
    with:
      - type: slot
        label: 5
        count: two
        with: {type: gpu, count: 1, color: red}
      - 7
tasks:
  - command: [a, 1, b, true]
    slot: s
    count: {per_slot: 0, total: .5}
    cmd: 1
  - second
attributes:
  system:
    duration: soon
    environment: {A: 1, B-C: d, E: "\\0"}
    cwd: here
    job: {name: 1, x: y, z: []}
    jpsi:
      launcher: 5
      resources: {memory: lots}
      stage_in: [{source: a}, b]
      cleanup_flags: [always]
  user: {a: .nan, b: !!set {c}, b: 2}
  system: {}
extra: 1
"""

    assert document_problems(text) == [
        "1: version: is 2, but this jpsi reads version 1 only; a newer one may read it",
        "4: resources[0].count: must be a whole number of at least 1, not 0",
        "7: resources[0].with[0].label: must be text, not 5; put it in quotes",
        "8: resources[0].with[0].count: must be a whole number of at least 1, not 'two'",
        "9: resources[0].with[0].with.color: is not known here",
        "9: resources[0].with[0].with: must contain a core",
        "10: resources[0].with[1]: must be a mapping, not 7",
        "12: tasks[0].command[1]: must be text, not 1; put it in quotes",
        "12: tasks[0].command[3]: must be text, not true; put it in quotes",
        "14: tasks[0].count.per_slot: must be a whole number of at least 1, not 0",
        "14: tasks[0].count.total: must be a whole number of at least 1, not 0.5",
        "15: tasks[0].cmd: is not known here; did you mean 'command'?",
        "16: tasks[1]: is one too many; there must be exactly one task",
        "19: attributes.system.duration: must be a number of seconds, not 'soon'",
        "20: attributes.system.environment.A: must be text, not 1; put it in quotes",
        (
            "20: attributes.system.environment.B-C: cannot be set; names consist of letters, digits and _ "
            "and do not start with a digit"
        ),
        "20: attributes.system.environment.E: contains a NUL character, which no program can be given",
        "21: attributes.system.cwd: must be absolute or start with ~/, not 'here'",
        "22: attributes.system.job.name: must be text, not 1; put it in quotes",
        "22: attributes.system.job.z: must be text, not a list",
        "24: attributes.system.jpsi.launcher: must be text, not 5; put it in quotes",
        (
            "25: attributes.system.jpsi.resources.memory: must be a whole number of bytes, such as "
            "4294967296, not 'lots'"
        ),
        "26: attributes.system.jpsi.stage_in[0].target: is missing",
        "26: attributes.system.jpsi.stage_in[1]: must be a mapping, not 'b'",
        (
            "27: attributes.system.jpsi.cleanup_flags[0]: must be one of if_present, on_success, on_error, "
            "on_cancel, not 'always'"
        ),
        "28: attributes.user.b: has the tag '!!set', which a job document cannot have here",
        "28: attributes.user: has the key 'b' twice",
        "28: attributes.user.a: must be a finite number, not nan",
        "29: attributes: has the key 'system' twice",
        "30: extra: is not known here",
    ]


@pytest.mark.clause("document-label-local", "document-slot", "document-task-slot")
def test_task_slot_is_no_other_vertex() -> None:
    text = changed("        count: 2", "        count: 2\n        label: c").replace("slot: task", "slot: c")

    assert document_problems(text) == [
        "12: tasks[0].slot: must be the label of a slot, not 'c'; there is 'task'"
    ]


def test_user_that_is_too_deep_is_named() -> None:
    (found,) = document_problems(DOCUMENT + f"  user: {{a: {'[' * 60 + ']' * 60}}}")

    assert found.startswith("17: attributes.user.a[0][0]")
    assert found.endswith("is nested more than 50 levels deep")


@pytest.mark.clause("document-type")
def test_unknown_vertices_are_each_named() -> None:
    text = changed(
        "      - type: core\n        count: 2\n",
        "      - {type: cor, count: 1}\n      - {type: x, count: 0}\n",
    )

    assert document_problems(text) == [
        "7: resources[0].with[0].type: must be one of core, gpu, not 'cor'; did you mean 'core'?",
        "8: resources[0].with[1].type: must be one of core, gpu, not 'x'",
        "8: resources[0].with[1].count: must be a whole number of at least 1, not 0",
    ]


def test_error_is_a_readable_list() -> None:
    with pytest.raises(
        DocumentError,
        match=r"^job\.yaml is not valid:\n"
        r"  - job\.yaml:4: resources\[0\]\.label: must be text, not 1; put it in quotes\n"
        r"  - job\.yaml:16: attributes\.system\.duration: must be a number of seconds, not 'soon'$",
    ):
        read_document(changed("label: task", "label: 1").replace("3600", "soon"), "job.yaml")


def test_several_problems_in_json_have_their_lines() -> None:
    text = json.dumps(json.loads(write_document(read_document(DOCUMENT), as_json=True)), indent="\t")
    text = text.replace('"slot": "task"', '"slot": "task",\n"slot": "task"').replace(
        "3600", 'NaN, \n\t"cwd": 1'
    )

    assert document_problems(text) == [
        "22: tasks[0]: has the key 'slot' twice",
        (
            "31: attributes.system.duration: must be a finite number of seconds, at least 0, not NaN; "
            "0 is unlimited"
        ),
        "32: attributes.system.cwd: must be text, not 1; put it in quotes",
    ]


def test_problems_of_json_that_yaml_cannot_locate_have_no_lines() -> None:
    text = write_document(read_document(DOCUMENT), as_json=True)

    assert document_problems(text.replace('"--fast"', '1, "\x7f"')) == [
        " tasks[0].command[1]: must be text, not 1; put it in quotes"
    ]


# --------------------------------------------------------------------------------------- other documents

OTHER_DOCUMENTS = [
    ("version: 1\ntasks:\n  - {name: a, command: [x]}\n  - {name: b, command: [x]}", "jpsi workflow run"),
    ("tasks: [{command: [x], resources: r}]\nresources: {r: {type: core, count: 1}}", "jpsi workflow run"),
    ("groups: [{name: g, tasks: []}]", "jpsi workflow run"),
    ("command: [x]\nmuonts: {}", "jpsi request run"),
    ("container_image: docker.io/a", "jpsi request run"),
]


@pytest.mark.parametrize(("text", "command"), OTHER_DOCUMENTS, ids=[case[0][:20] for case in OTHER_DOCUMENTS])
def test_a_document_of_another_language_names_the_command_that_takes_it(text: str, command: str) -> None:
    assert document_problems(text) == [f"1: is no job document; `{command}` takes it"]


# ----------------------------------------------------------------------------------- unknown keys


def test_unknown_keys_are_problems() -> None:
    text = system("enviroment: {}").replace("per_slot: 1", "per_slot: 1\n      totl: 2")

    assert document_problems(text) == [
        "14: tasks[0].count.totl: is not used by jpsi; did you mean 'total'?",
        "18: attributes.system.enviroment: is not known and has no effect; did you mean 'environment'?",
    ]


@pytest.mark.clause("document-system-unknown")
def test_unknown_system_attributes_give_one_warning_if_lenient() -> None:
    text = system("walltime: 5\nenviroment: {}\nqueue_name: debug")

    with pytest.warns(DocumentWarning) as caught:
        spec = read_document(text, "job.yaml", lenient=True)

    assert spec == read_document(DOCUMENT)
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).splitlines() == [
        (
            "job.yaml:17: attributes.system.walltime: is not known and has no effect; known are duration, "
            "environment, cwd, job, jpsi"
        ),
        (
            "job.yaml:18: attributes.system.enviroment: is not known and has no effect; did you mean "
            "'environment'?"
        ),
        (
            "job.yaml:19: attributes.system.queue_name: is not known and has no effect; it belongs in "
            "attributes.system.jpsi"
        ),
    ]


@pytest.mark.clause("document-task-count")
def test_extra_task_counts_are_kept_with_one_warning_if_lenient() -> None:
    text = changed("per_slot: 1", "per_slot: 1\n      per_gpu: 2\n      totl: [a]")

    with pytest.warns(DocumentWarning) as caught:
        spec = read_document(text, "job.yaml", lenient=True)

    (warning,) = caught
    assert str(warning.message).splitlines() == [
        "job.yaml:14: tasks[0].count.per_gpu: is not used by jpsi",
        "job.yaml:15: tasks[0].count.totl: is not used by jpsi; did you mean 'total'?",
    ]
    assert spec.attributes is not None
    assert spec.attributes.custom_attributes == {"count.per_gpu": 2, "count.totl": ["a"]}
    assert "      per_slot: 1\n      per_gpu: 2\n      totl:\n        - a\n" in write_document(spec)


# ---------------------------------------------------------------------------------------- any text

FIXED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=60,
)
#: Texts with a meaning in YAML, to be combined at random.
TOKENS = [
    *(
        "- ",
        ": ",
        "? ",
        "\n",
        "\n  ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "<<: ",
        "|\n",
        ">-\n",
        "'",
        '"',
        "#",
        "\t",
    ),
    *(
        "!!int ",
        "!!str ",
        "!!float ",
        "!!bool ",
        "!!null ",
        "!!map ",
        "!!seq ",
        "!!binary ",
        "!!timestamp ",
        "!x ",
        "!<",
    ),
    *(
        "%YAML 1.1\n",
        "%TAG ! a\n",
        "---\n",
        "...\n",
        "\\U",
        "\\x",
        "FFFFFFFF",
        "0x",
        "0b",
        "_",
        "1:",
        "99",
        ".5",
        "e+",
    ),
    *("version", "resources", "tasks", "attributes", "system", "\ufeff", "\x85", "\u2028"),
]


def check_error(text: str) -> None:
    """Read a text that may be anything: only DocumentError may come out, and it names nothing twice."""
    found = problems_of(text)

    assert len(set(found)) == len(found)
    assert not [it for it in found if PYTHON_WORDS.search(it)]
    assert "".join(found).encode() is not None


def problems_of(text: str) -> tuple[str, ...]:
    """Return the problems of a text that may be a document."""
    try:
        read_quietly(text)
    except DocumentError as error:
        return error.problems
    return ()


@FIXED
@given(st.text() | st.lists(st.sampled_from(TOKENS) | texts).map("".join))
@example("? \n- a")
def test_any_text_is_judged(text: str) -> None:
    check_error(text)


@FIXED
@given(
    json_values
    | st.dictionaries(st.sampled_from(["version", "resources", "tasks", "attributes"]), json_values)
)
def test_any_value_is_judged(value: object) -> None:
    check_error(dump_yaml(value))
    check_error(dump_json(value))


@FIXED
@given(spec=job_specs, as_json=st.booleans(), data=st.data())
def test_any_damaged_text_is_judged(spec: JobSpec, as_json: bool, data: st.DataObject) -> None:
    text = write_document(spec, as_json=as_json)
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 8))

    check_error(text[:start] + data.draw(st.sampled_from(TOKENS) | texts) + text[start + length :])


@FIXED
@given(spec=job_specs, data=st.data())
def test_any_damaged_value_is_judged(spec: JobSpec, data: st.DataObject) -> None:
    value = json.loads(write_document(spec, as_json=True))
    around, step = data.draw(st.sampled_from(list(steps(value))))
    if data.draw(st.booleans()):
        del around[step]
    else:
        around[step] = data.draw(
            json_values | st.floats() | st.sampled_from(["slot", "node", "core", 0, 10**400])
        )

    check_error(dump_yaml(value))


@FIXED
@given(spec=job_specs, data=st.data())
def test_any_spoilt_document_is_judged(spec: JobSpec, data: st.DataObject) -> None:
    check_error(dump_yaml(data.draw(corrupted_documents(json.loads(write_document(spec, as_json=True))))))


def steps(value: Any) -> Iterator[tuple[Any, str | int]]:
    """Yield each container inside a plain value with each of its keys or indices."""
    if isinstance(value, dict | list):
        for step in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, step
            yield from steps(value[step])
