from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jpsi
from jpsi_cli.main import cli
from jpsi_cli.options.job_options import RUN_PARAMETERS
from jpsi_cli.stored_jobs import Dependencies
from jpsi_cli.submission.job_spec import _FIELDS, Options, add_dependencies, make_spec
from jpsi_engine.job_store import MET

EVERYTHING: Options = {
    "name": "n",
    "dir": "/d",
    "create_dir": True,
    "env": ("A=1", "B=x=${A}", "C="),
    "setup": ("module:gcc/12", "venv:/v"),
    "no_inherit_env": True,
    "stdin": "in",
    "stdout": "out",
    "stderr": "err",
    "stage_in": ("a/b", "/c/d:e"),
    "stage_out": ("a/b", "c:file:///d"),
    "cleanup": ("e", "f/g"),
    "nodes": "2",
    "processes": "8",
    "processes_per_node": "4",
    "cores": "3",
    "gpus": "1",
    "memory": "4G",
    "exclusive": True,
    "time": "1:30:00",
    "t": "90",
    "queue": "q",
    "project": "p",
    "reservation": "r",
    "licenses": "matlab:2",
    "qos": "high",
    "gpu_type": "a100",
    "mail": "fail:ann@example.org",
    "warn": "SIGUSR1@1m30s",
    "container": "docker://debian:12",
    "bind": ("/a:/b:ro", "${HOME}"),
    "container_runtime": "podman",
    "retry": "oom=3,node=1,75=2",
    "grow": "memory=2,time=1.5",
    "launcher": "mpirun",
    "pre_launch": "pre",
    "post_launch": "post",
    "attribute": ("slurm.qos=debug", "pbs.x=a=b"),
}


def read(
    command: list[str], *, is_expanding: bool = False, **options: str | bool | tuple[str, ...]
) -> jpsi.JobSpec:
    return make_spec(None, command, options, is_expanding=is_expanding)


def test_every_option_has_a_field() -> None:
    spec = make_spec(None, ["run", "it"], EVERYTHING, is_expanding=False)

    assert spec == jpsi.JobSpec(
        "run",
        ["it"],
        name="n",
        directory=Path("/d"),
        create_directory=True,
        environment={"A": "1", "B": "x=${A}", "C": ""},
        environment_setup=["module:gcc/12", "venv:/v"],
        inherit_environment=False,
        stdin_path=Path("in"),
        stdout_path=Path("out"),
        stderr_path=Path("err"),
        stage_in=[jpsi.StageIn("a/b", Path("b")), jpsi.StageIn("/c/d", Path("e"))],
        stage_out=[jpsi.StageOut(Path("a/b"), "b"), jpsi.StageOut(Path("c"), "file:///d")],
        cleanup=[Path("e"), Path("f/g")],
        container=jpsi.Container("docker://debian:12", "podman", ["/a:/b:ro", "${HOME}"]),
        launcher="mpirun",
        pre_launch=Path("pre"),
        post_launch=Path("post"),
        resources=jpsi.ResourceSpecV1(
            node_count=2,
            process_count=8,
            processes_per_node=4,
            cpu_cores_per_process=3,
            gpu_cores_per_process=1,
            memory=4 * 2**30,
            exclusive_node_use=True,
        ),
        attributes=jpsi.JobAttributes(
            duration=timedelta(minutes=90),
            queue_name="q",
            project_name="p",
            reservation_id="r",
            licenses="matlab:2",
            qos="high",
            gpu_type="a100",
            mail="fail:ann@example.org",
            warn=("USR1", 90),
            retry={
                "out_of_memory": 3,
                "node_failure": 1,
                "75": 2,
                "grow_memory": 2.0,
                "grow_duration": 1.5,
            },
            custom_attributes={"slurm.qos": "debug", "pbs.x": "a=b"},
        ),
    )


def test_memory_replaces_that_of_a_document_however_it_is_given() -> None:
    document = jpsi.JobSpec("run", resources=jpsi.ResourceSpecV1(memory=1, process_count=2))

    spec = make_spec(document, [], {"mem_per_cpu": "1G"}, is_expanding=False)

    assert spec.resources == jpsi.ResourceSpecV1(process_count=2, memory_per_cpu=2**30)
    with pytest.raises(jpsi.InvalidJobException, match=r"--memory and --mem-per-gpu exclude each other"):
        read(["run"], memory="1G", mem_per_gpu="1G")


def test_a_kind_of_gpus_needs_gpus() -> None:
    with pytest.raises(jpsi.InvalidJobException, match=r"--gpu-type: the job requests no GPUs; --gpus is"):
        read(["run"], gpu_type="a100")


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("a/b/", "a/b/", "b"),
        ("a:b:c", "a:b", "c"),
        ("file:///a/b", "file:///a/b", "b"),
        ("file:///a/b:c/d", "file:///a/b", "c/d"),
        ("http://a/b", "http://a/b", "b"),
        ("http://a:80/b:c", "http://a:80/b", "c"),
    ],
)
def test_a_staged_in_source_may_be_a_url(text: str, source: str, target: str) -> None:
    assert read(["x"], stage_in=(text,)).stage_in == [jpsi.StageIn(source, Path(target))]


def test_a_staged_out_file_has_a_name() -> None:
    with pytest.raises(jpsi.InvalidJobException, match="':b' is not of the form NAME or NAME:FILE"):
        read(["x"], stage_out=("a", ":b"))


def test_staging_options_are_added_to_those_of_a_document() -> None:
    document = jpsi.JobSpec("a", stage_in=[jpsi.StageIn("a", Path("a"))], cleanup=[Path("b")])

    spec = make_spec(document, [], {"stage_in": ("c",), "cleanup": ("d",)}, is_expanding=False)

    assert [item.source for item in spec.stage_in or ()] == ["a", "c"]
    assert spec.cleanup == [Path("b"), Path("d")]


def test_every_option_is_parsed() -> None:
    options = [it for it in RUN_PARAMETERS if isinstance(it, click.Option)]
    # a hidden one is refused
    typed = {option.name for option in options if not option.hidden}

    assert typed - {"executor", "file", "after", "expand", "lenient", "as_json", "like"} == set(_FIELDS)
    # only one of the sizes can be given
    assert set(_FIELDS) - set(EVERYTHING) == {"mem_per_cpu", "mem_per_gpu"}


def test_missing_options_leave_a_document_unchanged() -> None:
    document = jpsi.JobSpec("a", ["b"], name="n", create_directory=True, inherit_environment=False)
    nothing: Options = {name: () if isinstance(value, tuple) else None for name, value in EVERYTHING.items()}

    spec = make_spec(document, [], {**nothing, "create_dir": False, "exclusive": False}, is_expanding=False)

    assert spec == jpsi.JobSpec("a", ["b"], name="n", create_directory=True, inherit_environment=False)


def test_options_override_fields_of_a_document() -> None:
    document = jpsi.JobSpec(
        "a",
        name="n",
        environment={"A": "1", "B": None},
        resources=jpsi.ResourceSpecV1(process_count=2, cpu_cores_per_process=3),
        attributes=jpsi.JobAttributes(
            queue_name="q", project_name="p", custom_attributes={"x.y": 1, "x.z": 2}
        ),
    )

    options: Options = {"env": ("B=2",), "cores": "5", "queue": "r", "attribute": ("x.z=3",)}
    spec = make_spec(document, [], options, is_expanding=False)

    assert spec == jpsi.JobSpec(
        "a",
        name="n",
        environment={"A": "1", "B": "2"},
        resources=jpsi.ResourceSpecV1(process_count=2, cpu_cores_per_process=5),
        attributes=jpsi.JobAttributes(
            queue_name="r", project_name="p", custom_attributes={"x.y": 1, "x.z": "3"}
        ),
    )


def test_custom_attributes_have_a_value_or_none() -> None:
    options = ("slurm.requeue", "slurm.qos=a=b", "pbs.l.mem=", "script.path=/a b")

    spec = read(["x"], attribute=options)

    assert spec.attributes is not None
    assert spec.attributes.custom_attributes == {
        "slurm.requeue": True,
        "slurm.qos": "a=b",
        "pbs.l.mem": "",
        "script.path": "/a b",
    }


@pytest.mark.parametrize("text", ["qos", "qos=debug", "=x", ".qos=x", "slurm.", "slurm.=x", "qos=a.b"])
def test_a_custom_attribute_of_no_system_is_refused(text: str) -> None:
    with pytest.raises(
        jpsi.InvalidJobException, match=r"is not of the form SYSTEM.NAME or SYSTEM.NAME=VALUE"
    ):
        read(["x"], attribute=(text,))


def test_a_relative_directory_is_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert read(["x"], dir="a/b").directory == tmp_path / "a/b"
    assert read(["x"], dir="~/a").directory == Path("~/a")


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(jpsi.InvalidJobException) as raised:
        read(["x"], memory="many", time="long", name="", env=("A", "=1", "B=2"), stdin="-", nodes="0")

    assert [problem.partition(":")[0] for problem in raised.value.problems] == [
        "--memory",
        "--time",
        "--name",
        "--env",
        "--stdin",
        "--nodes",
    ]
    assert "'A', '=1' are not of the form NAME=VALUE" in str(raised.value)


@pytest.mark.parametrize("text", ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_a_job_does_not_read_the_input_of_the_command(text: str) -> None:
    with pytest.raises(jpsi.InvalidJobException, match=f"--stdin: '{text}' is not supported; name a file"):
        read(["x"], stdin=text)


@given(st.lists(st.text()))
def test_arguments_are_escaped_unless_they_are_to_be_expanded(arguments: list[str]) -> None:
    assert read(["x", *arguments]).arguments == [jpsi.escape(argument) for argument in arguments]
    assert read(["x", *arguments], is_expanding=True).arguments == arguments


def test_shells_complete_every_executor_option() -> None:
    naming = {
        name: [it for it in command.params if it.name == "executor"] for name, command in cli.commands.items()
    }
    context = click.Context(cli)

    assert {"run", "ls", "attach", "queues", "doctor", "convert"} <= {
        name for name, it in naming.items() if it
    }
    for name, parameters in naming.items():
        for parameter in parameters:
            assert "local" in [it.value for it in parameter.shell_complete(context, "lo")], name


@pytest.mark.parametrize(
    "arguments",
    [["ls"], ["queues"], ["doctor"], ["attach", "1"], ["convert"], ["validate", "-f", "a"]],
    ids=" ".join,
)
def test_an_executor_without_a_name_is_a_mistake(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError, match="--executor needs a value"):
        cli.main([*arguments, "-x", ""], standalone_mode=False)


@pytest.mark.parametrize(("name", "value"), [("nodes", "2"), ("exclusive", True)])
def test_slots_of_several_kinds_are_changed_in_their_document(name: str, value: str | bool) -> None:
    kinds = jpsi.HeterogeneousResources([jpsi.ResourceSpecV1(), jpsi.ResourceSpecV1()])

    message = f"--{name}: the document requests slots of several kinds"
    with pytest.raises(jpsi.InvalidJobException, match=message):
        make_spec(jpsi.JobSpec("a", resources=kinds), [], {name: value}, is_expanding=False)


def test_a_request_has_no_dependencies_once_all_have_ended() -> None:
    job = jpsi.Job(jpsi.JobSpec("true", attributes=jpsi.JobAttributes(after=["4711"])))

    add_dependencies(job, Dependencies(met=["ok:first"]))

    assert job.spec is not None
    assert (job.spec.attributes.after, job.spec.attributes.custom_attributes) == (None, {MET: "ok:first"})
