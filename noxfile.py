"""Every check of this repository has a name here; `./dev NAME` runs it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests", "lint", "types", "docs", "build"]

# No session uses uv, and on a terminal it reads like a failure that there is none.
logging.getLogger("nox").addFilter(lambda it: it.msg != "uv binary not found.")

ROOT = Path(__file__).parent

# Behind `nohup ./dev test &` the shell ignores these, and so would all programs that a session starts.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# A container may set this: each of the thousands of programs that tests start would compile what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass(frozen=True)
class Package:
    """One distribution of this repository, with the settings of its pyproject.toml."""

    name: str
    settings: dict[str, Any]

    @property
    def path(self) -> str:
        """The folder of the distribution, relative to the root."""
        return f"packages/{self.name}"

    @property
    def has_code(self) -> bool:
        """True if the distribution has an import package; the distribution `jpsi` has none."""
        return "packages" in self.settings["tool"]["hatch"]["build"]["targets"]["wheel"]

    @property
    def modules(self) -> list[str]:
        """The names of its import packages, the main one first; jpsi-psij has two."""
        wheel = self.settings["tool"]["hatch"]["build"]["targets"]["wheel"]
        return [Path(source).name for source in wheel.get("packages", ())]

    @property
    def source(self) -> str:
        """The folder of its main import package, relative to the root."""
        return f"{self.path}/src/{self.modules[0]}"

    @property
    def module(self) -> str:
        """The name of its main import package."""
        return self.modules[0]

    @property
    def requirements(self) -> list[str]:
        """The requirements to run it."""
        return list(self.settings["project"].get("dependencies", ()))

    def needed_by(self, extra: str) -> list[str]:
        """Return the further requirements of an extra."""
        return list(self.settings["project"].get("optional-dependencies", {}).get(extra, ()))

    def built(self, ending: str) -> Path:
        """Return the built file in dist with this ending."""
        (path,) = ROOT.glob(f"dist/{self.stem}*{ending}")
        return path

    @property
    def stem(self) -> str:
        """The beginning of the names of its built files."""
        return f"{self.name.replace('-', '_')}-{self.settings['project']['version']}"


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


PACKAGES = {
    path.parent.name: Package(path.parent.name, _toml(path))
    for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
WITH_CODE = {name: package for name, package in PACKAGES.items() if package.has_code}
TOOLS = _toml(ROOT / "pyproject.toml")


def _workers(count: int) -> tuple[str, ...]:
    return f"--numprocesses={count}", "--dist=worksteal"


# More workers than processors, as many tests wait most of the time.
CPUS = os.cpu_count() or 1
WORKERS = _workers(min(12, 3 * CPUS))
# On a real batch system, most tests run in parallel; then those that stop it or cut connections run alone.
E2E_WORKERS = _workers(min(8, 2 * CPUS))
PARALLEL_OPTIONS = ("-m", "not alone", *E2E_WORKERS)
SERIAL_OPTIONS = ("-m", "alone")
# As many workers as pilots fit on that batch system at a time.
TWO_WORKERS = _workers(2)

# The timeouts of tests on batch systems. (For tests without one see pyproject.toml.)
# The longest kill clients four times, or thirty times with `--long`, and give each that goes on 400 seconds.
E2E_SECONDS = 30 * 60
LONG_E2E_SECONDS = 4 * 60 * 60


@nox.session
def demo(session: nox.Session) -> None:
    """Install jpsi and run the first job."""
    _install(session, "jpsi-cli")
    session.run("jpsi", "run", "-f", "examples/hello/job.yaml", *session.posargs, env=_private_homes(session))
    # The job's output is the last text on the terminal.
    logging.getLogger("nox").setLevel(logging.WARNING)


@nox.session(venv_backend="none")
def install(session: nox.Session) -> None:
    """Install jpsi and the named packages into the active environment: `./dev install slurm ssh`.

    Options go to pip.
    """
    environment = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if not environment:
        how = "python3 -m venv ~/jpsi-env && . ~/jpsi-env/bin/activate"
        session.error(f"no environment is active; try: {how}")
    options = [it for it in session.posargs if it.startswith("-")]
    names = [_own(session, it) for it in session.posargs if it not in options]
    wheels = _wheels(session, ["jpsi", *names], "standard")
    # pip of this environment, as that of the other may be old or missing
    python = f"{environment}/bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *options)
    session.run(*pip, *wheels, external=True, log=False)
    # pip would keep files that an earlier state of the clone installed under the same version
    session.run(*pip, "--force-reinstall", "--no-deps", *wheels, external=True, log=False)


def _own(session: nox.Session, requirement: str) -> str:
    """Return the requirement of a package of this repository, of which `jpsi-` may have been left out."""
    full = requirement if _name(requirement) in PACKAGES else f"jpsi-{requirement}"
    if _name(full) not in PACKAGES:
        session.error(f"no package {requirement}; there are {', '.join(PACKAGES)}")
    return full


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests and doctests of all packages; arguments are packages, paths and pytest's options.

    All packages are in one environment, and one pytest runs all tests: while some of them wait, others
    compute. A test of jpsi-core compares what each package imports with what it requires.
    """
    paths = [path for argument in session.posargs for path in _paths(argument)]
    options = [argument for argument in session.posargs if not _paths(argument)]
    chosen = paths or [path for name in WITH_CODE for path in _paths(name)]
    coverage = {"COVERAGE_FILE": str(Path(session.virtualenv.location, ".coverage"))}
    variables = {**_private_homes(session), **coverage}
    groups = [nox.project.dependency_groups(package.settings, "test") for package in WITH_CODE.values()]
    if _install(session, *WITH_CODE, *dict.fromkeys(it for group in groups for it in group)):
        # or else each worker would compile all that tests import, all at the same time
        def compile_modules(of: Sequence[str]) -> None:
            collect = ("pytest", *of, "--collect-only", "-qq")
            # pytest exits with 5 where there is no test
            session.run(*collect, env=variables, silent=True, log=False, success_codes=[0, 5])

        middle = len(chosen) // 2
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(compile_modules, filter(None, (chosen[:middle], chosen[middle:]))))
    session.run(
        "pytest",
        *chosen,
        *WORKERS,
        *options,
        env=variables,
        # Options such as `-k` may deselect all tests; pytest then exits 5.
        success_codes=[0, 5] if options else [0],
    )


def _paths(argument: str) -> list[str]:
    """Return the paths that an argument of `tests` names, relative to the root; none for an option."""
    if argument in WITH_CODE:
        return [PACKAGES[argument].source, f"{PACKAGES[argument].path}/tests"]
    return [argument] if argument.startswith("packages/") else []


@nox.session(venv_backend="none")
def e2e_slurm(session: nox.Session) -> None:
    """Run jobs on a real Slurm that ci/slurm brings up here (as root); `--long` runs all tests."""
    _skip_unless_root(session, "slurm")
    # without them, the tests of containers are skipped
    session.run("ci/containers/up", external=True, success_codes=(0, 1))
    _e2e(session, "slurm", "jpsi-slurm", "jpsi-launchers", choices=(PARALLEL_OPTIONS, SERIAL_OPTIONS))


@nox.session(venv_backend="none")
def e2e_launchers(session: nox.Session) -> None:
    """Start processes with real MPIs inside a real Slurm, which ci/ brings up here (as root); `--long`."""
    _skip_unless_root(session, "mpi")
    session.run("ci/mpi/up", external=True)
    _e2e(session, "slurm", "jpsi-launchers", "jpsi-slurm")


@nox.session(venv_backend="none")
def e2e_mpi(session: nox.Session) -> None:
    """Start processes with the real Open MPI and MPICH, which ci/mpi installs here (as root)."""
    _skip_unless_root(session, "mpi")
    session.run("ci/mpi/up", external=True)
    directory = Path("/opt/jpsi-ci/mpi")
    folders = ("e2e_mpi", "e2e", "tests")
    python = _e2e_environment(session, directory, "jpsi-launchers", folders=folders)
    shared = f"PYTHONPATH={directory / 'e2e'}:{directory / 'tests'}"
    _as_ordinary_user(session, python, directory / "e2e_mpi", [shared])


@nox.session(venv_backend="none")
def e2e_gridengine(session: nox.Session) -> None:
    """Run jobs on a real Grid Engine that ci/gridengine brings up here (as root); `--long` runs all tests."""
    # its jobs start only at the intervals of its scheduler, for which most tests wait
    _e2e(session, "gridengine", "jpsi-gridengine", choices=(TWO_WORKERS,))


@nox.session(venv_backend="none")
def e2e_oar(session: nox.Session) -> None:
    """Run jobs on a real OAR that ci/oar brings up here (as root); `--long` runs all tests."""
    # OAR takes seconds to start a job, in which most tests wait.
    choices = (("-m", "not alone", "--numprocesses=8", "--dist=worksteal"), SERIAL_OPTIONS)
    _e2e(session, "oar", "jpsi-oar", choices=choices)


@nox.session(venv_backend="none")
def e2e_ssh(session: nox.Session) -> None:
    """Run jobs on a real Slurm through a real sshd, which ci/ brings up here (as root); `--long`."""
    _skip_unless_root(session, "sshd")
    session.run("ci/sshd/up", external=True)
    try:
        others = ("jpsi-slurm", "jpsi-functions")
        _e2e(session, "slurm", "jpsi-ssh", *others, choices=(PARALLEL_OPTIONS, SERIAL_OPTIONS))
    finally:
        session.run("ci/sshd/down", external=True)


@nox.session(venv_backend="none")
def e2e_pilot(session: nox.Session) -> None:
    """Run jobs in pilots on a real Slurm, and over a real sshd, which ci/ brings up (as root); `--long`."""
    _skip_unless_root(session, "sshd")
    session.run("ci/sshd/up", external=True)
    others = ("jpsi-slurm", "jpsi-launchers", "jpsi-ssh")
    try:
        _e2e(session, "slurm", "jpsi-pilot", *others, choices=(TWO_WORKERS,), folders=("e2e", "tests"))
    finally:
        session.run("ci/sshd/down", external=True)


@nox.session(venv_backend="none")
def e2e_jobspec(session: nox.Session) -> None:
    """Run workflows on a real Slurm, which ci/ brings up here (as root); `--long` runs all tests."""
    packages = ("jpsi-jobspec", "jpsi-slurm")
    gpus = {"CI_SLURM_GPUS": "2"}
    _e2e(session, "slurm", *packages, choices=(E2E_WORKERS,), folders=("e2e", "tests"), settings=gpus)


@nox.session
def e2e_postgres(session: nox.Session) -> None:
    """Store records in a real PostgreSQL that ci/postgres brings up here; `--long` runs tests 1000 times."""
    options = [it for it in session.posargs if it != "--long"]
    is_long = options != list(session.posargs)
    chosen = () if is_long else ("-k", "postgresql")
    needed = nox.project.dependency_groups(PACKAGES["jpsi-records"].settings, "test")
    _install(session, "jpsi-records", *needed)
    url = session.run("ci/postgres/up", external=True, silent=True)
    try:
        server = {"JPSI_CI_POSTGRES": str(url).strip(), "JPSI_CI_TRIES": "1000" if is_long else "100"}
        variables = {**_private_homes(session), **server}
        session.run(
            *("pytest", "-q", "packages/jpsi-records/tests", *_time_limit(session), *E2E_WORKERS),
            *(*chosen, *options),
            env=variables,
        )
    finally:
        session.run("ci/postgres/down", external=True)


@nox.session(venv_backend="none")
def e2e_web(session: nox.Session) -> None:
    """Test the web pages of records with a real Chromium, which ci/chromium installs here (as root)."""
    _skip_unless_root(session, "chromium")
    session.run("ci/chromium/up", external=True)
    directory = Path("/opt/jpsi-ci/chromium")
    python = _e2e_environment(session, directory, "jpsi-records", group="browser")
    _as_ordinary_user(session, python, directory / "e2e", [f"PYTHONPATH={directory / 'e2e'}"], (E2E_WORKERS,))


@nox.session
def e2e_pbs(session: nox.Session) -> None:
    """Run jobs on the PBS or Torque whose commands are on PATH, as the current user."""
    _e2e_of_path(session, "jpsi-pbs", "qstat", "-B")


@nox.session
def e2e_lsf(session: nox.Session) -> None:
    """Run jobs on the LSF whose commands are on PATH, as the current user."""
    _e2e_of_path(session, "jpsi-lsf", "bqueues")


@nox.session
def e2e_flux(session: nox.Session) -> None:
    """Run jobs in the Flux instance of the environment, as the current user."""
    _e2e_of_path(session, "jpsi-flux", "flux", "jobs")


@nox.session
def e2e_pilot_flux(session: nox.Session) -> None:
    """Run jobs in pilots that are instances of the Flux on PATH, as the current user."""
    needed = ("jpsi-engine", "jpsi-flux", "jpsi-launchers")
    _e2e_of_path(session, "jpsi-pilot", "flux", "--version", tests="e2e/test_flux.py", others=needed)


def _e2e_of_path(
    session: nox.Session, name: str, *query: str, tests: str = "e2e", others: Sequence[str] = ()
) -> None:
    """Run the e2e tests of a package if the batch system of this machine answers a query."""
    if why := _why_unavailable(query):
        session.skip(why)
    _install(session, name, *others, *nox.project.dependency_groups(PACKAGES[name].settings, "test"))
    session.run(
        *("pytest", "-q", "-rsfE", f"{PACKAGES[name].path}/{tests}", *_time_limit(session), *session.posargs),
        env=_private_homes(session),
    )


def _time_limit(session: nox.Session) -> tuple[str, str]:
    """Return the options by which pytest ends tests on a real batch system that hang."""
    seconds = LONG_E2E_SECONDS if "--long" in session.posargs else E2E_SECONDS
    return f"--timeout={seconds}", "--timeout-method=signal"


def _why_unavailable(query: Sequence[str]) -> str:
    """Return why a query command fails; empty if it succeeds."""
    if shutil.which(query[0]) is None:
        return f"there is no {query[0]} on PATH"
    try:
        subprocess.run(query, capture_output=True, text=True, errors="replace", check=True, timeout=60)  # noqa: S603  one of ours
    except subprocess.TimeoutExpired:
        return f"`{shlex.join(query)}` does not answer"
    except subprocess.CalledProcessError as e:
        return f"`{shlex.join(query)}` says: {(e.stderr or e.stdout).strip() or e.returncode}"
    return ""


def _e2e(  # noqa: PLR0913  what a session has
    session: nox.Session,
    system: str,
    name: str,
    *others: str,
    choices: Iterable[Sequence[str]] = ((),),
    folders: Sequence[str] = ("e2e",),
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run the e2e tests of a package, as the user that ci/ makes, while the batch system is up.

    Args:
        session: the session.
        system: the batch system; ci/ brings it up with `settings`.
        name: the package.
        others: further packages that the tests need.
        choices: the options of pytest for each run.
        folders: the folders of the package that the tests need.
        settings: variables for the `up` script.
    """
    _skip_unless_root(session, system)
    directory = Path("/opt/jpsi-ci") / system
    session.run(f"ci/{system}/up", external=True, env=settings)
    try:
        python = _e2e_environment(session, directory, name, *others, folders=folders)
        shared = "PYTHONPATH=" + ":".join(str(directory / folder) for folder in folders)
        with _control_server(session, system) as control:
            _as_ordinary_user(session, python, directory / "e2e", [shared, *control], choices)
    finally:
        session.run(f"ci/{system}/down", external=True)


def _skip_unless_root(session: nox.Session, system: str) -> None:
    if os.geteuid() != 0:
        session.skip(f"ci/{system}/up installs packages, which needs root")


def _as_ordinary_user(
    session: nox.Session,
    python: str,
    tests: Path,
    variables: list[str],
    choices: Iterable[Sequence[str]] = ((),),
) -> None:
    """Run tests as the user that ci/ makes, once for each choice; as root, permission tests cannot fail."""
    for choice in choices:
        session.run(
            # what a shell starts in the background ignores SIGINT, and so would the programs of the tests
            *("runuser", "-u", CI_USER, "--", "env", "-i", "--default-signal"),
            *(f"HOME=/home/{CI_USER}", f"USER={CI_USER}", "LANG=C.UTF-8"),
            *("PATH=/usr/local/bin:/usr/bin:/bin", *variables),
            *(python, "-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider"),
            *("-o", "faulthandler_timeout=0"),
            # shows which tests are too slow for the short form
            *("--durations=10", "--durations-min=10"),
            *(str(tests), *_time_limit(session), *choice, *session.posargs),
            external=True,
            success_codes=[0, 5] if choice is SERIAL_OPTIONS or session.posargs else [0],
        )


CI_USER = "jpsi-ci"


def _e2e_environment(
    session: nox.Session,
    directory: Path,
    name: str,
    *others: str,
    folders: Iterable[str] = ("e2e",),
    group: str = "test",
) -> str:
    """Make an environment with packages, and folders of tests of the first, that an ordinary user can read.

    The dependency group `group` has the requirements of those tests. Return the Python of the environment.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    session.run("/usr/bin/python3", "-m", "venv", str(directory / "venv"), external=True)
    groups = nox.project.dependency_groups(PACKAGES[name].settings, group)
    external = [requirement for requirement in groups if _name(requirement) not in PACKAGES]
    packages = _wheels(session, [name, *others, "jpsi-cli", *groups], "standard")
    python = str(directory / "venv" / "bin" / "python")
    session.run(python, "-m", "pip", "install", "--quiet", *packages, *external, external=True)
    for folder in folders:
        shutil.copytree(ROOT / PACKAGES[name].path / folder, directory / folder)
    # the page with the first steps, and the module that runs its commands
    for file in ("docs/start.md", "packages/jpsi-core/tests/pages.py"):
        shutil.copy(ROOT / file, directory / "e2e")
    for path in (directory.parent, directory, *directory.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return python


@contextlib.contextmanager
def _control_server(session: nox.Session, system: str) -> Iterator[list[str]]:
    """Run the control server of a batch system, through which tests stop and start its parts.

    Yield the variables that name its socket; none if ci/ has no control server for the batch system.
    """
    if not (ROOT / "ci" / system / "control").exists():
        yield []
        return
    directory = Path("/run/jpsi-ci")
    directory.mkdir(mode=0o755, exist_ok=True)
    path = str(directory / f"{system}.sock")
    command = [f"ci/{system}/control", path, CI_USER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as control:  # noqa: S603  ours
        try:
            if control.stdout is None or control.stdout.readline() != "ready\n":
                session.error(f"{command[0]} did not start")
            yield [f"JPSI_CI_CONTROL={path}"]
        finally:
            control.terminate()


# The tests of psij-python that test its inside, which jpsi does not have.
_INSIDE_PSIJ = (
    "tests/plugins1",  # executors that are subclasses with templates
    "tests/test_executor_loading.py",  # executors of descriptors in the folder psij-descriptors
    "tests/test_executor.py::test_submit_script_generation",  # templates for a directory that is not there
)


@nox.session
def psij(session: nox.Session) -> None:
    """Run psij-python's own tests on jpsi-psij: `./dev psij FOLDER --executors=local,slurm`.

    FOLDER has the sources of psij-python with its `tests`; nothing of them is downloaded.
    """
    if not session.posargs or not Path(session.posargs[0], "tests", "conftest.py").exists():
        session.skip("name the folder with the sources of psij-python")
    folder, *options = session.posargs
    needed = ("filelock", "pytest>=8", "pytest-timeout>=2.3", "requests", "typeguard")
    _install(session, "jpsi-psij", *_BACKENDS, "jpsi-cli", *needed)
    if not any(it.startswith("--executors") for it in options):
        options.append("--executors=local,local:single,local:multiple")
    # it is relative, and the session leaves this folder
    home = str(Path(session.create_tmp()).absolute())
    session.chdir(folder)
    skipped = [f"--ignore={it}" for it in _INSIDE_PSIJ if "::" not in it]
    skipped += [f"--deselect={it}" for it in _INSIDE_PSIJ if "::" in it]
    # its tests make files there, and expect that this folder exists
    Path(home, ".psij", "test").mkdir(parents=True, exist_ok=True)
    variables = {"HOME": home, "XDG_STATE_HOME": f"{home}/state"}
    session.run("pytest", "tests", "-p", "no:cacheprovider", *skipped, *options, env=variables)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Compare jpsi with its competitors; the first argument names the benchmark: many, local, slurm, ..."""
    is_named = session.posargs and not session.posargs[0].startswith("-")
    name, *options = session.posargs if is_named else ["many", *session.posargs]
    _install(
        session,
        "jpsi-testing",
        "jpsi-cli[fake]",
        "jpsi-slurm",
        "jpsi-ssh",
        "jpsi-launchers",
        "jpsi-pilot[dask]",
        "jpsi-jobspec",
        "jpsi-records[postgresql]",
        "psij-python",
        *(
            ("jpsi-functions[submitit]", "dask-jobqueue", "executorlib[cluster]")
            if name == "functions"
            else ()
        ),
        "hyperqueue",
    )
    session.run("python", "-m", f"benchmarks.{name}", *options)


@nox.session
def chaos(session: nox.Session) -> None:
    """Inject random faults; `--long`, `--seed 7`, `--rounds 100`, `--only slurm:controller`."""
    words = zip(session.posargs, session.posargs[1:], strict=False)
    systems = {after.partition(":")[0] for word, after in words if word == "--only"}
    is_clean = True
    if systems != {"real"}:
        _install(session, *_BACKENDS, "jpsi-cli")
        is_clean = _succeeds(session, "python", "-m", "chaos", *session.posargs, env=_private_homes(session))
    if not systems or systems & {"", "real"}:
        if os.geteuid() == 0:
            is_clean = _chaos_on_slurm(session) and is_clean
        else:
            session.warn("the real Slurm is skipped: ci/slurm/up installs packages, which needs root")
    if not is_clean:
        session.error("jobs were lost, run twice, reported wrongly or stuck")


def _chaos_on_slurm(session: nox.Session) -> bool:
    """Run chaos on a real Slurm that ci/slurm brings up here, as the user that ci/ makes."""
    directory = Path("/opt/jpsi-ci/chaos")
    session.run("ci/slurm/up", external=True)
    try:
        python = _e2e_environment(session, directory, "jpsi-slurm")
        shutil.copytree(ROOT / "chaos", directory / "chaos", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (directory / "chaos", *directory.glob("chaos/*")):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
        with _control_server(session, "slurm") as control:
            return _succeeds(
                session,
                *("runuser", "-u", CI_USER, "--", "env", "-i", f"HOME=/home/{CI_USER}", "LANG=C.UTF-8"),
                *("PATH=/usr/local/bin:/usr/bin:/bin", f"PYTHONPATH={directory}", *control),
                *(python, "-m", "chaos", "--real", *session.posargs),
                external=True,
            )
    finally:
        session.run("ci/slurm/down", external=True)


def _succeeds(
    session: nox.Session, *command: str, env: Mapping[str, str] | None = None, external: bool = False
) -> bool:
    """Run a command that may fail; return True if it succeeds."""
    try:
        session.run(*command, env=env, external=external)
    except nox.command.CommandFailed:
        return False
    return True


_BACKENDS = (
    *("jpsi-testing", "jpsi-slurm", "jpsi-pbs", "jpsi-lsf", "jpsi-flux", "jpsi-gridengine", "jpsi-oar"),
)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and import layers; `--fix` fixes what ruff can fix."""
    _install(session, *_tools("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    sources = [str(ROOT.joinpath(package.source).parent) for package in WITH_CODE.values()]
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": ":".join(sources)})
    session.run("sh", "-n", "dev", external=True)
    session.run("bash", "-n", ".ci/run", external=True)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of every package, of benchmarks, chaos and examples with mypy."""
    extras = ("jpsi-cli[top]", "jpsi-functions[joblib,submitit]", "jpsi-pilot[dask]")
    _install(session, *PACKAGES, "jpsi-testing[pytest]", *extras, *_tools("types"))
    for package in WITH_CODE.values():
        session.run("mypy", *session.posargs, package.source)
    session.run("mypy", *session.posargs, "benchmarks")
    session.run("mypy", *session.posargs, "chaos")
    session.run("mypy", *session.posargs, *map(str, sorted(ROOT.glob("examples/*.py"))))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/html; a warning is an error."""
    # The reference is made from the packages themselves.
    _install(session, *PACKAGES, "jpsi-testing[pytest]", *_tools("docs"))
    session.run("sphinx-build", "-q", "-W", "--keep-going", *session.posargs, "docs", "docs/_build/html")


@nox.session
def build(session: nox.Session) -> None:
    """Build sdist and wheel of every package into dist, and try each in an empty environment."""
    _install(session, *_tools("build"))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for package in PACKAGES.values():
        session.run("python", "-m", "build", "--no-isolation", "--outdir", "dist", package.path, silent=True)
    session.run("twine", "check", "--strict", *map(str, sorted(ROOT.glob("dist/*"))))
    problems = [f"{package.name}: {it}" for package in PACKAGES.values() for it in _archive_problems(package)]
    if problems:
        session.error(*problems)
    for package in PACKAGES.values():
        _try_wheel(session, package)
    _try_core_alone(session)
    _try_readme(session)
    _try_wheel_folder(session)


def _archive_problems(package: Package) -> Iterator[str]:
    """Yield what the wheel and the sdist of a package lack, or must not contain."""
    with zipfile.ZipFile(package.built(".whl")) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(package.built(".tar.gz")) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    metadata = f"{package.stem}.dist-info"
    typed = {f"{package.module}/py.typed"} if package.has_code else set()
    for name in {*typed, f"{metadata}/licenses/LICENSE"} - in_wheel:
        yield f"the wheel lacks {name}"
    for name in {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} - in_sdist:
        yield f"the sdist lacks {name}"
    for name in {name.partition("/")[0] for name in in_wheel} - {*package.modules, metadata}:
        yield f"the wheel contains {name}, which does not belong there"
    if "hatchling" not in map(_name, package.settings["build-system"]["requires"]):
        yield "its pyproject.toml does not say that hatchling builds it"


def _try_wheel(session: nox.Session, package: Package) -> None:
    """Import a package and load its entry points in an environment made of wheels alone."""
    python = _empty_environment(session, package.name, "--no-seed")
    _install_wheels(session, python, package.name)
    module = package.module if package.has_code else "jpsi"
    session.run(python, "-c", TRY_DISTRIBUTION, package.name, module, "", external=True, log=False)
    # A fake has requirements of its own; `jpsi speak` reads and answers as a fake does.
    groups = {"jpsi.fakes", "jpsi.speakers"} & package.settings["project"].get("entry-points", {}).keys()
    if groups:
        _install_wheels(session, python, package.name, "jpsi-testing")
    for group in sorted(groups):
        session.run(python, "-c", TRY_DISTRIBUTION, package.name, module, group, external=True, log=False)


def _try_core_alone(session: nox.Session) -> None:
    """Check that jpsi-core works without the other packages of jpsi."""
    python = _empty_environment(session, "core-alone", "--no-seed")
    _install_wheels(session, python, "jpsi-core")
    session.run(python, f"{PACKAGES['jpsi-core'].path}/e2e/alone.py", external=True, log=False)


def _try_readme(session: nox.Session) -> None:
    """Install with the commands of the README for a clone, and run a job."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"^\./dev install\b.*$", readme, re.MULTILINE)
    if match is None:
        session.error("README.md has no line `./dev install ...` for a clone")
    _try_commands(session, "readme", match[0])
    _try_commands(session, "one-folder", "python -m pip install --quiet packages/jpsi-cli")


def _try_wheel_folder(session: nox.Session) -> None:
    """Install from wheels that are outside the clone, by their paths and by their names."""
    wheels = [PACKAGES[name].built(".whl") for name in PACKAGES]
    with tempfile.TemporaryDirectory() as folder:
        for wheel in wheels:
            shutil.copy(wheel, folder)
        paths = [str(Path(folder, PACKAGES[name].built(".whl").name)) for name in _local_packages(["jpsi"])]
        pip = "python -m pip install --quiet"
        _try_commands(session, "wheel-files", f"{pip} {shlex.join(paths)}", folder)
        _try_commands(session, "wheel-folder", f"{pip} --find-links {shlex.quote(folder)} jpsi", folder)


def _try_commands(session: nox.Session, name: str, install: str, wheels: str = "") -> None:
    """Run a command that installs jpsi into an empty environment, and a job; then do what a message advises.

    Args:
        session: the session.
        name: the name of the environment.
        install: the command, for a shell in which the environment is active.
        wheels: what a user puts in place of DIRECTORY in the message.
    """
    activate = shlex.quote(str(Path(_empty_environment(session, name)).with_name("activate")))

    def output(command: str, code: int = 0) -> str:
        script = f". {activate} && {command}"
        homes = _private_homes(session)
        run = session.run("sh", "-c", script, env=homes, external=True, silent=True, success_codes=[code])
        return str(run)

    output(install)
    output("python -m pip check")
    if "the job has run\n" not in (printed := output("jpsi run -- echo the job has run")):
        session.error(f"{name}: the job printed {printed!r}")
    advice = output("jpsi queues -x pbs", 2).partition("; try: ")[2].strip()
    output(advice.replace("DIRECTORY", wheels))
    if "jpsi-pbs" not in (printed := output("jpsi plugins --kind executor")):
        session.error(f"{name}: `{advice}` did not install jpsi-pbs: {printed}")
    session.log(f"{name}: installed, a job has run, and the advice is good: {advice}")


def _empty_environment(session: nox.Session, name: str, *options: str) -> str:
    """Make an empty environment, with pip unless the options say otherwise; return its Python."""
    environment = Path(session.create_tmp(), name).absolute()
    session.run("virtualenv", "--quiet", "--clear", *options, str(environment))
    return str(environment / "bin" / "python")


def _install_wheels(session: nox.Session, python: str, *names: str) -> None:
    """Install packages that were built into dist, with their requirements, and check that all fit."""
    # Packages of this repository are installed from files, so that none comes from an index.
    wheels = [str(PACKAGES[name].built(".whl")) for name in _local_packages(names)]
    # the pip of the session, which is compiled already; that of each environment would have to be
    pip = ("python", "-m", "pip", "--python", python)
    session.run(*pip, "install", "--quiet", "--no-compile", *wheels)
    session.run(*pip, "check")


TRY_DISTRIBUTION = """\
import importlib, importlib.metadata, subprocess, sys, sysconfig

name, module, group = sys.argv[1:]  # an empty group means all groups without further requirements
importlib.import_module(module)
print(f"{name}: import {module}")
for entry_point in importlib.metadata.distribution(name).entry_points:
    # pytest and submitit load their plugins, and are not installed here; fakes are tried separately
    untried = {"pytest11", "submitit", "jpsi.fakes", "jpsi.speakers"}
    if entry_point.group not in {group} if group else entry_point.group in untried:
        continue
    entry_point.load()
    print(f"{name}: {entry_point.group}: {entry_point.name} = {entry_point.value}")
    if entry_point.group == "console_scripts":
        script = f"{sysconfig.get_path('scripts')}/{entry_point.name}"
        subprocess.run([script, "--help"], check=True, stdout=subprocess.DEVNULL)
"""


def _tools(group: str) -> list[str]:
    return list(nox.project.dependency_groups(TOOLS, group))


def _private_homes(session: nox.Session) -> dict[str, str]:
    """Return variables that separate jobs from the user's own configuration and files of jpsi."""
    private = Path(session.virtualenv.location, "homes")
    private.mkdir(mode=0o700, exist_ok=True)
    return {f"XDG_{kind}_HOME": str(private / kind.lower()) for kind in ("CACHE", "CONFIG", "STATE")}


def _install(session: nox.Session, *requirements: str) -> bool:
    """Install exactly these requirements into the session's environment; return True if it is a new one.

    Packages of this repository are installed as editable. A stamp file in the environment records its
    requirements: if they have not changed, nothing is done; otherwise, or if the environment was moved, it is
    created again.
    """
    location = Path(session.virtualenv.location)
    stamp = location / "installed.txt"
    others = [requirement for requirement in requirements if _name(requirement) not in PACKAGES]
    settings = [str(PACKAGES[name].settings) for name in _local_packages(requirements)]
    expected = "\n".join([str(location), sys.base_prefix, sys.version, *requirements, *settings])
    if stamp.exists():
        if stamp.read_text(encoding="utf-8") == expected:
            return False
        shutil.rmtree(location)
        session.virtualenv.create()
    stamp.write_text("unfinished", encoding="utf-8")
    # Python compiles modules on import, and imports only a fraction of them.
    session.install("--no-compile", *_wheels(session, requirements, "editable"), *others)
    for name in _local_packages(requirements):
        _mark_editable(location, PACKAGES[name])
    stamp.write_text(expected, encoding="utf-8")
    return True


def _wheels(session: nox.Session, requirements: Iterable[str], version: str) -> list[str]:
    """Build wheels of the packages of this repository that are in the requirements or required by them.

    The version is hatchling's: `standard`, or `editable` for one that refers to this clone. pip would take
    ten times as long, as it makes a build environment for each.
    """
    # sessions may run in parallel
    folder = ROOT / ".nox" / "wheels" / re.sub(r"\W+", "-", session.name).strip("-") / version
    built = []
    for name, extras in _local_packages(requirements).items():
        build = ("-m", "hatchling", "build", "--target", f"wheel:{version}", "--directory", str(folder))
        # that of the session would log each folder
        with contextlib.chdir(PACKAGES[name].path):
            session.run(sys.executable, *build, external=True, silent=True, log=False)
        built.append(f"{folder / PACKAGES[name].stem}-py3-none-any.whl{extras}")
    return built


def _mark_editable(environment: Path, package: Package) -> None:
    """Mark an installed package as editable, as pip marks one that it has built itself.

    pytest reads the mark before it shows how the assertions of a plugin failed.
    """
    (metadata,) = environment.glob(f"lib/python*/site-packages/{package.stem}.dist-info")
    origin = {"url": (ROOT / package.path).as_uri(), "dir_info": {"editable": True}}
    (metadata / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")


def _local_packages(requirements: Iterable[str]) -> dict[str, str]:
    """Return the packages of this repository in the requirements, and those that they require, with extras.

    Packages with extras come first: otherwise pip would look in an index for a package that another requires.
    """
    extras: dict[str, set[str]] = {}
    pending = list(requirements)
    while pending:
        requirement = pending.pop()
        name = _name(requirement)
        if name in PACKAGES:
            if name not in extras:
                extras[name] = set()
                pending += PACKAGES[name].requirements
            for extra in Requirement(requirement).extras - extras[name]:
                extras[name].add(extra)
                pending += PACKAGES[name].needed_by(extra)
    first = sorted(extras.items(), key=lambda it: not it[1])
    return {name: f"[{','.join(sorted(names))}]" if names else "" for name, names in first}


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)
