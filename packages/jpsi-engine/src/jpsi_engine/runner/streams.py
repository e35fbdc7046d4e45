"""Renders the lines of the runner's script that open the job's streams, or tell a launcher what to open.

`script` puts them into the script. If a file cannot be opened, the job ends with that
stream as its phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jpsi.plugin import word
from jpsi_engine.runner.claim_and_markers import JOB_UMASK, PRIVATE_UMASK
from jpsi_engine.runner.script_input import Run, home_path_word
from jpsi_engine.verdict import POST_LAUNCH, PRE_LAUNCH, SETUP_CODE, STDERR, STDIN, STDOUT


def open_streams(run: Run) -> Iterator[str]:
    """Yield the lines that open the streams; standard error becomes descriptor 8."""
    if run.sources_scripts:
        yield from _launcher_streams(run)
        return
    # Standard error stays the runner's own until the launch: the shell reports there which signals end
    # processes.
    stdin, stdout, stderr = run.spec.stdin_path, run.spec.stdout_path, run.spec.stderr_path
    yield _open("<", str(stdin or "/dev/null"), STDIN)
    stdout_line = _open(_writing(run, stdout), str(stdout or f"{run.folder}/{STDOUT}"), STDOUT)
    yield from _under_job_umask(stdout, stdout_line)
    stderr_line = _open_stderr(run, _writing(run, stderr), f"_jpsi_end {STDERR} {SETUP_CODE}")
    yield from _under_job_umask(None if stderr == stdout else stderr, stderr_line)


def _writing(run: Run, path: Path | None) -> str:
    """Return the operator that opens an output; a file in the job's folder keeps that of earlier attempts."""
    return ">>" if path is None and run.attempt > 1 else ">"


def _under_job_umask(path: Path | None, line: str) -> Iterator[str]:
    """Yield a line that makes a file, under the job's umask if the user has given the file's path."""
    yield from [line] if path is None else [JOB_UMASK, line, PRIVATE_UMASK]


def reopen_stderr(run: Run) -> str:
    """Return the line that reopens standard error, whatever a script has done to descriptor 8."""
    if run.sources_scripts:
        return "command exec 8>&2 || exec 8>/dev/null"
    return _open_stderr(run, ">>", f"exit {SETUP_CODE}")


def _launcher_streams(run: Run) -> Iterator[str]:
    """Yield the lines that tell a launcher which scripts to source and which files to open."""
    spec = run.spec
    yield _open("<", "/dev/null", STDIN)
    yield "exec 8>&2"
    for name, script in ((PRE_LAUNCH, spec.pre_launch), (POST_LAUNCH, spec.post_launch)):
        yield f"_jpsi_{name}={'' if script is None else _absolute(script)}"
    yield stream_variable(STDIN, spec.stdin_path or Path("/dev/null"))
    for stream, path in ((STDOUT, spec.stdout_path), (STDERR, spec.stderr_path)):
        if path is None:  # made by the runner, the file is readable for the user only
            yield f"true {_writing(run, path)}{word(f'{run.folder}/{stream}')} || :"
        yield stream_variable(stream, path or Path(run.folder, stream))


def stream_variable(stream: str, path: Path) -> str:
    """Return the line that tells a launcher which file a stream of the job is."""
    return f"_jpsi_{stream}={_absolute(path)}"


def _absolute(path: Path) -> str:
    is_rooted = path.is_absolute() or path.parts[:1] == ("~",)
    return home_path_word(str(path)) if is_rooted else f'"$PWD"/{word(str(path))}'


def _open_stderr(run: Run, operator: str, otherwise: str) -> str:
    stdout, stderr = run.spec.stdout_path, run.spec.stderr_path
    if stderr is not None and stderr == stdout:
        return "exec 8>&1"
    path = home_path_word(str(stderr or f"{run.folder}/{STDERR}"))
    return f"command exec 8{operator}{path} || {otherwise}"


def _open(operator: str, path: str, phase: str) -> str:
    # `command` keeps a failing redirection from ending the shell (POSIX XCU 2.8.1).
    return f"command exec {operator}{home_path_word(path)} || _jpsi_end {phase} {SETUP_CODE}"
