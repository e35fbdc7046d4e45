from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
import pytest

from jpsi import Plugin
from jpsi.registry.candidate import GROUPS
from jpsi.registry.candidate import kind as kind_of
from jpsi_cli.installation.plugins import kinds_to_load, list_of_kind, unusable_names
from jpsi_cli.options.job_options import PLUGIN_PARAMETERS
from jpsi_testing import PluginDirectory

if TYPE_CHECKING:
    from conftest import Started

Run = Callable[..., subprocess.CompletedProcess[bytes]]
HOOK = "from jpsi.plugin import hookimpl\n\n@hookimpl\ndef make_engine():\n    return None\n\n"


@pytest.fixture
def directory(tmp_path: Path, environment: dict[str, str]) -> PluginDirectory:
    """Return a directory on the plugin path."""
    path = tmp_path / "plugins"
    environment["JPSI_PLUGIN_PATH"] = str(path)
    return PluginDirectory(path)


def add(directory: PluginDirectory, name: str, source: str = "", version: str = "1.0") -> None:
    """Install an executor with the name of its distribution."""
    module = f"{name}_{version.replace('.', '_')}"
    groups = {"jpsi.executors": {name: module}}
    directory.add(name, version, entry_points=groups, files={f"{module}.py": source})


def rows(output: bytes) -> dict[str, list[str]]:
    """Return the cells of a table by the name in each row."""
    found = [re.split(r"  +", line) for line in output.decode().splitlines()]
    return {cells[1]: cells for cells in found}


def test_bundled_plugins_are_shown_and_work(run: Run) -> None:
    result = run("plugins")

    table = rows(result.stdout)
    assert (result.returncode, result.stderr) == (0, b"")
    assert table["NAME"] == ["KIND", "NAME", "VERSION", "CHOSEN", "DISTRIBUTION", "ORIGIN", "WHY"]
    assert table["local"][0::3] == ["executor", "yes"]
    assert table["single"][4:] == ["jpsi-engine", "environment"]


@pytest.mark.parametrize(
    ("kind", "has_kit", "kinds"),
    [
        (None, True, ["executor", "fake"]),
        (None, False, ["executor"]),
        ("fake", False, ["fake"]),
        ("executor", False, ["executor"]),
    ],
)
def test_fakes_are_listed_where_the_test_kit_is_installed(
    kind: str | None, has_kit: bool, kinds: list[str]
) -> None:
    plugins = [plugin(), plugin("fake", load_error="No module named 'jpsi_testing'")]

    assert [it.kind for it in list_of_kind(plugins, kind, has_kit=has_kit)] == kinds


@pytest.mark.parametrize(
    ("name", "kind", "is_loaded"),
    [(None, None, False), ("slurm", None, True), (None, "fake", True), ("slurm", "executor", False)],
)
def test_fakes_are_loaded_only_if_they_are_requested(
    name: str | None, kind: str | None, is_loaded: bool
) -> None:
    assert ("fake" in kinds_to_load(name, kind)) == is_loaded


def test_a_requested_kind_is_loaded_alone() -> None:
    assert kinds_to_load(None, "launcher") == ["launcher"]


BROKEN = {
    "hooks": ("x = 1\n", "it implements no hook"),
    "syntax": ("def toy(:\n", "SyntaxError"),
    "dependency": ("import no_such_module\n", "No module named 'no_such_module'"),
    "exit": ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    "exception": ("1 // 0\n", "ZeroDivisionError"),
}


@pytest.mark.parametrize(("source", "why"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_is_explained_and_affects_no_other(
    run: Run, directory: PluginDirectory, source: str, why: str
) -> None:
    add(directory, "bad", source)

    result = run("plugins")

    table = rows(result.stdout)
    assert (result.returncode, result.stderr) == (1, b"")
    assert table["bad"][3] == "broken"
    assert why in table["bad"][6]
    assert table["local"][3] == "yes"


def test_a_broken_plugin_is_not_mentioned_for_another_name(run: Run, directory: PluginDirectory) -> None:
    add(directory, "bad", "1 // 0\n")

    result = run("plugins", "LOCAL")

    assert result.returncode == 0
    assert list(rows(result.stdout)) == ["NAME", "local"]


def test_of_two_versions_one_is_chosen_and_the_reason_is_shown(
    run: Run, directory: PluginDirectory, environment: dict[str, str], tmp_path: Path
) -> None:
    add(directory, "toy", version="0.2")
    add(PluginDirectory(tmp_path / "more"), "toy", version="0.3")
    environment["JPSI_PLUGIN_PATH"] += f"{os.pathsep}{tmp_path}/more"

    found = json.loads(run("plugins", "toy", "--kind", "executor", "--json").stdout)

    assert [(it["version"], it["chosen"], it["why_not"]) for it in found] == [
        ("0.2", False, "0.3 is higher"),
        ("0.3", True, None),
    ]
    assert [it["origin"] for it in found] == [f"{tmp_path}/plugins", f"{tmp_path}/more"]


def test_a_refused_directory_is_explained(run: Run, directory: PluginDirectory) -> None:
    add(directory, "toy", "1 // 0\n")
    directory.path.chmod(0o777)

    result = run("plugins", "--kind", "executor")

    *_, why = rows(result.stdout)["toy"]
    assert result.returncode == 1
    assert why.startswith(f"{directory.path} can be written by others")


def test_json_has_the_documented_keys(run: Run, directory: PluginDirectory) -> None:
    directory.add("toy", "1.5", entry_points={"jpsi.fakes": {"some": "nosuch", "other": "nosuch"}})

    result = run("plugins", "--json", "some", "--kind", "fake")

    (found,) = json.loads(result.stdout)
    assert result.returncode == 1
    assert "nosuch" in found.pop("load_error")
    assert found == {
        "kind": "fake",
        "name": "some",
        "aliases": ["other"],
        "version": "1.5",
        "distribution": "toy",
        "origin": str(directory.path),
        "chosen": True,
        "why_not": None,
    }


def test_the_readme_documents_every_key_of_json(run: Run) -> None:
    readme = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")

    (found,) = json.loads(run("plugins", "--json", "single").stdout)

    assert [key for key in found if f"`{key}`" not in readme] == []
    assert set(found) == {field.name for field in attrs.fields(Plugin)}


def test_the_output_contains_no_text_printed_by_plugins(run: Run, directory: PluginDirectory) -> None:
    add(directory, "loud", HOOK + "import os\nprint('a', flush=False)\nos.system('echo b')\n")

    result = run("plugins", "loud", "--json")

    assert result.returncode == 0
    assert [it["name"] for it in json.loads(result.stdout)] == ["loud"]
    assert sorted(result.stderr.split()) == [b"a", b"b"]


def test_an_override_of_one_file_is_shown_and_breaks_the_layer_below(
    run: Run, directory: PluginDirectory, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["XDG_CONFIG_HOME"] = str(tmp_path / "settings")
    path = tmp_path / "settings/jpsi/overrides/near.py"
    path.parent.mkdir(parents=True)
    path.write_text("1 // 0\n")
    add(directory, "near", HOOK)

    result = run("plugins", "near")

    _, executor, override = [re.split(r"  +", line) for line in result.stdout.decode().splitlines()]
    assert result.returncode == 1
    assert override[:6] == ["override", "near", "-", "broken", "-", str(path)]
    assert (executor[3], executor[6]) == ("broken", override[6])
    assert run("plugins", "local").returncode == 0


def test_no_load_runs_no_code_of_plugins(run: Run, directory: PluginDirectory, tmp_path: Path) -> None:
    add(directory, "bad", f"open({str(tmp_path / 'it-ran')!r}, 'w')\n1 // 0\n")

    result = run("plugins", "--no-load")

    assert result.returncode == 0
    assert rows(result.stdout)["bad"][3] == "yes"
    assert not (tmp_path / "it-ran").exists()


NOTHING = {
    "name": (["nosuch"], 1, b"jpsi: no plugin 'nosuch'; installed: "),
    "name of another kind": (["single", "--kind", "executor"], 1, b"jpsi: no executor 'single'; installed: "),
    "kind": (["--kind", "observer"], 0, b"jpsi: no observer is installed"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), NOTHING.values(), ids=NOTHING)
def test_no_matching_plugin_is_a_message(run: Run, arguments: list[str], code: int, message: bytes) -> None:
    result = run("plugins", *arguments)

    assert (result.returncode, result.stdout) == (code, b"")
    assert result.stderr.startswith(message)
    assert json.loads(run("plugins", "--json", *arguments).stdout) == []


def test_every_kind_can_be_selected() -> None:
    (choice,) = [it.type for it in PLUGIN_PARAMETERS if isinstance(it.type, click.Choice)]

    assert sorted(choice.choices) == sorted(map(kind_of, GROUPS))


def test_a_wrong_configuration_is_reported_in_a_sentence(run: Run, environment: dict[str, str]) -> None:
    environment["JPSI_CONFIG"] = "nosuch.yaml"

    result = run("plugins")

    assert (result.returncode, result.stdout) == (125, b"")
    assert result.stderr == b"jpsi: JPSI_CONFIG names nosuch.yaml, which is not a file\n"


def test_a_pipe_gets_whole_lines_and_no_colours(run: Run, directory: PluginDirectory) -> None:
    add(directory, "bad", f"raise ValueError({'long ' * 100!r})\n")

    output = run("plugins").stdout

    assert b"long " * 99 in output
    assert b"\x1b" not in output


def test_a_terminal_gets_colours_and_lines_that_fit(
    start_on_terminal: Callable[..., Started], directory: PluginDirectory, environment: dict[str, str]
) -> None:
    add(directory, "bad", "1 // 0\n")
    environment["COLUMNS"] = "60"

    code, output, _ = start_on_terminal("plugins", "bad").end()

    lines = re.sub(rb"\x1b\[[0-9;]*m", b"", output).decode().splitlines()
    assert code == 1
    assert b"\x1b[31mbroken\x1b[0m" in output
    assert "    why: the executor 'bad' of bad 1.0 in" in lines
    assert [line for line in lines if len(line) > 60 and str(directory.path) not in line] == []


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_switched_off(
    start_on_terminal: Callable[..., Started], environment: dict[str, str], name: str, value: str
) -> None:
    environment[name] = value

    code, output, _ = start_on_terminal("plugins").end()

    assert code == 0
    assert b"\x1b" not in output


CLOSED = {
    "full": (">/dev/full", b"jpsi: standard output cannot be written to: No space left on device\n"),
    "closed": (">&-", b"jpsi: standard output cannot be written to: Bad file descriptor\n"),
}


@pytest.mark.parametrize(("redirection", "message"), CLOSED.values(), ids=CLOSED)
def test_output_that_cannot_be_written_is_a_failure(
    start: Callable[..., Started], redirection: str, message: bytes
) -> None:
    started = start("plugins", prefix=("sh", "-c", f'exec "$@" {redirection}', "sh"))

    assert started.end() == (125, b"", message)


def test_output_into_a_closed_pipe_is_quiet(run: Run) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    result = run("plugins", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)

    assert (result.returncode, result.stderr) == (141, b"")


def plugin(kind: str = "executor", distribution: str = "toy", **changes: Any) -> Plugin:
    works: dict[str, Any] = {
        "chosen": True,
        "why_not": None,
        "load_error": None,
        "name": "toy",
        "origin": "environment",
    }
    return Plugin(
        kind=kind,
        aliases=(),
        version="1",
        distribution=distribution,
        **{**works, **changes},
    )


UNUSABLE = {
    "all work": ([plugin(), plugin("launcher")], set()),
    "an older one is not chosen": ([plugin(), plugin(chosen=False)], set()),
    "an older one is broken": ([plugin(), plugin(chosen=False, load_error="x")], set()),
    "the chosen one is broken": ([plugin(load_error="x"), plugin(chosen=False)], {("executor", "toy")}),
    "none is chosen": ([plugin(chosen=False), plugin(name="TOY", chosen=False)], {("executor", "toy")}),
    "a policy is refused beside another": (
        [plugin("override"), plugin("override", "rules", chosen=False)],
        {("override", "toy", "rules")},
    ),
    "a file is broken beside another of its name": (
        [plugin("override", "-"), plugin("override", "-", origin="/a/toy.py", load_error="x")],
        {("override", "toy", "/a/toy.py")},
    ),
}


@pytest.mark.parametrize(("plugins", "names"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_name_without_a_working_plugin_is_unusable(
    plugins: list[Plugin], names: set[tuple[str, ...]]
) -> None:
    assert unusable_names(plugins) == names
