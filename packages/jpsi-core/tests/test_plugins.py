"""Plugins as their users install them: real wheels, several versions side by side, broken ones among them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from distributions import install, lay, wheel
from jpsi import Job, JobExecutor, JobSpec, JobState, PluginError
from jpsi.registry.candidate import EXECUTORS
from jpsi.registry.discovery import installed as installed_plugins
from jpsi.registry.loading import load_plugin

PATIENCE = 30

PLUGIN = """
from jpsi.plugin import ExecutorConfig, hookimpl

from . import parts


@hookimpl
def config_class():
    return ExecutorConfig


@hookimpl
def check_spec(spec):
    from .parts.late import VERSION
    return [f"this is {VERSION}"] if spec.name == "report" else []


@hookimpl
def make_engine(setup):
    engine = setup.process_engine(setup)
    submit = engine.submit

    def submit_with_version(submission):
        submission.spec.environment = {"CODE": parts.VERSION, "HELP": parts.HELP}
        return submit(submission)

    engine.submit = submit_with_version
    return engine
"""
LAUNCHER = """
from jpsi.plugin import ShellLine, hookimpl
from .parts import VERSION

@hookimpl
def launch():
    return [ShellLine(f'export LAUNCHED_BY={VERSION}'), ShellLine('exec "$@"')]
"""
ANY_EXECUTOR = "from jpsi.plugin import hookimpl\n@hookimpl\ndef make_engine(setup):\n    return None\n"


def acme(directory: Path, version: str) -> Path:
    return wheel(
        directory,
        "acme-queues",
        version,
        files={
            "acme_queues/__init__.py": "",
            "acme_queues/plugin.py": PLUGIN,
            "acme_queues/launcher.py": LAUNCHER,
            "acme_queues/parts/__init__.py": "from helping_toys import HELP\nfrom .late import VERSION\n",
            "acme_queues/parts/late.py": f"VERSION = {version!r}\n",
        },
        requires=["jpsi-core>=0.1", "helping-toys"],
        executors={"acme": "acme_queues.plugin", "pbs_classic": "acme_queues.plugin"},
        launchers={"toy": "acme_queues.launcher"},
    )


def single(directory: Path, name: str, text: str, version: str = "1.0", **requires: list[str]) -> Path:
    """Make a wheel of one module with one executor; all are called `name`."""
    return wheel(
        directory,
        f"toy-{name}",
        version,
        files={f"toy_{name}.py": text},
        executors={name: f"toy_{name}"},
        **requires,
    )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make directories with pip: 0.1, 0.2, 0.3 and broken."""
    wheels = tmp_path_factory.mktemp("wheels")
    root = tmp_path_factory.mktemp("installed")
    helping = wheel(wheels, "helping-toys", "1", files={"helping_toys.py": "HELP = 'yes'\n"})
    targets = {root / version: [acme(wheels, version), helping] for version in ("0.1", "0.2", "0.3")}
    targets[root / "broken"] = [
        single(wheels, "syntax", "def (:\n"),
        single(wheels, "dependent", "import no_such_module_anywhere\n"),
        single(wheels, "exiting", "raise SystemExit(3)\n"),
        single(
            wheels, "hookless", "from jpsi.plugin import hookimpl\n@hookimpl\ndef submit(script):\n    ...\n"
        ),
        single(
            wheels,
            "mistyped",
            f"{ANY_EXECUTOR}@hookimpl\ndef chek_spec(spec):\n    ...\n@hookimpl\ndef hold(job):\n    ...\n",
        ),
        single(wheels, "selfish", "import toy_selfish\n"),
        single(wheels, "future", ANY_EXECUTOR, requires=["jpsi-core>=99"]),
        single(wheels, "sound", ANY_EXECUTOR.replace("None", "setup.process_engine(setup)")),
        wheel(wheels, "jpsi-core", "99", files={}, executors={"local": "nonsense"}),
    ]
    install(targets)
    return root


@pytest.fixture
def plugin_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(*directories: str | Path) -> None:
        paths = [str(installed / directory) for directory in directories]
        monkeypatch.setenv("JPSI_PLUGIN_PATH", os.pathsep.join(paths))

    return put


ALL = ("0.1", "0.3", "broken", "0.2")


@pytest.mark.clause("python-versions", "python-restricted")
@pytest.mark.parametrize(
    ("constraint", "expected"),
    [(None, "0.3"), (">= 0.2", "0.3"), ("< 0.3", "0.2"), ("== 0.1", "0.1"), (">= 0.1, != 0.3", "0.2")],
    ids=str,
)
def test_the_highest_suitable_version_is_chosen(
    plugin_path: Callable[..., None], constraint: str | None, expected: str
) -> None:
    plugin_path(*ALL)

    executor = JobExecutor.get_instance("acme", constraint)

    assert str(executor.version) == expected
    with pytest.raises(jpsi.InvalidJobException, match=f"this is {expected}"):
        executor.submit(Job(JobSpec("/bin/true", name="report")))


@pytest.mark.clause("python-versions", "python-same-package")
def test_two_versions_run_jobs_in_one_process_and_each_keeps_its_code(
    plugin_path: Callable[..., None], config: jpsi.ExecutorConfig
) -> None:
    plugin_path(*ALL)
    executors = [
        JobExecutor.get_instance("acme", constraint, config=config) for constraint in (">= 0.2", "< 0.3")
    ]

    results = [run(executor, "toy == 0.1") for executor in (*executors, *executors)]

    assert results == [["0.3", "0.1", "yes"], ["0.2", "0.1", "yes"]] * 2


def run(executor: JobExecutor, launcher: str | None = None) -> list[str]:
    job = Job(JobSpec("/bin/sh", ["-c", 'echo "$CODE" "$LAUNCHED_BY" "$HELP"'], launcher=launcher))
    executor.submit(job)
    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.COMPLETED
    assert job.streams is not None
    return job.streams.stdout.read_text().split()


@pytest.mark.clause("python-side-loading")
def test_launcher_follows_the_same_rules(
    plugin_path: Callable[..., None], config: jpsi.ExecutorConfig
) -> None:
    plugin_path(*ALL)
    executor = JobExecutor.get_instance("acme", "< 0.2", config=config)

    assert run(executor, "toy") == ["0.1", "0.3", "yes"]
    assert run(executor, "TOY < 0.3") == ["0.1", "0.2", "yes"]


def test_alias_is_the_same_executor(plugin_path: Callable[..., None]) -> None:
    plugin_path(*ALL)

    assert str(JobExecutor.get_instance("PBS_Classic").version) == "0.3"


@pytest.mark.clause("python-same-package")
def test_plugin_is_imported_under_a_private_name(plugin_path: Callable[..., None]) -> None:
    plugin_path("0.1")
    JobExecutor.get_instance("acme")

    assert "acme_queues" not in sys.modules
    assert [name for name in sys.modules if re.fullmatch(r"_jpsi_plugin_\w+\.acme_queues\.plugin", name)]


def test_threads_that_load_one_plugin_get_one_module(
    installed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(installed / "0.1", tmp_path / "copy")
    with (tmp_path / "copy/acme_queues/__init__.py").open("a") as file:
        file.write("import time; time.sleep(0.05)\nprint('loaded')\n")
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path / "copy"))
    found = []

    threads = [
        threading.Thread(
            target=lambda: found.append(load_plugin(installed_plugins().find(EXECUTORS, "acme")))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert capsys.readouterr().out == "loaded\n"


BROKEN = {
    "syntax": r"the executor 'syntax' of toy-syntax 1\.0 in /.*/broken cannot be loaded: SyntaxError: .*"
    r"toy_syntax.py, line 1.*; reinstall toy-syntax",
    "dependent": r"cannot be loaded: ModuleNotFoundError: .*; install the distribution that has the module "
    r"'no_such_module_anywhere': pip install --target /.*/broken",
    "exiting": r"toy-exiting 1\.0 in /.*/broken cannot be loaded: SystemExit: 3",
    "hookless": r"toy-hookless 1\.0 in /.*/broken cannot be used: it lacks the hooks render_script, "
    r"parse_submit, query, parse_status, cancel, or make_engine",
    "mistyped": r"cannot be used: there is no hook 'chek_spec'; did you mean 'check_spec'\?; hold has no "
    r"argument 'job', only native_ids, site",
    "selfish": r"imports itself by its absolute name.*toy_selfish.py:1; write relative imports",
    "future": r"no executor 'future' that can be used; installed: 1\.0\n  - toy-future 1\.0 in /.*/broken: "
    r"it requires jpsi-core>=99, but jpsi-core 0\.",
}


@pytest.mark.clause("python-errors-kept", "python-errors-alone")
@pytest.mark.parametrize(("name", "message"), BROKEN.items(), ids=BROKEN.keys())
def test_a_broken_plugin_names_its_error_and_does_not_affect_others(
    plugin_path: Callable[..., None], name: str, message: str
) -> None:
    plugin_path("broken", "0.2")
    before = set(sys.modules)

    for _ in range(2):
        with pytest.raises(PluginError, match=message):
            JobExecutor.get_instance(name)

    if name not in {"hookless", "mistyped"}:  # those could be imported
        assert not {it for it in set(sys.modules) - before if f"toy_{name}" in it}
    assert JobExecutor.get_instance("local").name == "local"
    assert run(JobExecutor.get_instance("sound")) == []
    assert JobExecutor.get_instance("acme").name == "acme"


def test_core_in_a_directory_is_ignored(plugin_path: Callable[..., None]) -> None:
    plugin_path("broken")

    assert JobExecutor.get_instance("local").version.release < (99,)


@pytest.mark.clause("python-versions")
def test_users_version_beats_the_sites_of_the_same_number(installed: Path, tmp_path: Path) -> None:
    for who in ("user", "site"):
        shutil.copytree(installed / "0.2", tmp_path / who / "plugins")
        (tmp_path / who / "plugins/acme_queues/parts/late.py").write_text(f"VERSION = {who!r}\n")
    configure(tmp_path / "config", f"plugin_path: [{tmp_path}/user/plugins]\n")
    configure(tmp_path / "site-config", f"plugin_path: [{tmp_path}/site/plugins, {installed}/0.1]\n")

    with pytest.raises(jpsi.InvalidJobException, match="this is user"):
        JobExecutor.get_instance("acme").submit(Job(JobSpec("/bin/true", name="report")))

    origins = [(it.version, it.chosen, it.why_not) for it in jpsi.plugins() if it.name == "acme"]
    assert origins == [
        ("0.2", True, None),
        ("0.2", False, "the same version comes earlier on the search path"),
        ("0.1", False, "0.2 is higher"),
    ]


def configure(home: Path, text: str) -> None:
    (home / "jpsi").mkdir(parents=True, exist_ok=True)
    (home / "jpsi/config.yaml").write_text(text)


def test_sites_higher_version_beats_the_users(installed: Path, tmp_path: Path) -> None:
    configure(tmp_path / "config", f"plugin_path: [{installed}/0.2]\n")
    configure(tmp_path / "site-config", f"plugin_path: [{installed}/0.3]\n")

    assert str(JobExecutor.get_instance("acme").version) == "0.3"


def test_conflict_in_one_place_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("toy-one", "toy-two"):
        lay(tmp_path / "place", name, "1", executors={"toy": "toy"}, files={"toy.py": ANY_EXECUTOR})
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path / "place"))

    with pytest.raises(PluginError, match=r"'toy' 1 is offered by toy-one and toy-two in /.*; uninstall one"):
        JobExecutor.get_instance("toy")


@pytest.mark.parametrize(("mode", "is_refused"), [(0o755, False), (0o777, True), (0o1777, True)])
def test_directory_that_others_may_write_to_is_listed_and_never_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_refused: bool
) -> None:
    place = tmp_path / "place"
    lay(place, executors={"toy": "toy_x"}, files={"toy_x.py": "raise RuntimeError('was loaded')\n"})
    place.chmod(mode)
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(place))
    reason = f"{place} can be written by others" if is_refused else "RuntimeError: was loaded"

    with pytest.raises(PluginError, match=reason):
        JobExecutor.get_instance("toy")

    (it,) = [plugin for plugin in jpsi.plugins(load=True) if plugin.origin == str(place)]
    assert it.chosen is not is_refused
    assert (reason in (it.why_not or "")) is is_refused
    assert (it.load_error is None) is is_refused


@pytest.mark.clause("python-descriptors")
def test_import_scans_nothing_and_imports_no_plugin(installed: Path) -> None:
    program = (
        "import sys\n"
        "opened = []\n"
        "def hook(event, args):\n"
        "    if event in ('open', 'os.listdir', 'os.scandir'):\n"
        "        opened.append(str(args[0]))\n"
        "sys.addaudithook(hook)\n"
        "import jpsi\n"
        "jpsi.Job(jpsi.JobSpec('/bin/true'))\n"
        "bad = [m for m in sys.modules if m.startswith(('jpsi_engine', 'jpsi.registry', 'pluggy', 'toy_',"
        " 'importlib_metadata', 'importlib.metadata', 'yaml', 'cattrs', 'packaging', 'platformdirs'))]\n"
        "bad += [name for name in opened if '.dist-info' in name or '/installed' in name]\n"
        "assert not bad, bad\n"
        "jpsi.JobExecutor('local')\n"
        "bad = ('yaml', 'cattrs', 'packaging', 'toy_', '_jpsi_plugin')\n"
        "bad = [m for m in sys.modules if m.startswith(bad)]\n"
        "assert not bad, bad\n"
    )
    environment = {**os.environ, "JPSI_PLUGIN_PATH": str(installed / "0.1")}

    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


OTHER_ENGINE = """
from jpsi.plugin import hookimpl
from jpsi.plugin.engine import Engine

MADE = []

@hookimpl
def local_transport():
    return Transport()

@hookimpl
def batch_engine(setup, hooks):
    MADE.append((setup.executor, setup.transport.name))
    return OwnEngine(setup)

@hookimpl
def process_engine(setup):
    return OwnEngine(setup)

@hookimpl
def open_files(transport):
    raise NotImplementedError

class Transport:
    is_local, name = True, "other"

class OwnEngine(Engine):
    def __init__(self, setup):
        self.publish = setup.publish
    def submit(self, submission):
        return "other-1"
    def track(self, job_id):
        from jpsi import Evidence, JobState, JobStatus
        self.publish(job_id, JobStatus(JobState.COMPLETED, exit_code=0, evidence=Evidence.QUEUE))
    def cancel(self, job_id):
        pass
"""


def lay_engine(place: Path, version: str, **more: list[str]) -> None:
    files = {"other_engine.py": OTHER_ENGINE}
    lay(place, "other-engine", version, files=files, engines={"batch": "other_engine"}, **more)


@pytest.mark.parametrize("name", ["toy", "local"])
def test_an_engine_of_another_distribution_replaces_jpsi_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Backends of command lines and `local` are carried out by what has the higher version."""
    lay_engine(tmp_path / "place", "9.5")
    files = {"my_toy.py": "from jpsi_testing.toy import *\n"}
    lay(tmp_path / "place", "my-toy", "1", files=files, executors={"toy": "my_toy"})
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path / "place"))
    job = Job(JobSpec("/no/such/program"))

    JobExecutor.get_instance(name).submit(job)

    status = job.wait(PATIENCE)
    assert status is not None
    assert (status.state, job.native_id) == (JobState.COMPLETED, "other-1")
    engines = {(it.distribution, it.chosen, it.why_not) for it in jpsi.plugins() if it.kind == "engine"}
    assert engines == {("other-engine", True, None), ("jpsi-engine", False, "9.5 is higher")}


@pytest.mark.parametrize(
    ("version", "requires"), [("0.1", []), ("9.5", ["jpsi-core>=99"]), ("9.5", ["jpsi-engine<0.1"])]
)
def test_an_older_or_unsuitable_engine_replaces_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    requires: list[str],
    config: jpsi.ExecutorConfig,
) -> None:
    lay_engine(tmp_path / "place", version, requires=requires)
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path / "place"))

    assert run(JobExecutor.get_instance("local", config=config)) == []

    (other,) = [it for it in jpsi.plugins() if it.distribution == "other-engine"]
    assert not other.chosen


def test_engine_that_pip_put_beside_a_plugin_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: jpsi.ExecutorConfig
) -> None:
    files = {"jpsi_engine/__init__.py": "raise RuntimeError\n"}
    lay(tmp_path, "jpsi-engine", "99", files=files, engines={"batch": "jpsi_engine"})
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path))

    assert run(JobExecutor.get_instance("local", config=config)) == []


def test_executor_that_requires_another_engine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(
        tmp_path,
        files={"mine.py": ANY_EXECUTOR},
        executors={"mine": "mine"},
        requires=["jpsi-core>=0.2", "jpsi-engine>=99"],
    )
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path))

    with pytest.raises(
        PluginError, match=r"my-plugin 1\.2 in .*: it requires jpsi-engine>=99, but jpsi-engine 0\."
    ):
        JobExecutor.get_instance("mine")


OWN_ENGINE = """
from jpsi.plugin import ExecutorConfig, hookimpl
from jpsi.plugin.engine import Engine

@hookimpl
def config_class():
    return ExecutorConfig

@hookimpl
def make_engine(setup):
    return OwnEngine(setup)

class OwnEngine(Engine):
    def __init__(self, setup):
        self.publish = setup.publish
    def submit(self, submission):
        assert list(submission.launch) == [], submission
        return "own-1"
    def track(self, job_id):
        from jpsi import Evidence, JobState, JobStatus
        self.publish(job_id, JobStatus(JobState.COMPLETED, exit_code=0, evidence=Evidence.QUEUE))
    def cancel(self, job_id):
        pass
"""


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "missing"])
def test_executor_with_an_engine_of_its_own_needs_no_jpsi_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused: bool
) -> None:
    """Nor its launcher `single`, for a job of one process that names none."""
    front = tmp_path / "front"
    if is_refused:
        lay(front, "jpsi-engine", "0.0.1", requires=["jpsi-core>=99"], engines={"batch": "nothing"})
    else:
        lay(front, "jpsi-engine", "0.0.1")
    monkeypatch.syspath_prepend(str(front))
    lay(tmp_path / "place", files={"mine.py": OWN_ENGINE}, executors={"mine": "mine"})
    monkeypatch.setenv("JPSI_PLUGIN_PATH", str(tmp_path / "place"))
    job = Job(JobSpec("/bin/true"))

    executor = JobExecutor.get_instance("mine")
    executor.submit(job)

    assert job.native_id == "own-1"
    with pytest.raises(jpsi.InvalidJobException, match=r"no launcher 'single'.*install jpsi-engine"):
        executor.submit(Job(JobSpec("/bin/true", launcher="single")))
    with pytest.raises(PluginError, match="executor 'local'"):
        JobExecutor.get_instance("local")
