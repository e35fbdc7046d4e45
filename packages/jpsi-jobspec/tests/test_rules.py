"""Invalid documents, one for each rule."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
import yaml

from jobspec_support import found, loaded
from jpsi_jobspec.document.loader import load
from jpsi_jobspec.document.problems import Findings, WorkflowError
from jpsi_jobspec.planning.site import Site

NODE = "{type: node, count: 1}"
HEAD = f"version: 1\nresources:\n  r: {NODE}\n"
#: A slot of two nodes, which no process can have.
THICK = "{type: slot, count: 1, with: [{type: node, count: 2}]}"
DEEP = "[" * 70 + "]" * 70
ALIASES = (
    "a: &a ["
    + ", ".join("x" * 1 for _ in range(99))
    + "]\n"
    + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [" + ", ".join([f"*{chr(97 + n)}"] * 99) + "]\n" for n in range(4)
    )
)


def one(task: str) -> str:
    """Return a document with one task, given the text in its braces."""
    return f"{HEAD}tasks:\n- {{{task}}}\n"


def group(*tasks: str, more: str = "") -> str:
    lines = "".join(f"  - {{{task}}}\n" for task in tasks)
    return f"{HEAD}groups:\n- name: g\n  resources: r\n{more}  tasks:\n{lines}"


def resource(text: str) -> str:
    return f"version: 1\nresources:\n  r: {text}\ntasks:\n- {{command: a, resources: r}}\n"


NAMELESS = "groups: [{name: '', resources: r, tasks: [{command: x}]}]\n"
# code, document, whether it is an error without strictness, line, and a part of the message
BROKEN = [
    ("JS000", "tasks:\n - a: 1\n  - b: 2\n", True, 3, "sibling item starts at column 2"),
    ("JS000", "a: \x07", True, 1, "U+0007"),
    ("JS000", "a: 'b", True, 1, "cannot be read as YAML: while scanning a quoted scalar"),
    ("JS000", '"\\UFFFFFFFF"', True, 1, "cannot be read as YAML: while parsing a quoted scalar"),
    ("JS000", "tasks:\n- command: echo a: b\n", True, 2, "put it in quotes"),
    ("JS000", "version:1\ntasks:\n- command: a\n", True, 2, "put a blank after"),
    ("JS000", "tasks:\n\t- command: a\n", True, 2, "blanks instead of tabs"),
    ("JS001", "just words", True, 1, "mapping with tasks or groups"),
    ("JS001", "[]", True, 1, "mapping with tasks or groups"),
    ("JS001", "version: 1\n", True, 1, "nothing to run"),
    ("JS001", "---\nversion: 1\n---\nversion: 1\n", True, 3, "second document"),
    ("JS001", "- {command: a}\n", False, 1, "list of tasks"),
    ("JS001", "version: 1\nresources: [r]\n", True, 2, "must be a mapping"),
    ("JS002", "tasks: [{command: a}]\n", False, 1, "version: 1"),
    ("JS002", "version: true\ntasks: [{command: a}]\n", True, 1, "is true"),
    ("JS002", "version: '1'\ntasks: [{command: a}]\n", True, 1, "is '1'"),
    ("JS002", "version: 2\ntasks: [{command: a}]\n", True, 1, "only one"),
    ("JS003", one("command: a, resources: r, resplicas: 2"), True, 5, "did you mean 'replicas'"),
    (
        "JS003",
        (
            "version: 1\nresources:\n  r: {scheduled: true, type: node, count: 1}\n"
            "tasks:\n- {command: a, resources: r}"
        ),
        False,
        3,
        "write 'schedule'",
    ),
    ("JS003", group("name: a, command: x", "dependson: [a], command: y"), False, 9, "write 'depends_on'"),
    ("JS003", one("command: a, resources: r, <<: {a: b}"), True, 5, "<<"),
    ("JS003", one("command: a, resources: r, environment: {A: b}"), False, 5, "beside attributes"),
    ("JS003", one("command: a, resources: r, watch: true"), True, 5, "move it into `attributes:`"),
    ("JS003", one("command: a, resources: r, durration: 1h"), True, 5, "'duration', in `attributes:`"),
    ("JS003", resource("{type: node, count: 1, cwd: /}"), True, 3, "move it into `attributes:`"),
    ("JS003", resource("{type: node, count: 1, with: [{type: core, count: 1, cwd: /}]}"), True, 3, "known"),
    ("JS004", "version: 1\nversion: 1\n", True, 2, "twice"),
    ("JS004", one("command: a, depends_on: [], dependson: []"), True, 5, "twice"),
    ("JS005", one("name: no, command: a, resources: r"), True, 5, "put it in quotes: 'no'"),
    ("JS005", one("command: [sleep, 1:30], resources: r"), True, 5, "'1:30'"),
    ("JS005", "version: 1\non: 1\n", True, 2, "put it in quotes: 'on'"),
    ("JS006", f"version: {DEEP}", True, 1, "levels deep"),
    ("JS006", ALIASES, True, 3, "aliases"),
    ("JS006", "a: &a [*a]", True, 1, "not complete"),
    ("JS010", one("name: a|b, command: a, resources: r"), True, 5, "begin with a letter"),
    ("JS010", "version: 1\nresources: {'a b': {type: node, count: 1}}\n", True, 2, "'a b'"),
    ("JS011", group("name: a, command: x", "name: a, command: y"), True, 9, "line 8"),
    (
        "JS012",
        f"{group('command: x')}- name: g\n  resources: r\n  tasks: [{{command: x}}]\n",
        True,
        9,
        "rename",
    ),
    ("JS012", f"{HEAD}groups: [{{resources: r, tasks: [{{command: a}}]}}]", True, 4, "has no name"),
    ("JS013", group("name: g-task-7, command: x"), True, 8, "which jpsi generates for tasks without one"),
    ("JS020", resource("{count: 1}"), True, 3, "add `type:`"),
    ("JS020", resource("4"), True, 3, "must be a mapping"),
    ("JS021", resource("{type: node, count: 1, replicas: 2}"), True, 3, "both"),
    ("JS021", resource("{type: node}"), True, 3, "neither"),
    ("JS021", resource("{type: node, count: 0}"), True, 3, "from 1 on"),
    ("JS021", resource("{type: node, count: true}"), True, 3, "from 1 on"),
    ("JS022", resource("{type: node, count: 1, with: []}"), True, 3, "list of resources"),
    ("JS022", resource("{type: node, count: 1, with: {type: core, count: 1}}"), False, 3, "put - before"),
    ("JS023", resource("{type: cores, count: 1}"), False, 3, "write 'core'"),
    ("JS023", resource("{type: nod, count: 1}"), True, 3, "did you mean 'node'"),
    (
        "JS025",
        resource("{type: node, replicas: 2, with: [{type: core, replicas: 2}]}"),
        True,
        3,
        "second slot",
    ),
    ("JS026", resource("{type: node, count: 2, with: [{type: node, count: 2}]}"), True, 3, "node in a node"),
    ("JS027", resource("{type: node, count: 1, with: [{type: memory}]}"), True, 3, "add `size"),
    ("JS027", resource("{type: node, count: 1, with: [{type: memory, size: much}]}"), True, 3, "16GB"),
    ("JS027", resource("{type: node, count: 1, with: [{type: memory, size: 4}]}"), True, 3, "too few"),
    (
        "JS027",
        resource(f"{{type: node, count: 1, with: [{{type: memory, size: {'9' * 400}GB}}]}}"),
        True,
        3,
        "16GB",
    ),
    ("JS030", one("command: a, resources: rr"), True, 5, "did you mean 'r'"),
    ("JS030", one("command: a, resources: r, requires: soft"), True, 5, "requirement 'soft'"),
    ("JS030", one("group: nowhere"), True, 5, "group 'nowhere'"),
    ("JS031", one("command: a, resources: 'r|'"), True, 5, "a name is missing"),
    ("JS031", one("command: a, resources: {}"), True, 5, "joined by"),
    (
        "JS005",
        one("command: a, resources: on"),
        True,
        5,
        "is on without quotes, which YAML takes for something else",
    ),
    (
        "JS032",
        (
            f"{HEAD}groups:\n- {{name: a, resources: r, tasks: [{{group: b}}]}}\n"
            f"- {{name: b, tasks: [{{group: a}}]}}\n"
        ),
        True,
        5,
        "a -> b -> a",
    ),
    (
        "JS033",
        (
            f"{HEAD}groups:\n- {{name: a, resources: r, tasks: [{{command: x}}]}}\n"
            f"tasks:\n- group: a\n- {{name: b, group: a}}\n"
        ),
        True,
        8,
        "again, after line 7",
    ),
    ("JS040", one("resources: r"), True, 5, "neither"),
    (
        "JS040",
        (
            f"{HEAD}groups: [{{name: g, resources: r, tasks: [{{command: a}}]}}]\n"
            f"tasks: [{{command: a, group: g}}]"
        ),
        True,
        5,
        "a command and a group",
    ),
    ("JS040", one("steps: [{name: stag, path: /tmp}]"), True, 5, "no step"),
    ("JS040", group("name: s, command: sleep infinity", "command: a"), False, 8, "service: true"),
    ("JS041", one("command: [], resources: r"), True, 5, "list of texts"),
    ("JS041", one("command: [sleep, 5], resources: r"), True, 5, "in quotes: '5'"),
    ("JS041", one("command: ' ', resources: r"), True, 5, "a text or a list of texts"),
    ("JS042", one("command: a, resources: r, replicas: 0"), True, 5, "from 1 on"),
    ("JS042", group("command: a, local: true, replicas: 2"), True, 8, "runs once"),
    ("JS043", one("command: a, local: true"), True, 5, "in no group"),
    ("JS044", one("command: a"), False, 5, "one slot"),
    ("JS044", f"{HEAD}groups: [{{name: g, tasks: [{{command: a}}]}}]", True, 4, "has no resources"),
    ("JS045", group("command: a, local: true, resources: r"), True, 8, "remove one"),
    (
        "JS050",
        group("name: build, command: x", "depends_on: [biuld], command: y"),
        True,
        9,
        "did you mean 'build'",
    ),
    (
        "JS051",
        group("name: a, command: x, depends_on: [b]", "name: b, command: x, depends_on: [a]"),
        True,
        8,
        "a -> b -> a",
    ),
    ("JS052", group("name: a, command: x, depends_on: [a]"), True, 8, "itself"),
    ("JS053", group("command: x", "command: y, depends_on: [g-task-1]"), True, 9, "give that task a name"),
    ("JS053", group("command: y, depends_on: [null]"), True, 8, "names nothing"),
    (
        "JS054",
        f"{group('name: inner, command: x')}tasks:\n- {{command: y, resources: r, depends_on: [inner]}}\n",
        True,
        10,
        "move it to the group",
    ),
    (
        "JS055",
        (
            f"{HEAD}tasks:\n- {{name: a, command: x, resources: r, replicas: 2}}\n"
            "- {command: y, resources: r, replicas: 2, depends_on: [{name: a, each: true}]}\n"
        ),
        True,
        6,
        "put both into a group",
    ),
    ("JS060", one("command: a, resources: r, attributes: {duration: soon}"), True, 5, "0 is no limit"),
    (
        "JS060",
        one("command: a, resources: r, attributes: {duration: P9999999999999D}"),
        True,
        5,
        "0 is no limit",
    ),
    ("JS060", one("command: a, resources: r, attributes: {duration: -1}"), True, 5, "must be a time"),
    ("JS061", one("command: a, resources: r, attributes: {cwd: here}"), True, 5, "absolute"),
    (
        "JS062",
        one("command: a, resources: r, attributes: {environment: {1A: b}}"),
        True,
        5,
        "name of a variable",
    ),
    ("JS062", one("command: a, resources: r, attributes: {environment: {A: [b]}}"), True, 5, "must be text"),
    (
        "JS063",
        group("command: a, attributes: {duration: 2h}", more="  attributes: {duration: 1h}\n"),
        True,
        9,
        "2:00:00",
    ),
    (
        "JS063",
        group("command: a, attributes: {duration: 0}", more="  attributes: {duration: 1h}\n"),
        True,
        9,
        "without limit",
    ),
    ("JS064", one("command: a, resources: r, attributes: {nice: 4}"), True, 5, "slurm.nice"),
    ("JS064", one("command: a, resources: r, attributes: {partition: b}"), True, 5, "write `queue_name`"),
    ("JS064", one("command: a, resources: r, attributes: {qeue_name: b}"), True, 5, "mean 'queue_name'"),
    ("JS064", one("command: a, resources: r, attributes: {memory_per_cpu: 1}"), True, 5, "of each core"),
    ("JS064", one("command: a, resources: r, attributes: {walltime: 10m}"), True, 5, "write `duration`"),
    ("JS064", one("command: a, resources: r, attributes: {memory: 2G}"), True, 5, "in the `with` of the"),
    ("JS064", one("command: a, resources: r, attributes: {duraton: 4}"), True, 5, "did you mean 'duration'"),
    ("JS064", one("command: a, resources: r, attributes: {enviroment: {}}"), True, 5, "'environment'"),
    ("JS064", one("command: a, resources: r, attributes: {jpsi.array: 1-4}"), True, 5, "write `replicas:`"),
    ("JS065", one("command: a, resources: r, attributes: {qos: 3}"), True, 5, "attributes.qos must be text"),
    (
        "JS065",
        one("command: a, resources: r") + "attributes:\n  retry:\n    timeout: 1\n    memroy: 1\n",
        True,
        9,
        "attributes.retry.memroy is none of",
    ),
    (
        "JS065",
        one("command: a, resources: r") + "attributes:\n  environment_setup:\n  - module:gcc\n  - conda\n",
        True,
        9,
        "attributes.environment_setup[1] must be module:NAME",
    ),
    (
        "JS065",
        one("command: a, resources: r, attributes: {container: {image: b, bind: []}}"),
        True,
        5,
        "mean 'binds'?",
    ),
    ("JS066", group("command: a", more="  attributes: {retry: {timeout: 1}}\n"), True, 5, "'retry'"),
    ("JS066", group("command: a, attributes: {queue_name: b}"), True, 8, "'queue_name' is for the job"),
    ("JS066", group("local: true, command: a, attributes: {qos: b}"), True, 8, "'qos' is for the job"),
    ("JS066", one("command: a, resources: r, replicas: 3, attributes: {warn: [USR1, 9]}"), True, 5, "'warn'"),
    (
        "JS070",
        (
            f"{HEAD}  big: {{type: node, count: 2}}\n"
            f"groups: [{{name: g, resources: r, tasks: [{{command: a, resources: big}}]}}]"
        ),
        True,
        5,
        "2 nodes of 1",
    ),
    (
        "JS071",
        (
            f"{HEAD}  s: {{type: node, count: 1, schedule: true}}\n"
            f"tasks: [{{command: a, resources: r}}, {{command: a, resources: s}}]"
        ),
        True,
        5,
        "schedule: true",
    ),
    (
        "JS072",
        (
            f"{HEAD}  s: {{type: node, count: 1, schedule: true}}\n"
            f"groups: [{{name: g, resources: r, tasks: [{{command: a}}]}}]"
        ),
        False,
        4,
        "no task or group at the top",
    ),
    (
        "JS040",
        f"{group('group: h, local: true')}- {{name: h, tasks: [{{command: a}}]}}\n",
        True,
        8,
        "is local and names a group",
    ),
    ("JS040", one("command: a, resources: r, ready: {file: /a}"), True, 5, "no service"),
    ("JS040", one("command: a, resources: r, service: true, ready: {tcp: '80'}"), True, 5, "host:port"),
    (
        "JS050",
        group("name: a, command: x", "command: y, depends_on: [a, {name: a, when: failed}]"),
        True,
        9,
        "'a' again",
    ),
    ("JS050", group("name: a, command: x", "command: y, depends_on: [a, a]"), False, 9, "'a' again"),
    (
        "JS050",
        group(
            "name: a, command: x, replicas: 2", "command: y, replicas: 3, depends_on: [{name: a, each: true}]"
        ),
        True,
        9,
        "2 replicas, and 3 wait",
    ),
    (
        "JS063",
        (
            f"{group('group: h', more='  attributes: {duration: 1h}' + chr(10))}"
            "- {name: h, tasks: [{command: a, attributes: {duration: 2h}}]}\n"
        ),
        True,
        10,
        "2:00:00",
    ),
    (
        "JS063",
        (
            f"{HEAD}  s: {{type: node, count: 1, attributes: {{duration: 2h}}}}\n"
            "groups: [{name: g, resources: r, attributes: {duration: 1h},"
            " tasks: [{command: a, resources: r|s}]}]"
        ),
        True,
        5,
        "2:00:00",
    ),
    (
        "JS070",
        (
            f"{HEAD}  big: {{type: node, count: 2}}\n"
            "groups: [{name: g, resources: r, tasks: [{group: h}]},"
            " {name: h, tasks: [{command: a, resources: r|big}]}]"
        ),
        False,
        5,
        "2 nodes of 1",
    ),
    (
        "JS070",
        (
            "version: 1\nresources:\n  r: {type: node, count: 1, with: [{type: memory, size: 1GB}]}\n"
            "  big: {type: node, count: 1, with: [{type: memory, size: 4GB}]}\n"
            "groups: [{name: g, resources: r, tasks: [{command: a, resources: big}]}]"
        ),
        True,
        5,
        "4 GiB of memory of 1 GiB",
    ),
    (
        "JS070",
        (
            "version: 1\nresources:\n  r: {type: core, replicas: 2}\n"
            "  big: {type: node, count: 3}\n"
            "groups: [{name: g, resources: r, tasks: [{command: a, resources: big}]}]"
        ),
        True,
        5,
        "3 slots of 2",
    ),
    (
        "JS071",
        f"{HEAD}  s: {{type: node, count: 1, schedule: true}}\ntasks: [{{command: a}}]",
        True,
        5,
        "no resources that are scheduled",
    ),
    ("JS071", resource("{type: node, count: 1, schedule: false}"), True, 5, "not to be scheduled"),
    (
        "JS080",
        resource("{type: node, count: 1, requires: [{name: a, field: b}]}"),
        True,
        3,
        "field and match",
    ),
    (
        "JS080",
        resource("{type: node, count: 1, requires: [{name: a, field: b, match: c, matcher: golb}]}"),
        True,
        3,
        "did you mean 'glob'",
    ),
    (
        "JS081",
        resource("{type: node, count: 1, requires: [{name: a, field: b, match: c}]}"),
        False,
        3,
        "nothing is known",
    ),
    ("JS082", resource("{type: node, count: 1, requires: {a: {b: c}}}"), False, 3, "write a list"),
    ("JS082", resource("{type: node, count: 1, requires: {a.b: c}}"), False, 3, "write a list"),
    (
        "JS082",
        resource("{type: node, count: 1, requires: {name: a, field: b, match: c}}"),
        False,
        3,
        "a list",
    ),
    ("JS080", resource("{type: node, count: 1, requires: {a: c}}"), True, 3, "`a: {field: match}`"),
    (
        "JS080",
        resource("{type: node, count: 1, requires: [{name: a, field: b, value: c}]}"),
        False,
        3,
        "call it match",
    ),
    (
        "JS090",
        f"{HEAD}  s: {THICK}\ntasks: [{{command: a, resources: s}}]",
        True,
        5,
        "several nodes, which no",
    ),
    (
        "JS011",
        f"{one('name: a, command: x, resources: r')}- {{name: a, command: x, resources: r}}\n{NAMELESS}",
        True,
        6,
        "has the name 'a'",
    ),
    ("JS040", f"{HEAD}groups: [{{name: g, resources: r, tasks: []}}]", True, 4, "has no tasks"),
    (
        "JS040",
        f"{group('group: h, steps: [{name: stage, path: /a}]')}- {{name: h, tasks: [{{command: a}}]}}\n",
        True,
        8,
        "steps and a group",
    ),
    ("JS040", one("steps: [{name: write, path: /tmp/a}]"), True, 5, "with content or without"),
    ("JS040", one("steps: [{path: /tmp/a}]"), True, 5, "needs a name and a path"),
    ("JS040", one("command: a, resources: r, service: true, ready: {}"), True, 5, "one of tcp, file and"),
    ("JS040", one("command: a, resources: r, when: sometimes"), True, 5, "on_success, on_failure, always"),
    ("JS041", one("command: [''], resources: r"), True, 5, "names no program"),
    ("JS012", f"{HEAD}groups: [g]", True, 4, "must be a mapping"),
    ("JS050", group("name: a, command: x", "command: y, depends_on: a"), False, 9, "write a list: [a]"),
    (
        "JS050",
        group("name: a, command: x", "command: y, depends_on: [{name: a, when: soon}]"),
        True,
        9,
        "one of ok, any, failed, started",
    ),
    ("JS053", group("command: y, depends_on: [{when: ok}]"), True, 8, "add `name:`"),
    (
        "JS054",
        f"{group('command: y, depends_on: [z]')}tasks:\n- {{name: z, command: x, resources: r}}\n",
        True,
        8,
        "is in the top",
    ),
    ("JS005", one("command: a, resources: r, service: yes"), False, 5, "write true or false"),
    ("JS005", one("command: [date, 0b_], resources: r"), True, 5, "in quotes"),
    (
        "JS003",
        f"{HEAD}parameters: {{n: [1]}}\ntasks: [{{command: a, resources: r}}]",
        True,
        4,
        "must be a value",
    ),
    (
        "JS003",
        f"{HEAD}parameters: {{n: {{type: integer}}}}\ntasks: [{{command: a, resources: r}}]",
        True,
        4,
        "--set n=...",
    ),
    (
        "JS003",
        f"{HEAD}parameters: {{n: {{type: integer, default: x}}}}\ntasks: [{{command: a, resources: r}}]",
        True,
        4,
        "must be an integer, not 'x'",
    ),
    ("JS001", f"{HEAD}parameters: [n]\ntasks: [{{command: a, resources: r}}]", True, 4, "`name: value`"),
    ("JS003", one("command: a, resources: r, ? [x] : y"), True, 5, "a key that is no text"),
    (
        "JS090",
        (
            f"{HEAD}  s: {{type: node, count: 1, with: [{{type: gpu, count: 2}}]}}\n"
            "tasks: [{command: a, resources: r&s}]"
        ),
        True,
        5,
        "its pieces differ, and a job has one kind of slot (unsupported_feature): 1 slot on 1 node; 1 slot",
    ),
]


@pytest.mark.clause(
    "ng-version",
    "ng-command",
    "ng-name",
    "ng-resources-named",
    "ng-schedule",
    "ng-without",
    "ng-subset",
    "ng-requires-form",
    "ng-duration-group",
)
@pytest.mark.parametrize(
    ("code", "text", "is_error", "line", "message"),
    BROKEN,
    ids=[f"{it[0]}-{n}" for n, it in enumerate(BROKEN)],
)
def test_a_broken_rule_is_reported_with_its_code_its_position_and_advice(
    code: str, text: str, is_error: bool, line: int, message: str
) -> None:
    problems = [it for it in found(text) if it.code == code]

    assert [(it.code, it.is_error, it.at.line) for it in problems][:1] == [(code, is_error, line)]
    assert message in str(problems[0])
    assert all(it.at.column > 0 and it.do for it in problems)
    assert str(problems[0]).startswith(f"flow.yaml:{line}:{problems[0].at.column}: {code}: ")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("JS003", one("command: a, resources: r, depend_on: [b]")),
        ("JS064", one("command: a, resources: r, attributes: {nice: 4}")),
    ],
)
def test_an_unknown_key_is_a_warning_only_where_the_user_means_it(code: str, text: str) -> None:
    for is_lenient in (False, True):
        findings = Findings("flow.yaml", is_lenient=is_lenient)
        with contextlib.suppress(WorkflowError):
            load(text, findings)

        assert [it.is_error for it in (*findings.errors, *findings.warnings) if it.code == code] == [
            not is_lenient
        ]


OTHER_DOCUMENTS = [
    ("resources: [{type: slot}]\ntasks: [{command: [a], slot: s, count: {total: 1}}]", "jpsi run -f"),
    ("command: [a]\nmounts: {}", "jpsi request run"),
]


@pytest.mark.parametrize(("text", "command"), OTHER_DOCUMENTS)
def test_a_document_of_another_language_names_the_command_that_takes_it(text: str, command: str) -> None:
    assert [str(it) for it in found(text)] == [
        f"flow.yaml:1:1: JS001: it is no workflow; `{command}` takes it"
    ]


@pytest.mark.parametrize("text", ["#!/bin/sh\n#SBATCH -n 4\nsrun hostname\n", "#!/bin/bash\nif a; then {\n"])
def test_a_script_is_no_workflow_and_the_message_says_how_to_run_it(text: str) -> None:
    (problem,) = map(str, found(text))

    assert problem == (
        "flow.yaml:1:1: JS001: it is a script, and no workflow; a task runs it by `command: ./NAME`; "
        "jpsi convert makes a job document of its directives"
    )


def test_a_workflow_may_be_a_program() -> None:
    begin = "#!/usr/bin/env -S jpsi workflow run\n"

    for it in (begin, "#!/opt/site/bin/flow\n"):
        assert load(it + one("command: a, resources: r"), Findings("flow.yaml")).tasks
    assert [it.code for it in found(begin + "tasks: [")] == ["JS000"]


@pytest.mark.clause("ng-version", "ng-without")
@pytest.mark.parametrize(
    ("code", "text"),
    [(it[0], it[1]) for it in BROKEN if not it[2]],
    ids=[f"{it[0]}-{n}" for n, it in enumerate(BROKEN) if not it[2]],
)
def test_warnings_are_errors_if_strict(code: str, text: str) -> None:
    assert [it.is_error for it in found(text, is_strict=True) if it.code == code][:1] == [True]


def test_unknown_requirements_are_errors_on_request() -> None:
    text = resource("{type: node, count: 1, requires: [{name: a, field: b, match: c}]}")

    assert [(it.code, it.is_error) for it in found(text, site=Site(is_missing_error=True))] == [
        ("JS081", True)
    ]


def test_every_code_has_a_document_that_breaks_its_rule() -> None:
    source = Path(__file__).parents[1] / "src/jpsi_jobspec"
    codes = {code for it in source.rglob("*.py") for code in re.findall(r'"(JS[0-9]{3})"', it.read_text())}
    # requirements: test_requirements; installed packages: test_nodes, test_workflow; targets: test_remote,
    # test_limits
    tested_in_other_files = {"JS091", "JS092", "JS093", "JS094", "JS095"}

    assert codes - tested_in_other_files == {it[0] for it in BROKEN}


def test_all_problems_are_reported_together() -> None:
    text = f"{HEAD}tasks:\n- {{command: [], resources: x}}\n- {{command: a, resources: r, replicas: 0}}\n"

    with pytest.raises(WorkflowError) as caught:
        loaded(text)

    assert [it.code for it in caught.value.errors] == ["JS041", "JS030", "JS042"]
    assert len(caught.value.problems) == 3


def test_an_error_hides_no_other_problem_and_causes_none() -> None:
    text = (
        "version: 1\nversion: 1\nresources:\n"
        "  r: {type: node, count: 1, schedule: true}\n"
        "  big: {type: node, count: 2}\n"
        "groups:\n- {name: g, resources: r, tasks: [{command: a, resources: big}]}\n"
        "- {name: h, resources: rr, tasks: [{command: a, resources: big}]}\n"
        "tasks:\n- {command: a, resources: rrr, attributes: {nice: 4}}\n- {command: a, local: true}\n"
    )

    assert [(it.at.line, it.code) for it in found(text)] == [
        (2, "JS004"),
        (7, "JS070"),
        (8, "JS030"),
        (10, "JS030"),
        (10, "JS064"),
        (11, "JS043"),
        (11, "JS071"),
    ]


def test_a_missing_group_hides_no_problem_of_top_level_tasks() -> None:
    text = f"{HEAD}groups: [{{name: g, tasks: [{{command: a}}]}}]\ntasks: [{{group: h}}, {{command: a}}]\n"

    assert [it.code for it in found(text)] == ["JS030", "JS044"]


@pytest.mark.parametrize(
    "text",
    ['- a\n- "\\UFFFFFFFF"', '- "\\U00110000"', f"%YAML {'1' * 5000}.1\n--- a"],
    ids=["an escape", "an escape beyond Unicode", "a version"],
)
def test_text_that_the_parser_in_python_does_not_expect_is_a_syntax_error(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """PyYAML may have been built without libyaml."""
    monkeypatch.setattr(yaml, "__with_libyaml__", False)

    (problem,) = found(text)

    says = "cannot be read as YAML: an escape or a version in it is out of range"
    assert (problem.code, problem.says, problem.do) == ("JS000", says, "correct that")


def test_nested_text_is_limited_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "__with_libyaml__", False)

    assert [it.code for it in found("[" * 3000 + "]" * 3000)] == ["JS006"]


def test_the_caret_is_below_the_misaligned_item() -> None:
    text = "tasks:\n  - a: 1\n   - b: 2\n"

    (problem,) = found(text)

    lines = str(problem).splitlines()
    assert lines[1] == "       - b: 2"
    assert lines[2].index("^") - 4 == problem.at.column - 1


@pytest.mark.parametrize("value", ["300", "300s", "5m", "PT5M", "0:05:00", "'5:00'", "5:00"])
def test_a_duration_may_have_several_forms(value: str) -> None:
    document, _ = loaded(one(f"command: a, resources: r, attributes: {{duration: {value}}}"))

    duration = document.tasks[0].attributes.duration
    assert duration is not None
    assert duration.total_seconds() == 300


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"m": "1"}, "has no 'm'; known are: n"),
        ({"n": "["}, "must be an integer, not '['"),
        ({"n": "a: b"}, "must be an integer, not 'a: b'"),
        ({"n": "1.5"}, "must be an integer, not '1.5'"),
    ],
    ids=str,
)
def test_a_parameter_value_must_be_of_a_known_parameter_and_of_its_type(
    given: dict[str, str], message: str
) -> None:
    text = f"{HEAD}parameters: {{n: 3}}\ntasks: [{{command: a, resources: r, replicas: '${{n}}'}}]"

    with pytest.raises(WorkflowError) as caught:
        load(text, Findings("flow.yaml"), given)

    assert [it.code for it in caught.value.errors][:1] == ["JS003"]
    assert message in str(caught.value.errors[0])


def test_a_top_level_group_with_a_reference_runs_once_at_the_reference() -> None:
    """JS034."""
    text = f"{HEAD}groups:\n- {{name: a, resources: r, tasks: [{{command: x}}]}}\ntasks:\n- group: a\n"

    document, warnings = loaded(text)

    assert (len(document.tasks), warnings) == (1, [])
