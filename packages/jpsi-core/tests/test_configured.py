"""The effect of configuration, overrides and observers on an executor."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from distributions import lay
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState
from jpsi_testing.waiting import eventually

PATIENCE = 30

HOOKS = "import attrs\nfrom jpsi.plugin import *\nfrom jpsi.plugin import hookimpl\n"
TOY = f"""{HOOKS}
@attrs.frozen(slots=True, kw_only=True)
class Config(ExecutorConfig):
    colour: str = "red"

@hookimpl
def config_class():
    return Config

@hookimpl
def check_spec(spec, site):
    attributes = spec.attributes
    if spec.name != "report":
        return []
    return [
        f"colour={{site.config.colour}}",
        f"duration={{attributes.duration}}",
        f"queue={{attributes.queue_name}}",
        f"project={{attributes.project_name}}",
        f"custom={{attributes.custom_attributes}}",
        f"launcher={{spec.launcher}}",
    ]

@hookimpl
def make_engine(setup):
    global TRANSPORT, EXECUTOR
    TRANSPORT, EXECUTOR = setup.transport, setup.executor
    return setup.process_engine(setup)
"""
TRANSPORT = f"""{HOOKS}
@hookimpl
def open_transport(url, config):
    return RemoteTransport(url, config)

class RemoteTransport:
    is_local = False
    def __init__(self, url, config):
        self.url, self.config = url, config
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a directory of plugins with the executor `toy`, which has the alias `game`."""
    place = tmp_path / "place"
    lay(
        place,
        "toy",
        files={"toy_x.py": TOY, "toy_t.py": TRANSPORT},
        executors={"toy_x": "toy_x", "game": "toy_x"},
        transports={"remote": "toy_t"},
    )
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(place))
    return place


@pytest.fixture
def configure(tmp_path: Path) -> Callable[[str], None]:
    def configure(text: str) -> None:
        path = tmp_path / "config/jpsi/config.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)

    return configure


def reported_fields(executor: JobExecutor, spec: JobSpec | None = None) -> dict[str, str]:
    spec = spec or JobSpec("/bin/true")
    spec.name = "report"
    with pytest.raises(jpsi.InvalidJobException) as caught:
        executor.submit(Job(spec))
    return dict(problem.partition("=")[::2] for problem in caught.value.problems)


def module(executor: JobExecutor) -> object:
    return sys.modules[type(executor._assembly.config).__module__]


CONFIGURATION = """
default_executor: near
executors:
  toy_x:
    config: {colour: blue}
    defaults: {duration: 1h, queue_name: slow, custom_attributes: {toy.a: 1, toy.b: 1}}
targets:
  near:
    executor: game
    config: {colour: green}
    defaults: {account: mine, launcher: single, custom_attributes: {toy.b: 2}}
  there: {executor: toy_x, url: remote://host}
"""


def test_an_executor_gets_its_configuration(configure: Callable[[str], None]) -> None:
    configure(CONFIGURATION)

    for name in ("toy_x", "TOY_X", "game"):
        assert reported_fields(JobExecutor(name)) == {
            "colour": "blue",
            "duration": "1:00:00",
            "queue": "slow",
            "project": "None",
            "custom": "{'toy.a': 1, 'toy.b': 1}",
            "launcher": "None",
        }


@pytest.mark.parametrize("name", [None, "near", "NEAR"])
def test_a_target_selects_its_executor(configure: Callable[[str], None], name: str | None) -> None:
    configure(CONFIGURATION)

    executor = JobExecutor(name)

    assert executor.name == "game"
    assert reported_fields(executor) == {
        "colour": "green",
        "duration": "1:00:00",
        "queue": "slow",
        "project": "mine",
        "custom": "{'toy.a': 1, 'toy.b': 2}",
        "launcher": "single",
    }


def test_a_target_has_precedence_over_an_executor_of_its_name(configure: Callable[[str], None]) -> None:
    configure("targets: {local: {executor: toy_x}}\n")

    assert JobExecutor("local").name == "toy_x"
    assert JobExecutor().name == "toy_x"


def test_the_spec_precedes_the_configuration_and_is_not_changed(configure: Callable[[str], None]) -> None:
    configure(CONFIGURATION)
    attributes = JobAttributes(duration=timedelta(minutes=1), custom_attributes={"toy.a": 3})
    spec = JobSpec("/bin/true", attributes=attributes)

    found = reported_fields(JobExecutor("near"), spec)

    assert found["duration"] == "0:01:00"
    assert found["custom"] == "{'toy.a': 3, 'toy.b': 2}"
    assert spec.attributes is attributes
    assert attributes == JobAttributes(duration=timedelta(minutes=1), custom_attributes={"toy.a": 3})


def test_a_configuration_in_the_call_replaces_the_configured_fields(configure: Callable[[str], None]) -> None:
    configure(CONFIGURATION)
    config_class = type(JobExecutor("toy_x")._assembly.config)

    found = reported_fields(JobExecutor("near", config=config_class()))

    assert found["colour"] == "red"
    assert found["queue"] == "slow"


def test_the_configured_version_counts_unless_the_call_has_one(
    configure: Callable[[str], None], place: Path
) -> None:
    lay(place / "2", "toy", "2", files={"toy_x.py": TOY}, executors={"toy_x": "toy_x"})
    configure(f"plugin_path: [{place}/2]\nexecutors: {{game: {{version: < 2}}}}\n")

    assert str(JobExecutor("toy_x").version) == "1.2"
    assert str(JobExecutor("toy_x", ">= 1").version) == "2"


def test_a_wrong_field_is_reported_with_its_place(configure: Callable[[str], None]) -> None:
    configure("executors: {toy_x: {config: {color: red, shell: 1}}}\n")

    with pytest.raises(jpsi.ConfigError) as caught:
        JobExecutor("toy_x")

    assert (
        "config.yaml:1: executors.toy_x.config.color: is not known to Config; did you mean 'colour'?"
        in str(caught.value)
    )
    assert "config.yaml:1: executors.toy_x.config.shell: must be text, not 1" in str(caught.value)
    assert JobExecutor("local").name == "local"


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("default_executor: reff\n", None, "did you mean 'reef'?; it is named in {}:1: default_executor"),
        ("\ntargets: {big: {executor: tyo}}\n", "big", "{}:2: targets.big.executor"),
        (
            "default_executor: big\ntargets: {big: {executor: tyo}}\n",
            None,
            "{}:2: targets.big.executor",
        ),
        ("targets: {big: {executor: game, version: '>9'}}\n", "big", "{}:1: targets.big.version"),
        ("executors: {game: {version: '>9'}}\n", "game", "{}:1: executors.game.version"),
    ],
)
def test_an_unknown_executor_in_the_configuration_is_reported_with_its_place(
    configure: Callable[[str], None], tmp_path: Path, text: str, name: str | None, expected: str
) -> None:
    configure(text if "targets" in text else f"{text}targets: {{reef: {{executor: game}}}}\n")

    with pytest.raises(jpsi.PluginError) as caught:
        JobExecutor(name)

    first = str(caught.value).partition("\n")[0]
    assert first.startswith("no executor ")
    assert first.endswith(expected.format(tmp_path / "config/jpsi/config.yaml"))


@pytest.mark.parametrize(("name", "constraint"), [("reff", None), ("game", "> 9")])
def test_an_unknown_executor_in_the_call_is_not_blamed_on_the_configuration(
    configure: Callable[[str], None], name: str, constraint: str | None
) -> None:
    configure("targets: {reef: {executor: game}}\nexecutors: {game: {version: '> 0'}}\n")

    with pytest.raises(jpsi.PluginError) as caught:
        JobExecutor(name, constraint)

    assert "config.yaml" not in str(caught.value)
    assert ("targets: reef; did you mean 'reef'?" in str(caught.value)) is (constraint is None)


def test_an_override_file_for_a_target_is_listed_as_unused(
    configure: Callable[[str], None], tmp_path: Path
) -> None:
    configure("targets: {reef: {executor: game}}\n")
    (tmp_path / "config/jpsi/overrides").mkdir()
    (tmp_path / "config/jpsi/overrides/reef.py").write_text(HOOKS)

    (it,) = [it for it in jpsi.plugins() if it.kind == "override"]

    assert (it.chosen, "not after a target" in (it.why_not or "")) == (False, True)


BAD_HOOKS = f"""{HOOKS}
@hookimpl
def make_engine(setup):
    return setup.process_engine(setup)

@hookimpl
def check_spec(spec):
    return spec.nonsense
"""


def test_a_failing_hook_is_reported_with_its_plugin(tmp_path: Path, place: Path) -> None:
    overrides = tmp_path / "config/jpsi/overrides"
    overrides.mkdir(parents=True)
    (overrides / "toy_x.py").write_text(f"{HOOKS}@hookimpl\ndef check_spec(spec):\n    return 'no'\n")
    lay(place, "bad", files={"bad_x.py": BAD_HOOKS}, executors={"bad": "bad_x"})

    with pytest.raises(jpsi.PluginError) as failed:
        JobExecutor("bad").submit(Job(JobSpec("/bin/true")))
    with pytest.raises(jpsi.PluginError) as answered:
        JobExecutor("toy_x").submit(Job(JobSpec("/bin/true")))

    what = "failed: AttributeError: 'JobSpec' object has no attribute 'nonsense'"
    where = f"({place}/bad_x.py, line 11)"
    assert (
        str(failed.value) == f"the hook check_spec of the executor 'bad' of bad 1.2 in {place} {what} {where}"
    )
    what = "returned str, not Iterable[str]"
    assert str(answered.value) == f"the hook check_spec of the override {overrides}/toy_x.py {what}"


def test_url_chooses_the_transport(configure: Callable[[str], None]) -> None:
    configure(CONFIGURATION)

    for name, given, url in (
        ("there", None, "remote://host"),
        ("there", "remote://other", "remote://other"),
        ("toy_x", "REMOTE://x", "REMOTE://x"),
    ):
        transport = module(JobExecutor(name, url=given)).TRANSPORT  # type: ignore[attr-defined]
        assert (transport.url, transport.config.colour) == (url, "blue")


def test_an_executor_with_only_a_local_engine_refuses_a_remote_url(place: Path) -> None:
    near = "return setup.process_engine(setup) if setup.transport.is_local else None"
    text = f"{HOOKS}@hookimpl\ndef make_engine(setup):\n    {near}\n"
    lay(place, "near", files={"near_x.py": text}, executors={"near": "near_x"})

    with pytest.raises(jpsi.PluginError, match=r"the executor 'near' of near .* lacks the hooks render_sc"):
        JobExecutor("near", url="remote://host")


def test_aliases_have_one_spool() -> None:
    assert module(JobExecutor("game")).EXECUTOR == "toy_x"  # type: ignore[attr-defined]


OBSERVER = f"""{HOOKS}
CALLS = []
@hookimpl
def status_changed(executor, job_id, native_id, spec, status):
    CALLS.append((executor, job_id, native_id, spec and spec.executable, status.state))
"""


def calls(path: str) -> list[tuple[str, str, str, str | None, JobState]]:
    (found,) = [it.CALLS for it in sys.modules.values() if getattr(it, "__file__", None) == path]
    return found  # type: ignore[no-any-return]


def test_observers_get_every_status_in_order(tmp_path: Path, place: Path) -> None:
    failing = OBSERVER.replace("CALLS.append", "raise ValueError\n    CALLS.append")
    lay(place, "observer", files={"o1.py": OBSERVER, "o2.py": failing}, observers={"b": "o1", "a": "o2"})
    (tmp_path / "config/jpsi/overrides").mkdir(parents=True)
    (tmp_path / "config/jpsi/overrides/all.py").write_text(OBSERVER)
    executor = JobExecutor("toy_x")
    job = Job(JobSpec("/bin/true"))

    executor.submit(job)
    job.wait(PATIENCE)
    attached = Job()
    executor.attach(attached, "1-1-1")
    attached.wait(PATIENCE)

    for path in (f"{place}/o1.py", f"{tmp_path}/config/jpsi/overrides/all.py"):
        assert eventually(lambda path=path: len(calls(path)) == 4)  # type: ignore[misc]
        mine = [it for it in calls(path) if it[1] == job.id]
        assert [it[4] for it in mine] == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
        assert {it[:4] for it in mine} == {("toy_x", job.id, job.native_id, "/bin/true")}
        assert next(it[3:] for it in calls(path) if it[1] == attached.id) == (None, JobState.FAILED)


def test_site_policy_of_one_file_refuses_jobs(tmp_path: Path) -> None:
    folder = tmp_path / "site-config/jpsi/overrides"
    folder.mkdir(parents=True)
    (folder / "toy_x.py").write_text(
        f"{HOOKS}@hookimpl\ndef check_spec(spec):\n"
        "    return [] if spec.attributes.account else ['no project']\n"
    )

    with pytest.raises(jpsi.InvalidJobException, match="no project"):
        JobExecutor("game").submit(Job(JobSpec("/bin/true")))
    executor = JobExecutor("game")
    job = Job(JobSpec("/bin/true", attributes=JobAttributes(account="x")))
    executor.submit(job)
    job.wait(PATIENCE)
