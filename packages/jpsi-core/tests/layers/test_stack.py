"""The layers of one executor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from distributions import lay
from jpsi.contract.config import ExecutorConfig
from jpsi.contract.hookspecs import LauncherHooks
from jpsi.layers.stack import (
    executor_hooks,
    executor_layers,
    launcher_of,
    name_and_constraint,
    observers,
    open_transport,
)
from jpsi.model.errors import PluginError
from jpsi.model.spec import JobSpec
from jpsi.registry.candidate import EXECUTORS
from jpsi.registry.discovery import Plugins, installed
from jpsi_engine.host.local_transport import LocalTransport

HOOKS = "from jpsi.plugin import *\nfrom jpsi.plugin import hookimpl\n"
BACKEND = (
    HOOKS
    + "@hookimpl\ndef make_engine(setup):\n    ...\n@hookimpl\ndef check_spec():\n    return ['backend']\n"
)
BATCH = ("render_script", "submit", "parse_submit", "query", "parse_status", "cancel")


def checking(word: str) -> str:
    return f"{HOOKS}@hookimpl\ndef check_spec():\n    return [{word!r}]\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a directory with the executor `toy`, which has the alias `game`."""
    place = tmp_path / "place"
    lay(place, "toy", files={"toy_x.py": BACKEND}, executors={"toy": "toy_x", "game": "toy_x"})
    return place


class Layers:
    """The layers of an executor, from the plugins of some directories."""

    def __init__(self, *places: Path, folders: Sequence[Path] = (), name: str = "toy") -> None:
        plugins = installed(places)
        layers, self.lacking = executor_layers(plugins, plugins.find(EXECUTORS, name), folders)
        self.hooks = executor_hooks(layers)
        self.observers = observers(plugins, layers)


def make_layers(place: Path, *folders: Path, name: str = "toy") -> Layers:
    return Layers(place, folders=folders, name=name)


def answers(layers: Layers) -> list[str]:
    spec = JobSpec("/bin/true")
    return [word for answer in layers.hooks.check_spec(spec=spec, site=None) for word in answer]  # type: ignore[arg-type]


def write(folder: Path, name: str, text: str) -> None:
    (folder / "overrides").mkdir(parents=True, exist_ok=True)
    (folder / "overrides" / name).write_text(text)


def test_defaults_are_the_lowest_layer(place: Path) -> None:
    layers = make_layers(place)

    assert answers(layers) == ["backend"]
    assert layers.hooks.capabilities(site=None).default_launcher == "mpirun"  # type: ignore[arg-type]
    assert layers.lacking == BATCH


def test_overrides_precede_the_backend_and_the_users_precede_the_sites(place: Path, tmp_path: Path) -> None:
    lay(
        place,
        "policy",
        files={f"{word}_policy.py": checking(word) for word in ("every", "named", "alias", "other")},
        overrides={
            "all": "every_policy",
            "Toy": "named_policy",
            "game": "alias_policy",
            "slurm": "other_policy",
        },
    )
    site, user = tmp_path / "site", tmp_path / "user"
    for folder in (site, user):
        write(folder, "all.py", checking(f"{folder.name} all"))
        write(folder, "TOY.py", checking(f"{folder.name} toy"))
        write(folder, "slurm.py", checking("not this"))

    for name in ("toy", "GAME"):
        found = answers(make_layers(place, site, user, name=name))
        assert found[:4] == ["user toy", "user all", "site toy", "site all"]
        assert sorted(found[4:6]) == ["alias", "named"]
        assert found[6:] == ["every", "backend"]


def test_an_override_is_called_before_the_backend(place: Path, tmp_path: Path) -> None:
    text = "@hookimpl\ndef capabilities():\n    return Capabilities(default_launcher='site')\n"
    write(tmp_path, "toy.py", HOOKS + text)

    assert make_layers(place, tmp_path).hooks.capabilities(site=None).default_launcher == "site"  # type: ignore[arg-type]


def test_latest_version_of_an_override_counts(tmp_path: Path, place: Path) -> None:
    lay(place, "policy", "1", files={"policy.py": checking("old")}, overrides={"all": "policy"})
    lay(tmp_path / "p2", "policy", "2", files={"policy.py": checking("new")}, overrides={"toy": "policy"})

    assert answers(Layers(place, tmp_path / "p2")) == ["new", "backend"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise ValueError('x')\n", "overrides/toy.py cannot be loaded: ValueError: x; repair or remove it"),
        ("def", r"overrides/toy.py cannot be loaded: SyntaxError: .*line 1"),
        ("raise SystemExit\n", "cannot be loaded: SystemExit"),
        ("x = 1\n", r"overrides/toy.py cannot be used: it implements no hook \(is `@hookimpl` missing\?\)"),
        (HOOKS + "@hookimpl\ndef sumbit():\n    ...\n", "there is no hook 'sumbit'; did you mean 'submit'"),
    ],
    ids=["raises", "no Python", "exits", "no hook", "typing error"],
)
def test_a_broken_override_is_never_skipped(place: Path, tmp_path: Path, text: str, expected: str) -> None:
    """The override may be a policy. It does not affect executors that it is not for."""
    write(tmp_path, "toy.py", text)
    lay(place, "other", files={"other_x.py": BACKEND}, executors={"other": "other_x"})

    for _ in range(2):
        with pytest.raises(PluginError, match=expected):
            make_layers(place, tmp_path)

    assert answers(make_layers(place, tmp_path, name="other")) == ["backend"]


def test_a_broken_override_of_a_distribution_is_never_skipped(place: Path) -> None:
    lay(place, "policy", files={"policy.py": "import nonsense_x\n"}, overrides={"all": "policy"})

    with pytest.raises(PluginError, match=r"the override 'all' of policy 1\.2 in .* cannot be loaded"):
        make_layers(place)


def test_a_refused_override_is_never_skipped(place: Path) -> None:
    lay(
        place,
        "policy",
        files={"policy.py": checking("x")},
        requires=["jpsi-core>=99"],
        overrides={"toy": "policy"},
    )

    with pytest.raises(
        PluginError, match="was not loaded, and it may be a policy: it requires jpsi-core>=99"
    ):
        make_layers(place)


def test_file_that_others_may_write_to_is_refused(place: Path, tmp_path: Path) -> None:
    write(tmp_path, "all.py", checking("evil"))
    (tmp_path / "overrides/all.py").chmod(0o666)

    with pytest.raises(PluginError, match=r"all\.py is refused: .* can be written by others"):
        make_layers(place, tmp_path)


def test_override_supplies_what_the_backend_lacks(place: Path, tmp_path: Path) -> None:
    lay(
        place,
        "poor",
        files={"poor.py": HOOKS + "@hookimpl\ndef cancel(site):\n    ...\n"},
        executors={"poor": "poor"},
    )
    with pytest.raises(
        PluginError, match="lacks the hooks render_script, submit, parse_submit, query, parse_s"
    ):
        make_layers(place, name="poor")
    write(tmp_path, "poor.py", HOOKS + "".join(f"@hookimpl\ndef {hook}():\n    ...\n" for hook in BATCH[:-1]))

    assert make_layers(place, tmp_path, name="poor").lacking == ()


def test_wrong_and_missing_hooks_are_reported_at_once(place: Path, tmp_path: Path) -> None:
    text = HOOKS + "@hookimpl\ndef sumbit():\n    ...\n@hookimpl\ndef cancel(x):\n    ...\n"
    lay(place, "poor", files={"poor.py": text}, executors={"poor": "poor"}, launchers={"poor": "poor"})
    write(tmp_path, "poor.py", HOOKS + "@hookimpl(wrapper=True)\ndef query():\n    ...\n")

    with pytest.raises(PluginError) as caught:
        make_layers(place, tmp_path, name="poor")

    assert str(caught.value) == (
        f"the executor 'poor' of poor 1.2 in {place} cannot be used: "
        "cancel has no argument 'x', only native_ids, site, seen; "
        "there is no hook 'sumbit'; did you mean 'submit'?; "
        "it lacks the hooks render_script, submit, parse_submit, query, parse_status, or make_engine\n"
        f"the override {tmp_path}/overrides/poor.py cannot be used: "
        "query has wrapper=True, but no `yield`; write `answer = yield`, or leave wrapper=True out"
    )
    with pytest.raises(PluginError, match=r"there is no hook 'cancel'; .* it lacks the hook launch\Z"):
        launcher_hooks(installed([place]), "poor")


def launcher_hooks(plugins: Plugins, text: str) -> LauncherHooks:
    """Return the hooks of a launcher, whose name may have a version constraint."""
    return launcher_of(plugins, *name_and_constraint(text))[1]


def test_the_error_names_the_failing_launcher(place: Path) -> None:
    text = f"{HOOKS}@hookimpl\ndef launch(spec):\n    return _inner()\ndef _inner():\n    return 1 // 0\n"
    lay(place, "launching", files={"launching.py": text}, launchers={"mine": "launching"})

    with pytest.raises(PluginError) as caught:
        launcher_hooks(installed([place]), "mine").launch(spec=JobSpec("x"))

    label = f"the launcher 'mine' of launching 1.2 in {place}"
    failed = f"failed: ZeroDivisionError: integer division or modulo by zero ({place}/launching.py, line 7)"
    assert str(caught.value) == f"the hook launch of {label} {failed}"


def test_a_wrapper_alone_is_no_result(place: Path) -> None:
    hooks = "".join(f"@hookimpl(wrapper=True)\ndef {hook}():\n    return (yield)\n" for hook in BATCH)
    lay(place, "poor", files={"poor.py": HOOKS + hooks}, executors={"poor": "poor"})

    with pytest.raises(PluginError, match=", ".join(BATCH)):
        make_layers(place, name="poor")


OBSERVER = "CALLS = []\n@hookimpl\ndef status_changed(job_id):\n    CALLS.append(job_id)\n"


def test_each_observer_is_found_once(place: Path, tmp_path: Path) -> None:
    lay(
        place,
        "watching",
        files={"both.py": checking("both") + OBSERVER, "one.py": HOOKS + OBSERVER},
        overrides={"all": "both", "toy": "both"},
        observers={"any": "both", "other": "one", "again": "one"},
    )
    write(tmp_path, "all.py", HOOKS + OBSERVER)

    layers = make_layers(place, tmp_path)

    assert answers(layers) == ["both", "backend"]
    assert len(layers.observers) == 3


@pytest.mark.parametrize(
    "text", ["import nonsense_x\n", BACKEND, "def", HOOKS + "@hookimpl\ndef x():\n    ...\n"]
)
def test_a_broken_observer_costs_one_warning(
    place: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    lay(place, "watching", files={"watching.py": text}, observers={"any": "watching"})

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert make_layers(place).observers == ()

    (record,) = caplog.records
    assert "the observer 'any' of watching 1.2 in" in record.getMessage()


def test_a_launcher_may_have_a_version_constraint(place: Path) -> None:
    text = f"{HOOKS}@hookimpl\ndef launch():\n    return [ShellLine('x')]\n"
    lay(place, "launching", files={"launching.py": text}, launchers={"mine": "launching"})
    plugins = installed([place])

    assert list(launcher_hooks(plugins, "mine >= 1, < 2").launch(spec=JobSpec("x"))) == ["x"]
    with pytest.raises(PluginError, match=r"no launcher 'mine' with version >=2; installed: 1\.2"):
        launcher_hooks(plugins, "mine>=2")
    with pytest.raises(PluginError, match="is not a launcher's name"):
        launcher_hooks(plugins, "mine or yours")


@pytest.mark.parametrize(
    ("group", "hook", "load"),
    [
        ("launchers", "launch", lambda plugins: launcher_hooks(plugins, "mine")),
        (
            "transports",
            "open_transport",
            lambda plugins: open_transport(plugins, "mine://x", ExecutorConfig(), LocalTransport()),
        ),
    ],
    ids=["launcher", "transport"],
)
def test_launchers_and_transports_need_their_hook(
    place: Path, group: str, hook: str, load: Callable[[Plugins], object]
) -> None:
    wrapper = f"{HOOKS}@hookimpl(wrapper=True)\ndef {hook}():\n    return (yield)\n"
    lay(place, "mine", files={"mine.py": wrapper}, **{group: {"mine": "mine"}})
    plugins = installed([place])

    with pytest.raises(PluginError, match=rf"it lacks the hook {hook}\Z"):
        load(plugins)
