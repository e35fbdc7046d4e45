"""Tries what jpsi-core promises where nothing else of jpsi is installed; `./dev build` runs it there.

It needs no pytest, since an environment with pytest is not empty. The first assertion that fails ends it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path

import jpsi

PATIENCE = 60

DOCUMENT = """\
version: 1
resources: [{type: slot, count: 1, label: task, with: [{type: core, count: 1}]}]
tasks: [{command: [/bin/sh, -c, echo hello], slot: task, count: {per_slot: 1}}]
attributes: {system: {duration: 60, job: {name: greeting}}}
"""

#: An executor with an engine of its own: no transport, no spool, no runner.
OWN_ENGINE = '''\
import subprocess
import threading

from jpsi.plugin import Evidence, ExecutorConfig, JobState, SubmitException, hookimpl
from jpsi.plugin.engine import Engine
from jpsi import JobStatus


@hookimpl
def config_class():
    return ExecutorConfig


@hookimpl
def make_engine(setup):
    return OwnEngine(setup.publish)


class OwnEngine(Engine):
    """Runs each job as a process of this one."""

    def __init__(self, publish):
        self.publish = publish
        self.processes = {}

    def problems(self, spec):
        return ["it has no pre_launch here"] if spec.pre_launch else []

    def submit(self, submission):
        spec = submission.spec
        command = [str(spec.executable), *(spec.arguments or [])]
        try:
            process = subprocess.Popen(command)
        except OSError as e:
            raise SubmitException(str(e)) from e
        self.processes[submission.job_id] = process
        return str(process.pid)

    def track(self, job_id):
        threading.Thread(target=self._follow, args=[job_id]).start()

    def _follow(self, job_id):
        self.publish(job_id, JobStatus(JobState.ACTIVE))
        code = self.processes[job_id].wait()
        state = JobState.FAILED if code else JobState.COMPLETED
        self.publish(job_id, JobStatus(state, exit_code=code, evidence=Evidence.QUEUE))

    def cancel(self, job_id):
        self.processes[job_id].terminate()

    def native_ids(self):
        return [str(it.pid) for it in self.processes.values() if it.poll() is None]
'''

#: A backend that works by command lines: it has no engine, and needs the one that is installed.
COMMANDS = """\
from jpsi.plugin import Command, Directive, JobState, Observation, Script, hookimpl


@hookimpl
def render_script(spec, context):
    return Script([Directive.of("#QUEUE", "name", spec.name)])


@hookimpl
def submit(script):
    return Command(["sh", "-c", "grep -c '^#QUEUE.*greeting'"], stdin=script.text)


@hookimpl
def parse_submit(result):
    return result.checked().stdout.strip()


@hookimpl
def query(native_ids):
    return Command(["echo", *native_ids])


@hookimpl
def parse_status(result):
    ended = Observation(state=JobState.COMPLETED, native_state="ENDED", exit_code=0)
    return {native_id: ended for native_id in result.checked().stdout.split()}


@hookimpl
def cancel(native_ids):
    return Command(["true"])
"""

#: What carries out the jobs of such backends, in place of jpsi-engine.
OTHER_ENGINE = '''\
import subprocess

from jpsi import JobStatus
from jpsi.plugin import CommandResult, Evidence, Site, SubmitContext, hookimpl
from jpsi.plugin.engine import Engine


class Here:
    is_local = True

    def run(self, command, keep=None, ready=None):
        done = subprocess.run(command.argv, input=command.stdin, capture_output=True, text=True)
        return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def close(self):
        pass


@hookimpl
def local_transport():
    return Here()


@hookimpl
def batch_engine(setup, hooks):
    return OtherEngine(setup, hooks)


@hookimpl
def process_engine(setup):
    raise NotImplementedError


@hookimpl
def open_files(transport):
    raise NotImplementedError


class OtherEngine(Engine):
    """An engine that submits a job, and polls its status once."""

    def __init__(self, setup, hooks):
        self.setup, self.hooks = setup, hooks
        self.site = Site(config=setup.config)
        self.ids = {}

    def submit(self, submission):
        job_id, spec = submission.job_id, submission.spec
        context = SubmitContext(site=self.site, job_id=job_id, tag=job_id)
        script = self.hooks.render_script(spec=spec, context=context)
        command = self.hooks.submit(script=script, spec=spec, context=context)
        result = self.setup.transport.run(command)
        self.ids[job_id] = self.hooks.parse_submit(result=result, context=context)
        return self.ids[job_id]

    def track(self, job_id):
        native_id = self.ids[job_id]
        result = self.setup.transport.run(self.hooks.query(native_ids=[native_id], site=self.site))
        found = self.hooks.parse_status(result=result, native_ids=[native_id], site=self.site)[native_id]
        metadata = {"other.state": found.native_state}
        status = JobStatus(
            found.state, exit_code=found.exit_code, evidence=Evidence.QUEUE, metadata=metadata
        )
        self.setup.publish(job_id, status)

    def cancel(self, job_id):
        raise NotImplementedError
'''


def main() -> None:
    """Try everything, in an environment and a home of no one else."""
    with tempfile.TemporaryDirectory() as text, contextlib.chdir(text):
        place = Path(text).resolve()
        for name in ("CACHE", "CONFIG", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = str(place / name.lower())
        os.environ["XDG_CONFIG_DIRS"] = str(place / "site")
        os.environ.pop("JPSI_CONFIG", None)
        os.environ.pop("JPSI_PLUGIN_PATH", None)
        for trial in TRIALS:
            trial(place)
            print(f"jpsi-core alone: {(trial.__doc__ or '').partition('.')[0]}")  # noqa: T201  a program


def check_installed(_: Path) -> None:
    """Check that no other package of jpsi is installed."""
    names = {it.metadata["Name"] for it in distributions()}
    assert {it for it in names if it.startswith("jpsi")} == {"jpsi-core"}, names
    assert importlib.util.find_spec("jpsi_engine") is None
    assert importlib.util.find_spec("jpsi_testing") is None


def documents(_: Path) -> None:
    """Check that specs and documents are read, validated and written."""
    spec = jpsi.read_document(DOCUMENT)
    assert (spec.name, spec.arguments) == ("greeting", ["-c", "echo hello"])
    for as_json in (False, True):
        assert jpsi.read_document(jpsi.write_document(spec, as_json=as_json)) == spec
    with raises(jpsi.DocumentError, "executabel", "arguments"):
        jpsi.read_document("executabel: /bin/true\narguments: 3\n")
    with raises(jpsi.InvalidJobException, "executable"):
        jpsi.write_document(jpsi.JobSpec(arguments=["x"]))


def local(_: Path) -> None:
    """Check that the executor local is refused with the name of the package to install."""
    with raises(jpsi.PluginError, "no executor 'local'", "install jpsi-engine"):
        jpsi.JobExecutor.get_instance("local")
    with raises(jpsi.PluginError, "install jpsi-engine"):
        jpsi.JobExecutor()


def other_distribution_engine(place: Path) -> None:
    """Check that an engine of another distribution is registered, listed and used."""
    with plugin(place, "my-cluster", "1.5", OWN_ENGINE, "jpsi.executors", "mine", ["jpsi-core>=0.2"]):
        listed = [(it.kind, it.name, it.version, it.distribution) for it in jpsi.plugins(load=True)]
        assert listed == [("executor", "mine", "1.5", "my-cluster")], listed
        assert [it.load_error for it in jpsi.plugins(load=True)] == [None]

        executor = jpsi.JobExecutor.get_instance("mine", ">= 1")
        states: list[jpsi.JobState] = []
        job = jpsi.Job(jpsi.JobSpec("/bin/true"))
        job.set_job_status_callback(lambda _, status: states.append(status.state))

        executor.submit(job)
        assert (job.wait(PATIENCE) or job.status).state is jpsi.JobState.COMPLETED, job.status
        assert states == [jpsi.JobState.QUEUED, jpsi.JobState.ACTIVE, jpsi.JobState.COMPLETED], states
        assert str(executor.version) == "1.5"
        assert ended(executor, jpsi.JobSpec("/bin/sh", ["-c", "exit 3"])).exit_code == 3
        job = jpsi.Job(jpsi.JobSpec("/bin/sleep", ["60"]))
        executor.submit(job)
        job.cancel()
        assert (job.wait(PATIENCE) or job.status).final
        with raises(jpsi.InvalidJobException, "no pre_launch here"):
            executor.submit(jpsi.Job(jpsi.JobSpec("/bin/true", pre_launch="x.sh")))
        with raises(jpsi.InvalidJobException, "no launcher 'mpirun'", "install jpsi-launchers"):
            executor.submit(jpsi.Job(jpsi.JobSpec("/bin/true", launcher="mpirun")))


def other_engine(place: Path) -> None:
    """Check that a backend of command lines works with another engine than jpsi-engine."""
    with plugin(place, "my-queue", "2.0", COMMANDS, "jpsi.executors", "queue", ["jpsi-core>=0.2"]):
        with raises(jpsi.PluginError, "no engine 'batch'", "install jpsi-engine"):
            jpsi.JobExecutor.get_instance("queue")

        with plugin(place, "other-engine", "7.1", OTHER_ENGINE, "jpsi.engines", "batch"):
            listed = {(it.kind, it.name, it.version) for it in jpsi.plugins(load=True)}
            assert ("engine", "batch", "7.1") in listed, listed
            status = ended(jpsi.JobExecutor.get_instance("queue"), jpsi.read_document(DOCUMENT))

        assert (status.state, status.metadata["other.state"]) == (jpsi.JobState.COMPLETED, "ENDED"), status


def incompatible_versions(place: Path) -> None:
    """Check that a plugin and an engine for another jpsi-core are refused, with both versions named."""
    needed, message = ["jpsi-core>=99"], "it requires jpsi-core>=99, but jpsi-core 0."
    with (
        plugin(place, "my-cluster", "3.0", OWN_ENGINE, "jpsi.executors", "mine", needed),
        raises(jpsi.PluginError, "my-cluster 3.0", message),
    ):
        jpsi.JobExecutor.get_instance("mine")
    with (
        plugin(place, "other-engine", "9.0", OTHER_ENGINE, "jpsi.engines", "batch", needed),
        plugin(place, "my-queue", "2.0", COMMANDS, "jpsi.executors", "queue"),
        plugin(place, "my-cluster", "1.5", OWN_ENGINE, "jpsi.executors", "mine"),
    ):
        with raises(jpsi.PluginError, "other-engine 9.0", message):
            jpsi.JobExecutor.get_instance("queue")
        # which needs no other
        assert ended(jpsi.JobExecutor.get_instance("mine"), jpsi.JobSpec("/bin/true")).exit_code == 0


TRIALS = (check_installed, documents, local, other_distribution_engine, other_engine, incompatible_versions)


def ended(executor: jpsi.JobExecutor, spec: jpsi.JobSpec) -> jpsi.JobStatus:
    """Run a job to its end."""
    job = jpsi.Job(spec)
    executor.submit(job)
    status = job.wait(PATIENCE)
    assert status is not None, job.status
    return status


@contextlib.contextmanager
def plugin(
    place: Path, name: str, version: str, text: str, group: str, offered: str, requires: Sequence[str] = ()
) -> Iterator[None]:
    """Have a distribution of one module in a directory of the plugin path, as pip lays it out."""
    module = name.replace("-", "_")
    directory = place / f"{name}-{version}-{len(requires)}"
    info = directory / f"{module}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    needs = "".join(f"Requires-Dist: {it}\n" for it in requires)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
    (info / "entry_points.txt").write_text(f"[{group}]\n{offered} = {module}\n")
    (directory / f"{module}.py").write_text(text)
    before = os.environ.get("JPSI_PLUGIN_PATH", "")
    os.environ["JPSI_PLUGIN_PATH"] = os.pathsep.join(filter(None, [before, str(directory)]))
    try:
        yield
    finally:
        os.environ["JPSI_PLUGIN_PATH"] = before


@contextlib.contextmanager
def raises(error: type[Exception], *parts: str) -> Iterator[None]:
    """Check that the block raises an error whose message has all these parts."""
    message = ""
    try:
        yield
    except error as e:
        message = str(e)
    assert message, f"no {error.__name__} was raised"
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in: {message}"


if __name__ == "__main__":
    sys.exit(main())
