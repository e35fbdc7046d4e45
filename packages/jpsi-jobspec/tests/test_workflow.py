"""The output of `jpsi workflow`, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import jpsi
from jobspec_support import EXAMPLES, example, run_workflow
from jpsi import Launcher
from jpsi.plugin import install_command
from jpsi_testing.fake import FakeScheduler

Run = Callable[..., tuple[int, str, str]]
HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\ntasks:\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    # a batch system of this machine may have any queues, or not answer
    (tmp_path / "none").mkdir()
    for name in ("sinfo", "scontrol", "qstat", "bqueues", "flux"):
        (tmp_path / "none" / name).write_text("#!/bin/sh\nexit 127\n")
        (tmp_path / "none" / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path / 'none'}{os.pathsep}{os.environ['PATH']}")

    return run_workflow


def flow(text: str) -> str:
    Path("flow.yaml").write_text(text)
    return "flow.yaml"


def test_a_valid_document_is_reported_as_valid(run: Run) -> None:
    assert run("validate", flow(f"{HEAD}- {{command: a, resources: r}}\n")) == (
        0,
        "flow.yaml: nothing is wrong\n",
        "",
    )


def test_warnings_are_counted_and_are_errors_if_strict(run: Run) -> None:
    text = f"{HEAD}- {{command: a, resources: r, resplicas: 2}}\n"

    code, out, err = run("validate", "--lenient", flow(text))

    assert (code, out) == (0, "flow.yaml: 1 warning, no errors\n")
    assert "did you mean 'replicas'?" in err
    without_version = flow(text.replace("version: 1\n", ""))
    assert run("validate", "--lenient", without_version)[1] == "flow.yaml: 2 warnings, no errors\n"
    assert run("validate", flow(text))[:2] == (2, "")


def test_a_run_with_unknown_keys_goes_on(run: Run) -> None:
    file = flow(f"{HEAD}- {{name: a, command: [echo, hi], resources: r, resplicas: 2}}\n")

    assert run("run", file) == (2, "", UNKNOWN_KEY)
    assert run("run", "--lenient", file)[0] == 0
    assert run("status", file)[:2] == (0, "COMPLETED  a\n")


def test_a_task_with_exit_code_2_is_no_mistake_in_the_document(run: Run) -> None:
    code, _, err = run("run", flow(f"{HEAD}- {{name: a, command: [sh, -c, exit 2], resources: r}}\n"))

    assert code == 1
    assert re.fullmatch(r"a: FAILED: exit code 2 \(job [0-9a-f]{8}\)\n", err)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [("", "sub"), ("attributes: {cwd: '~'}\n", "HOME")],
    ids=["none", "of the document"],
)
def test_a_task_runs_in_the_directory_of_its_document(
    run: Run, tmp_path: Path, attributes: str, expected: str
) -> None:
    (tmp_path / "sub").mkdir()
    file = Path("sub/flow.yaml")
    text = f"{HEAD}- {{name: a, command: [sh, -c, pwd], resources: r}}\n{attributes}"
    file.write_text(text + "groups: [{name: g, resources: r, tasks: [{name: b, command: [sh, -c, pwd]}]}]\n")

    assert run("run", str(file))[0] == 0
    assert [run("logs", str(file), it)[1] for it in ("a", "g/b")] == [f"{tmp_path / expected}\n"] * 2


UNKNOWN_KEY = (
    "jpsi: flow.yaml:5:59: JS003: tasks[0].resplicas is an unknown key; did you mean 'replicas'?"
    " (--lenient ignores it)\n"
)


@pytest.mark.parametrize("command", ["validate", "plan", "graph", "render", "satisfy", "run"])
def test_warnings_are_printed_before_errors(command: str, run: Run) -> None:
    file = flow(f"{HEAD}- {{command: a, resources: x, resplicas: 2}}\n")
    code, out, err = run(command, "--lenient", file)

    assert (code, out) == (2, "")
    assert [word for word in err.split() if word.startswith("JS")] == ["JS003:", "JS030:"]
    assert [line.startswith("jpsi: warning: ") for line in err.splitlines()] == [True, False]


def test_each_problem_is_printed_on_a_line_with_its_position(run: Run) -> None:
    code, out, err = run("validate", flow(f"{HEAD}- {{command: [], resources: x}}\n"))

    assert (code, out) == (2, "")
    assert [line.split(": ")[1:3] for line in err.splitlines()] == [
        ["flow.yaml:5:13", "JS041"],
        ["flow.yaml:5:28", "JS030"],
    ]


def test_malformed_yaml_is_shown_with_a_caret_below_it(run: Run) -> None:
    _, _, err = run("validate", flow("tasks:\n- a: 1\n - b: 2\n"))

    line, source, caret, _ = err.splitlines()
    assert line.startswith("jpsi: flow.yaml:3:2: JS000: cannot be read as YAML: ")
    assert (source, caret) == ("     - b: 2", "     ^")


@pytest.mark.parametrize(("executor", "is_reported"), [("lokal", True), ("local", False), ("LOCAL", False)])
@pytest.mark.parametrize("command", ["plan", "graph"])
def test_an_unknown_executor_is_reported(command: str, executor: str, is_reported: bool, run: Run) -> None:
    code, out, err = run(command, "-x", executor, flow(f"{HEAD}- {{command: a, resources: r}}\n"))

    assert (code, bool(out)) == (0, True)
    expected = (
        "jpsi: warning: flow.yaml: JS095: it is planned for 'lokal', and no executor and no target has this"
        " name; did you mean 'local'?\n"
    )
    assert err == (expected if is_reported else "")


def test_problems_are_reported_as_json(run: Run) -> None:
    code, out, _ = run("validate", "--json", flow(f"{HEAD}- {{command: a, resorces: r}}\n"))

    (unknown, slot) = json.loads(out)
    assert code == 2
    assert (unknown["code"], unknown["is_error"], unknown["at"]["line"]) == ("JS003", True, 5) or slot


def test_warnings_are_reported_beside_errors(run: Run) -> None:
    file = flow(f"{HEAD}- {{command: a, resources: x, depend_on: [b]}}\n")

    _, out, err = run("validate", file)
    _, output, _ = run("validate", "--json", file)

    assert (out, "did you mean 'depends_on'?" in err, "JS030" in err) == ("", True, True)
    assert [it["code"] for it in json.loads(output)] == ["JS030", "JS003"]


def test_a_document_without_requirements_is_reported(run: Run) -> None:
    file = flow(f"{HEAD}- {{command: a, resources: r}}\n")

    assert run("satisfy", file)[:2] == (0, "flow.yaml: nothing is required\n")


def test_loose_forms_are_errors_if_strict(run: Run) -> None:
    file = flow(example("01-setup-and-run"))

    assert run("validate", file)[0] == 0
    assert run("validate", "--strict", file)[0] == 2


def test_a_plan_shows_resources_dependencies_and_reasons(run: Run) -> None:
    code, out, err = run("plan", "--explain", "-x", "slurm", str(EXAMPLES / "17-nested.yaml"))

    assert code == 0
    assert "JS002" in err
    assert "    generate-data: pool, 3 slots on 3 nodes, after machine-learning-task-1\n" in out
    assert "      because it ends the group, and runs whatever the outcome of the entries before it\n" in out


def test_a_plan_is_reported_as_json(run: Run) -> None:
    _, out, _ = run("plan", "--json", "-x", "slurm", str(EXAMPLES / "07-count.yaml"))

    (entry,) = json.loads(out)["entries"]
    assert entry["shape"] == {
        "node_count": 4,
        "processes_per_node": 1,
        "cpu_cores_per_process": 4,
        "exclusive_node_use": False,
    }


def test_a_drawing_that_cannot_be_written_is_a_mistake(run: Run) -> None:
    file = str(EXAMPLES / "06-mini-mummi-mended.yaml")

    code, out, err = run("graph", file, "-o", "missing/plan.svg")

    assert (code, out) == (2, "")
    assert err.endswith("jpsi: missing/plan.svg cannot be written: No such file or directory\n")


def test_a_plan_is_drawn(run: Run) -> None:
    assert run("graph", str(EXAMPLES / "06-mini-mummi-mended.yaml"), "-o", "plan.svg")[0] == 0

    drawing = ET.parse("plan.svg").getroot()
    assert len(drawing.findall(".//{*}rect")) == 6
    assert len(drawing.findall(".//{*}line")) == 6
    _, out, _ = run("graph", str(EXAMPLES / "06-mini-mummi-mended.yaml"))
    assert "   test [task x 20]  <- train, mini-mummi-task-1\n" in out


@pytest.mark.parametrize(
    ("system", "line"),
    [("slurm", "#SBATCH --nodes=4"), ("pbs", "#PBS -l select="), ("lsf", "#BSUB -n"), ("flux", "--nodes=4")],
)
def test_the_submit_script_has_the_directives_of_the_batch_system(
    system: str, line: str, run: Run, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands(system)

    code, out, _ = run("render", "-x", system, str(EXAMPLES / "07-count.yaml"))

    assert code == 0
    assert out.startswith("### task-1: allocation\n")
    assert line in out


def test_status_logs_and_a_repeated_run_report_the_run(run: Run) -> None:
    file = flow(
        f"{HEAD}- {{name: a, command: [echo, hello], resources: r}}\n"
        "- {name: b, command: [sh, -c, exit 3], resources: r}\n"
    )

    first = run("run", file)
    again = run("run", file)

    assert first[0] == again[0] == 3
    # without a terminal, only failures are reported
    job = json.loads(run("status", "--json", file)[1])[1]["job"][:8]
    failure = f"b: FAILED: exit code 3 (job {job})\n"
    assert first[2] == failure
    assert again[2] == (
        "jpsi: the last run of flow.yaml is over; --again begins a new one, in which all tasks run again,"
        f" and --failed one without those that completed\n{failure}"
    )
    assert run("status", file)[1].splitlines() == [
        "COMPLETED  a",
        f"FAILED     {'b':<30}  exit code 3 (job {job})",
    ]
    assert [it["exit_code"] for it in json.loads(run("status", "--json", file)[1])] == [0, 3]
    assert run("logs", file, "a")[1] == "hello\n"
    assert run("logs", file, "a.1")[1] == "hello\n"
    assert "a [job]  COMPLETED" in run("graph", "--states", file)[1]
    assert run("wait", file) == (3, "", failure)
    assert run("wait", file, "b") == (3, "", failure)
    assert run("wait", file, "a") == (0, "", "")
    assert run("cancel", file)[0] == 0


def test_a_changed_document_does_not_continue_its_run(run: Run) -> None:
    run("run", flow(f"{HEAD}- {{command: 'true', resources: r}}\n"))

    code, _, err = run("run", flow(f"{HEAD}- {{command: 'false', resources: r}}\n"))

    assert code == 2
    assert "--again begins a new one, in which all tasks run again" in err
    assert run("run", "--again", "flow.yaml")[0] == 1


def test_a_misspelt_executor_is_named_although_the_last_run_was_elsewhere(run: Run) -> None:
    file = flow(f"{HEAD}- {{command: 'true', resources: r}}\n")
    run("run", file)

    misspelt, other = run("run", "-x", "lokal", file), run("run", "-x", "slurm", file)

    assert (misspelt[0], "'lokal'" in misspelt[2]) == (2, True)
    assert "did you mean 'local'?" in misspelt[2]
    assert other[::2] == (2, f"jpsi: the last run of {file} is on local; --again begins a new run\n")


def test_parameters_are_options_of_the_run(run: Run) -> None:
    file = flow(
        f"parameters: {{who: default}}\n{HEAD}- {{name: a, command: ['echo', '${{who}}'], resources: r}}\n"
    )

    run("run", "--set", "who=me", file)

    assert run("logs", file, "a")[1] == "me\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "never.yaml"], "never.yaml was never run here, and does not exist"),
        (["plan", "nowhere.yaml"], "cannot be read: No such file"),
        (["plan", "--set", "x", "flow.yaml"], "'x' is not NAME=VALUE"),
        (["plan", "--set", "x=1", "flow.yaml"], "no parameter 'x'"),
        (["plan", "--subsystems", "nowhere", "flow.yaml"], "no directory with subsystems"),
        (["plan", "--strict", "--lenient", "flow.yaml"], "--strict and --lenient exclude each other"),
    ],
)
def test_a_usage_error_is_reported_in_a_sentence(arguments: list[str], message: str, run: Run) -> None:
    flow(f"{HEAD}- {{command: a, resources: r}}\n")

    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert message in err


def test_tasks_on_several_nodes_of_a_group_are_planned_with_a_warning_and_refused_by_a_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_jobspec.planning.usable_engines", lambda: frozenset({"dask"}))
    message = "JS092: groups[0] has tasks that need several of its nodes each, which mpirun does not start: "
    file = str(EXAMPLES / "06-mini-mummi-mended.yaml")

    planned, refused = run("plan", "-x", "pbs", file), run("run", "-x", "pbs", file)

    assert (planned[0], refused[0]) == (0, 2)
    assert message in planned[2]
    assert message in refused[2]
    assert "JS092" not in run("plan", "-x", "slurm", file)[2]


@pytest.mark.parametrize("missing", ["jpsi_pilot", "distributed", "srun"])
def test_one_extra_for_groups_of_several_nodes_is_named_in_a_sentence(
    missing: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(missing, monkeypatch)
    file = str(EXAMPLES / "17-nested.yaml")

    planned, refused = run("plan", "-x", "slurm", file), run("run", "-x", "slurm", file)

    message = (
        "JS092: groups[0] has 4 nodes, which its tasks can use only by jpsi-pilot, dask and jpsi-launchers; "
        f"try: {install_command('jpsi-jobspec[groups]')}"
    )
    assert (planned[0], refused[0]) == (0, 2)
    assert [it.partition("JS092")[2] for it in planned[2].splitlines() if "JS092" in it] == [message[5:]]
    assert [it.partition("JS092")[2] for it in refused[2].splitlines() if "JS092" in it] == [message[5:]]


def lacking(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate that packages, or a launcher, are not installed."""
    if name == "jpsi_pilot":
        monkeypatch.setitem(sys.modules, name, None)
    elif name == "srun":
        plain = Launcher.get_instance
        monkeypatch.setattr(
            Launcher, "get_instance", lambda it, *more: plain("none" if it == name else it, *more)
        )
    else:
        monkeypatch.setattr("jpsi_pilot.engines.find_spec", lambda it: None if it == name else it)


def test_missing_packages_are_reported_beside_other_problems(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_jobspec.planning.usable_engines", frozenset[str])
    file = flow(
        "version: 1\nresources:\n  two: {type: node, count: 2}\n  one: {type: node, count: 1}\n"
        "  thick: {type: slot, count: 1, with: [{type: node, count: 2}]}\n"
        "groups: [{name: g, resources: two, tasks: [{command: a, resources: one}]}]\n"
        "tasks: [{command: a, resources: thick}]\n"
    )

    code, _, err = run("run", "-x", "slurm", file)

    assert code == 2
    assert [word for word in err.split() if word.startswith("JS")] == ["JS092:", "JS090:"]


def test_tasks_inside_a_group_are_shown_with_their_output(run: Run) -> None:
    file = flow(
        "version: 1\nresources: {r: {type: core, count: 1}}\ngroups:\n- name: g\n  resources: r\n"
        "  tasks: [{name: a, command: [echo, inside]}]\n"
    )

    assert run("run", file)[0] == 0
    assert run("status", file)[1].splitlines() == ["COMPLETED  g", "COMPLETED  g/a"]
    assert run("logs", file, "g/a")[1] == "inside\n"
    assert "a [task]  COMPLETED" in run("graph", "--states", file)[1]


def test_requirements_are_evaluated_with_reasons(run: Run) -> None:
    Path("known").mkdir()
    nodes = {"0": {"metadata": {"type": "package", "attributes": {"name": "ior"}}}}
    Path("known/spack.json").write_text(json.dumps({"graph": {"nodes": nodes}}))
    file = str(EXAMPLES / "05-requires-mended.yaml")

    code, out, _ = run("satisfy", "--subsystems", "known", file)

    assert code == 0
    assert out.splitlines()[0] == "task build: unknown"
    assert run("satisfy", "--subsystems", "known", "--missing", "fail", file)[0] == 1


@pytest.mark.clause("ng-subsystems")
def test_subsystems_are_those_below_the_home_directory_of_the_user(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "HOME/.compspec/subsystems"
    folder.mkdir(parents=True)
    nodes = {"0": {"metadata": {"type": "package", "attributes": {"name": "lammps"}}}}
    (folder / "spack.json").write_text(json.dumps({"graph": {"nodes": nodes}}))

    _, out, _ = run("satisfy", str(EXAMPLES / "05-requires-mended.yaml"))

    assert out.splitlines()[0] == "task build: yes"


def test_a_workflow_survives_a_round_trip_through_jobspecs(run: Run) -> None:
    file = flow(f"{HEAD}- {{name: a, command: [echo, hi], resources: r}}\n")

    _, out, _ = run("convert", "--to-flux", file)
    Path("a.json").write_text(json.dumps(json.loads(out)["a"]))
    code, back, _ = run("convert", "--from-flux", "a.json")

    assert code == 0
    assert run("plan", flow(back))[1].splitlines()[1] == "  a: job, 1 slot anywhere, 1 core each"


def test_a_task_that_wrote_to_standard_error_only_has_logs_there(run: Run) -> None:
    file = flow(f"{HEAD}- {{name: a, command: [sh, -c, 'echo no >&2; exit 3'], resources: r}}\n")
    assert run("run", file)[0] == 3

    assert run("logs", file, "a")[1:] == (
        "",
        "jpsi: a has written nothing to standard output; --stderr shows standard error\n",
    )
    assert run("logs", "--stderr", file, "a")[1:] == ("no\n", "")


def test_unknown_keys_of_a_job_document_are_errors_unless_the_user_means_them(run: Run) -> None:
    text = jpsi.write_document(jpsi.JobSpec("a")).replace("  system:\n", "  system:\n    enviroment: {}\n")
    Path("job.yaml").write_text(text)

    refused, accepted = run("convert", "job.yaml"), run("convert", "--lenient", "job.yaml")

    unknown = "attributes.system.enviroment: is not known and has no effect; did you mean 'environment'?"
    assert (refused[0], accepted[0]) == (2, 0)
    assert all(unknown in err for _, _, err in (refused, accepted))


def test_a_submit_script_becomes_a_workflow_and_losses_are_listed(run: Run) -> None:
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH --time=30 --qos=high --comment=why -o out -n 1\n./solve\n")

    code, out, err = run("convert", "--from-script", "job.sh")

    assert code == 0
    assert "stdout_path has no place in a workflow" in err
    assert run("plan", flow(out))[1].splitlines()[1:] == ["  task: job, 1 slot anywhere, 1 core each"]
    assert "qos: high" in out
    assert "slurm.comment: why" in out
    assert "duration: 1800" in out


def test_a_submit_script_of_an_array_does_not_become_a_workflow(run: Run) -> None:
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH --array=1-4%2\n./solve $SLURM_ARRAY_TASK_ID\n")

    code, out, err = run("convert", "--from-script", "job.sh")

    assert (code, out) == (2, "")
    assert "it is an array, 1-4%2, which a workflow cannot have; jpsi convert makes" in err
