"""The list of all plugins, and whether each is used."""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi
from distributions import lay
from jpsi.layers.listing import listing
from jpsi.layers.stack import BATCH_HOOKS
from jpsi.registry.discovery import Plugins, installed


def module_with_hooks(*hooks: str) -> str:
    """Return the text of a module that implements these hooks."""
    functions = (f"@hookimpl\ndef {hook}():\n    ...\n" for hook in hooks)
    return "from jpsi.plugin import hookimpl\n" + "".join(functions)


def write(folder: Path, name: str, text: str) -> Path:
    """Write an override file into a configuration folder."""
    path = folder / "overrides" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_list_has_all_known_facts(tmp_path: Path) -> None:
    lay(tmp_path / "a", "toy", "1", executors={"toy": "x", "game": "x"}, launchers={"go": "x"})
    lay(tmp_path / "b", "toy", "2", executors={"toy": "x"}, overrides={"all": "x"}, observers={"any": "x"})
    lay(tmp_path / "b", "other", "2", executors={"toy": "x"})
    lay(tmp_path / "b", "broken", "?", transports={"ssh": "x"}, fakes={"toy": "x"})

    found = installed([tmp_path / "a", tmp_path / "b"])
    listed_plugins = [it for it in listing(found, {"game": "> 1"}) if it.origin != "environment"]

    assert sorted((it.kind, it.name, it.aliases, it.version, it.distribution) for it in listed_plugins) == [
        ("executor", "game", ("toy",), "1", "toy"),
        ("executor", "toy", (), "2", "other"),
        ("executor", "toy", (), "2", "toy"),
        ("executor", "toy", ("game",), "1", "toy"),
        ("fake", "toy", (), "?", "broken"),
        ("launcher", "go", (), "1", "toy"),
        ("observer", "any", (), "2", "toy"),
        ("override", "all", (), "2", "toy"),
        ("transport", "ssh", (), "?", "broken"),
    ]
    why_not = {(it.name, it.version, it.distribution, it.kind): it.why_not for it in listed_plugins}
    conflict = f"the executor 'toy' 2 is offered by other and toy in {tmp_path}/b; uninstall one of them"
    assert why_not["game", "1", "toy", "executor"] == "its version is not > 1"
    assert why_not["toy", "1", "toy", "executor"] == "2 is higher"
    assert why_not["toy", "2", "toy", "executor"] == conflict
    assert why_not["go", "1", "toy", "launcher"] is None
    assert "PEP 440" in (why_not["ssh", "?", "broken", "transport"] or "")
    assert all(it.chosen is (it.why_not is None) and it.load_error is None for it in listed_plugins)


def test_older_override_of_a_distribution_is_superseded(tmp_path: Path) -> None:
    for place, version in (("a", "1"), ("b", "2")):
        lay(tmp_path / place, "policy", version, overrides={"all": "x"})

    listed_plugins = listing(Plugins(installed([tmp_path / "a", tmp_path / "b"]).candidates[-2:]), {})

    assert [it.why_not for it in listed_plugins] == ["2 is higher", None]


@pytest.mark.parametrize("group", ["overrides", "observers"])
def test_an_invalid_version_is_the_reason(tmp_path: Path, group: str) -> None:
    lay(tmp_path, "policy", "newest", **{group: {"all": "x"}})

    (it,) = [it for it in listing(installed([tmp_path]), {}) if it.origin == str(tmp_path)]

    assert it.why_not == "its version 'newest' is not valid by PEP 440"


def test_load_errors_are_listed_on_request(tmp_path: Path) -> None:
    lay(tmp_path, executors={"toy": "no_such_module"})
    found = installed([tmp_path])

    (it,) = [it for it in listing(found, {}, load=True) if it.origin == str(tmp_path)]

    assert "no_such_module" in (it.load_error or "")


HOOKLESS = "it implements no hook"
NO_LAUNCH = "it lacks the hook launch"
WRAPPER = "from jpsi.plugin import hookimpl\n@hookimpl(wrapper=True)\ndef cancel():\n    return 1\n"
UNUSABLE = {
    "executor without hooks": ("executors", "x = 1\n", HOOKLESS),
    "executor that lacks some": ("executors", module_with_hooks("cancel"), "parse_status, or make_engine"),
    "launcher without hooks": ("launchers", "x = 1\n", HOOKLESS),
    "launcher that only checks": ("launchers", module_with_hooks("check_spec"), NO_LAUNCH),
    "transport without hooks": ("transports", "x = 1\n", HOOKLESS),
    "transport with a typing error": (
        "transports",
        module_with_hooks("open_transpot"),
        "did you mean 'open_tra",
    ),
    "override without hooks": ("overrides", "x = 1\n", HOOKLESS),
    "override with a typing error": ("overrides", module_with_hooks("sumbit"), "did you mean 'submit'"),
    "override with a wrapper that is none": ("overrides", WRAPPER, "cancel has wrapper=True, but no `yield`"),
    "executor with a wrapper that is none": ("executors", WRAPPER, "cancel has wrapper=True, but no `yield`"),
    "observer without hooks": ("observers", "x = 1\n", HOOKLESS),
    "observer that only checks": (
        "observers",
        module_with_hooks("check_spec"),
        "lacks the hook status_changed",
    ),
    "fake without commands": ("fakes", "def unreachable(command):\n    ...\n", "it lacks commands"),
    "fake without anything": ("fakes", "x = 1\n", "it lacks commands and unreachable"),
}


@pytest.mark.parametrize(("group", "text", "expected"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_plugin_without_required_hooks_has_a_load_error(
    tmp_path: Path, group: str, text: str, expected: str
) -> None:
    lay(tmp_path, files={"mine.py": text}, **{group: {"mine": "mine"}})

    (it,) = [it for it in listing(installed([tmp_path]), {}, load=True) if it.origin == str(tmp_path)]

    assert (it.chosen, it.why_not) == (True, None)
    assert f"the {it.kind} 'mine' of my-plugin 1.2 in {tmp_path} cannot be used: " in (it.load_error or "")
    assert expected in (it.load_error or "")


USABLE = {
    "executor with an engine": ("executors", module_with_hooks("make_engine")),
    "executor for commands": ("executors", module_with_hooks(*BATCH_HOOKS)),
    "launcher": ("launchers", module_with_hooks("launch")),
    "transport": ("transports", module_with_hooks("open_transport")),
    "override": ("overrides", module_with_hooks("status_changed")),
    "observer": ("observers", module_with_hooks("status_changed")),
    "fake": ("fakes", "commands = {}\ndef unreachable(command):\n    ...\n"),
}


@pytest.mark.parametrize(("group", "text"), USABLE.values(), ids=USABLE)
def test_a_plugin_with_all_required_hooks_has_no_error(tmp_path: Path, group: str, text: str) -> None:
    lay(tmp_path, files={"mine.py": text}, **{group: {"mine": "mine"}})

    found = listing(installed([tmp_path]), {}, load=True)

    assert [it.load_error for it in found if it.origin == str(tmp_path)] == [None]


def test_plugins_of_other_kinds_than_the_requested_are_not_loaded(tmp_path: Path) -> None:
    broken = {"launchers": {"mine": "nosuch"}, "fakes": {"mine": "nosuch"}}
    lay(tmp_path, **broken)

    found = listing(installed([tmp_path]), {}, load=["executor", "launcher"])

    errors = {it.kind: it.load_error is None for it in found if it.origin == str(tmp_path)}
    assert errors == {"launcher": False, "fake": True}


def test_an_executor_is_checked_with_its_overrides(tmp_path: Path) -> None:
    """So is an executor that a program creates."""
    missing, *others = BATCH_HOOKS
    lay(tmp_path / "place", files={"mine.py": module_with_hooks(*others)}, executors={"mine": "mine"})
    folder = tmp_path / "config"

    def errors() -> dict[str, str | None]:
        found = listing(installed([tmp_path / "place"]), {}, [folder], load=True)
        return {it.kind: it.load_error for it in found if it.name == "mine"}

    assert f"it lacks the hook {missing}, or make_engine" in (errors()["executor"] or "")
    path = write(folder, "mine.py", module_with_hooks(missing))
    assert errors() == {"executor": None, "override": None}
    path.rename(folder / "overrides/other.py")
    path = write(folder, "Mine.py", "1 // 0\n")
    assert f"the override {path} cannot be loaded: ZeroDivisionError" in (errors()["executor"] or "")


def test_override_files_are_listed(tmp_path: Path) -> None:
    site, user = tmp_path / "site", tmp_path / "user"
    paths = [
        write(site, "all.py", module_with_hooks("check_spec")),
        write(site, "broken.py", "import no_such_module\n"),
        write(site, "hookless.py", "x = 1\n"),
        write(user, "all.py", "raise RuntimeError('was loaded')\n"),
    ]
    paths[3].chmod(0o666)

    lay(tmp_path / "place", executors={"broken": "x", "Hookless": "x"})

    plugins = installed([tmp_path / "place"])
    listed = listing(plugins, {}, [site, user, tmp_path / "nowhere"], load=True)
    listed_plugins = [it for it in listed if it.kind == "override"]

    assert [it.origin for it in listed_plugins] == [str(path) for path in paths]
    assert [it.name for it in listed_plugins] == ["all", "broken", "hookless", "all"]
    assert {(it.kind, it.version, it.distribution, it.aliases) for it in listed_plugins} == {
        ("override", "-", "-", ())
    }
    assert [it.chosen for it in listed_plugins] == [True, True, True, False]
    assert f"{paths[3]} can be written by others" in (listed_plugins[3].why_not or "")
    assert [it.load_error for it in listed_plugins][::3] == [None, None]
    assert f"the override {paths[1]} cannot be loaded: ModuleNotFoundError" in (
        listed_plugins[1].load_error or ""
    )
    assert f"the override {paths[2]} cannot be used: {HOOKLESS}" in (listed_plugins[2].load_error or "")


def test_an_override_file_without_executor_is_not_chosen(tmp_path: Path) -> None:
    lay(tmp_path / "place", executors={"kelp": "x"})
    for name in ("all.py", "KELP.py", "klep.py", "nothing.py", "Reef.py"):
        write(tmp_path / "config", name, module_with_hooks("check_spec"))

    listed = listing(installed([tmp_path / "place"]), {}, [tmp_path / "config"], ["reef"], load=True)
    listed_plugins = {it.name: (it.why_not, it.load_error) for it in listed if it.kind == "override"}

    nothing = "overrides nothing: there is no executor"
    assert listed_plugins == {
        "all": (None, None),
        "KELP": (None, None),
        "klep": (f"{nothing} 'klep'; did you mean 'kelp'?", None),
        "nothing": (f"{nothing} 'nothing'", None),
        "Reef": (f"{nothing} 'Reef'; an override is named after an executor, not after a target", None),
    }


def test_override_files_run_only_on_request(tmp_path: Path) -> None:
    write(tmp_path, "all.py", f"open({str(tmp_path / 'it-ran')!r}, 'w')\n")

    (it,) = listing(Plugins(()), {}, [tmp_path])

    assert (it.chosen, it.load_error) == (True, None)
    assert not (tmp_path / "it-ran").exists()


def test_files_of_the_site_and_the_user_are_among_the_plugins(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / folder / "jpsi", "all.py", module_with_hooks("check_spec"))
        for folder in ("site-config", "config")
    ]

    listed_plugins = jpsi.plugins()

    assert [it.origin for it in listed_plugins if it.kind == "override"] == [str(path) for path in paths]


def test_plugins_of_the_engine_are_listed() -> None:
    listed_plugins = {(it.kind, it.name): it for it in jpsi.plugins(load=True)}

    assert listed_plugins["executor", "local"].chosen
    assert listed_plugins["launcher", "single"].distribution == "jpsi-engine"
    assert listed_plugins["executor", "local"].origin == "environment"
    assert listed_plugins["executor", "local"].load_error is None
