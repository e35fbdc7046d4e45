"""The layers of the configuration."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi.config import configuration, loader
from jpsi.config.fields import structured
from jpsi.config.file import read
from jpsi.config.settings import Section, SpecDefaults
from jpsi.contract.config import BatchConfig
from jpsi.model import JobAttributes
from jpsi.model.errors import ConfigError, DocumentError


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201  a function
    """Write the configuration of the site, the user, or the one that JPSI_CONFIG names."""

    def write(layer: str, text: str) -> Path:
        home = {"site": "site-config/jpsi", "user": "config/jpsi", "named": "named"}[layer]
        path = tmp_path / home / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if layer == "named":
            monkeypatch.setenv("JPSI_CONFIG", str(path))
        return path

    return write


def test_relative_paths_are_those_beside_the_file_and_stay_so(
    write,  # noqa: ANN001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = write(
        "named", "plugin_path: [plugins, ~/plugins]\nexecutors: {x: {config: {work_directory: work}}}\n"
    )
    monkeypatch.chdir(file.parent)
    monkeypatch.setenv("JPSI_CONFIG", file.name)

    settings = loader.load()
    monkeypatch.chdir(tmp_path)

    assert settings.plugin_path == [file.parent / "plugins", Path.home() / "plugins"]
    config = structured(BatchConfig, settings.executor(["x"]).config)
    assert isinstance(config, BatchConfig)
    assert config.work_directory == file.parent / "work"
    # readers of the values as they are in the file look in the same place
    assert configuration().executors["x"].config["work_directory"] == str(file.parent / "work")
    # this process finds the file in any directory, and its environment is as the user set it
    assert loader.files()[0] == file
    assert os.environ["JPSI_CONFIG"] == file.name


def test_without_files_the_configuration_is_empty() -> None:
    settings = loader.load()

    assert settings == loader.Settings()
    assert (settings.plugin_path, settings.default_executor) == ([], None)
    assert settings.target("x") is None
    assert settings.executor(["x"]) == Section()


def test_later_layers_win_key_by_key(write) -> None:  # noqa: ANN001
    write(
        "site",
        """
        default_executor: slurm
        executors:
          Slurm:
            version: "< 1"
            config: {shell: /bin/site, nested: {a: site, b: site}}
            defaults:
              duration: 1h
              queue_name: site
              custom_attributes: {slurm.qos: site, slurm.x: site}
        """,
    )
    write(
        "user",
        """
        executors:
          slurm:
            config: {shell: /bin/user, nested: {b: user}, kill_delay: 3}
            defaults:
              account: user
              custom_attributes: {slurm.qos: user}
        """,
    )
    write("named", "executors: {SLURM: {defaults: {queue_name: named}}}\n")

    settings = loader.load()
    section = settings.executor(["sluRM"])

    assert settings.default_executor == "slurm"
    assert section is not None
    assert section.version == "< 1"
    assert {name: value.raw for name, value in section.config.items()} == {
        "shell": "/bin/user",
        "nested": {"a": "site", "b": "user"},
        "kill_delay": 3,
    }
    assert section.defaults == SpecDefaults(
        attributes=JobAttributes(
            duration=timedelta(hours=1),
            queue_name="named",
            project_name="user",
            custom_attributes={"slurm.qos": "user", "slurm.x": "site"},
        )
    )


def test_plugin_path_is_joined_the_users_first(write, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN001
    monkeypatch.setenv("HOME", "/home/me")
    write("site", "plugin_path: [/site]\n")
    write("user", "plugin_path: [~/plugins, /user]\n")
    write("named", "plugin_path: [/named]\n")

    assert list(map(str, loader.load().plugin_path)) == ["/named", "/home/me/plugins", "/user", "/site"]


def test_target_may_be_written_in_parts(write) -> None:  # noqa: ANN001
    write("site", "targets: {Big: {executor: slurm, url: ssh://site}}\n")
    write("user", "targets: {big: {url: ssh://user, version: '>= 2'}}\n")

    target = loader.load().target("BIG")

    assert target is not None
    assert (target.executor, target.url, target.version) == ("slurm", "ssh://user", ">= 2")


def test_target_needs_an_executor(write) -> None:  # noqa: ANN001
    write("user", "targets: {big: {url: ssh://user}}\n")

    with pytest.raises(ConfigError, match="the target 'big' is configured without its executor"):
        loader.load().target("big")


def test_executor_may_be_configured_by_an_alias(write) -> None:  # noqa: ANN001
    write("user", "executors: {sge: {version: '1'}, gridengine: {version: '> 2'}}\n".replace("'1'", "'> 1'"))

    section = loader.load().executor(["sge", "gridengine"])

    assert section is not None
    assert section.version == "> 2"


def test_all_problems_of_all_files_are_reported_at_once(write) -> None:  # noqa: ANN001
    site = write(
        "site",
        "default_exector: local\n"
        "plugin_path: here\n"
        "executors:\n"
        "  slurm:\n"
        "    version: newest\n"
        "    defaults:\n"
        "      duration: soon\n"
        "      queue: x\n"
        "      account: a\n"
        "      project_name: b\n"
        "    url: ssh://x\n",
    )
    defaults = "{launcher: 1, environment_setup: [gcc]}"
    user = write("user", f"plugin_path: [1]\ntargets: []\nexecutors: {{x: {{defaults: {defaults}}}}}\n")

    with pytest.raises(ConfigError) as caught:
        loader.load()

    section = f"{site}:{{}}: executors.slurm.{{}}"
    expected = [
        f"{user}:1: plugin_path[0]: must be text, not 1; put it in quotes",
        f"{user}:2: targets: must be a mapping, not a list",
        f"{user}:3: executors.x.defaults.launcher: must be text, not 1; put it in quotes",
        f"{user}:3: executors.x.defaults.environment_setup[0]: must be {KINDS}, not 'gcc'",
        f"{site}:1: default_exector: is not known here; did you mean 'default_executor'?",
        f"{site}:2: plugin_path: must be a list, not 'here'",
        section.format(5, f"version: must be a version constraint {CONSTRAINTS}, not 'newest'"),
        section.format(7, f"defaults.duration: 'soon' is not a time {TIMES}"),
        section.format(8, "defaults.queue: is not known here; did you mean 'queue_name'?"),
        section.format(9, "defaults.account: is the same as project_name, which has another value here"),
        section.format(11, "url: is not known here"),
    ]
    assert str(caught.value) == "\n  - ".join(["the configuration is wrong:", *expected])


KINDS = "module:NAME, conda:NAME, venv:DIRECTORY, spack:SPEC or source:FILE"
CONSTRAINTS = "such as '>= 0.2' or '>= 0.2, < 1'"
TIMES = "such as 90 (seconds), 10m, 2h30m or 1:30:00"


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "executors:\n  slurm:\n    defaults:\ntargets:\n"])
def test_keys_without_a_value_are_ignored(write, text: str) -> None:  # noqa: ANN001
    write("user", text)

    assert loader.load().plugin_path == []


@pytest.mark.parametrize(
    ("text", "expected"), [("[", "cannot be read as YAML"), ("- a", "must be a mapping")]
)
def test_a_file_that_is_no_mapping_is_refused(write, text: str, expected: str) -> None:  # noqa: ANN001
    write("user", text)

    with pytest.raises(ConfigError, match=expected):
        loader.load()


def test_file_of_other_bytes_is_named(write) -> None:  # noqa: ANN001
    path = write("user", "")
    path.write_bytes(b"\xff")

    with pytest.raises(ConfigError, match=r"config\.yaml cannot be read: "):
        loader.load()


def test_a_named_file_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JPSI_CONFIG", str(tmp_path / "none"))

    with pytest.raises(ConfigError, match=r"JPSI_CONFIG names .*none, which is not a file"):
        loader.load()


@pytest.mark.parametrize("layer", ["site", "user", "named"])
def test_file_that_others_may_write_to_is_refused(write, layer: str) -> None:  # noqa: ANN001
    write(layer, "default_executor: x\n").chmod(0o666)

    with pytest.raises(ConfigError, match="can be written by others"):
        loader.load()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", timedelta(seconds=90)),
        ("1.5", timedelta(seconds=1.5)),
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(minutes=90)),
        ("'01:30:00'", timedelta(minutes=90)),
        ("0", timedelta()),
    ],
)
def test_duration(write, text: str, expected: timedelta) -> None:  # noqa: ANN001
    write("user", f"executors: {{x: {{defaults: {{duration: {text}}}}}}}\n")

    section = loader.load().executor(["x"])

    assert section is not None
    assert section.defaults.attributes.duration == expected


@pytest.mark.parametrize("text", ["-1", "true", ".inf", "1e300", "[1]", "'9999999999999h'"])
def test_a_value_that_is_no_duration_is_refused(write, text: str) -> None:  # noqa: ANN001
    write("user", f"executors: {{x: {{defaults: {{duration: {text}}}}}}}\n")

    with pytest.raises(ConfigError, match=r"executors\.x\.defaults\.duration: "):
        loader.load()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.1", "must be a version constraint in quotes, not 0.1; for this version alone: '== 0.1'"),
        ("2", "must be a version constraint in quotes, not 2; for this version alone: '== 2'"),
        ("'0.1'", f"must be a version constraint {CONSTRAINTS}, not '0.1'; for this version alone: '== 0.1'"),
        ("true", "must be text, not true; put it in quotes"),
    ],
)
def test_a_version_that_is_no_constraint_is_reported_with_a_valid_one(version: str, expected: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(f"executors:\n  kelp:\n    version: {version}\n", "config.yaml")

    assert caught.value.problems == (f"config.yaml:3: executors.kelp.version: {expected}",)
