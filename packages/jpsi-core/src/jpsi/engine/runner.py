"""The one runner: renders the POSIX shell script that carries out one attempt of one job.

The script claims the attempt, enters the directory, opens the streams, sets the environment, sources
pre_launch, launches, sources post_launch, and leaves the exit code as a marker. Whatever the scripts of
the user do to the shell they are sourced in, marker and exit code are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from jpsi.contract.shell import ShellLine, expanding, path_word, word
from jpsi.model.references import Reference, expand, has_reference, pieces
from jpsi.model.spec import JobSpec

#: The exit code of a job that could not be set up (as env(1), nohup(1) and timeout(1) do).
SETUP_CODE = 125
NOT_EXECUTABLE_CODE = 126
NOT_FOUND_CODE = 127

#: Phases in which the runner can end, as they stand in the exit marker.
RAN = "run"
POST_LAUNCH = "post_launch"
PRE_LAUNCH = "pre_launch"
DIRECTORY = "directory"
STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"
EXECUTABLE = "executable"

# Variables that a shell sets, reads or guards itself (dash(1), bash(1), POSIX XCU 2.5.3): they reach the
# job through env(1) and are never taken from the shell.
_SHELL_OWNED = frozenset(
    {
        "_",
        "DIRSTACK",
        "ENV",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "FUNCNEST",
        "GROUPS",
        "HISTCMD",
    }
    | {
        "IFS",
        "LINENO",
        "OLDPWD",
        "OPTARG",
        "OPTERR",
        "OPTIND",
        "PIPESTATUS",
        "POSIXLY_CORRECT",
        "PPID",
        "PS1",
    }
    | {"PS2", "PS4", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM", "UID"}
)
# Of these, what a shell passes on as any other variable.
_PASSED_ON = frozenset({"PWD", "OLDPWD"})
_SIGNALS = ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "XCPU")


@attrs.frozen(slots=True, kw_only=True)
class Run:
    """Everything that the script of one attempt depends on."""

    job_id: str
    attempt: int
    #: The job's folder in the spool.
    folder: str
    #: The directory of markers.
    events: str
    #: The directory to run in; may start with `~/`.
    directory: str
    spec: JobSpec
    #: What the launcher answered.
    launch: Sequence[ShellLine]


def render(run: Run) -> str:
    """The text of the script.

    A pure function: the same attempt always gives the same text.
    """
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Run) -> Iterator[str]:
    yield "#!/bin/sh"
    yield f"# Attempt {run.attempt} of jpsi job {run.job_id}; the intent beside it says what was asked."
    yield f"_jpsi_folder={word(run.folder)}"
    yield f"_jpsi_mark={word(f'{run.events}/{run.job_id}.{run.attempt}')}"
    yield _claim(run.attempt)
    if _mentions_home(run):
        # HOME may be one of the variables that the job is given.
        yield f"{_HOME}=${{HOME-}}"
    yield _FUNCTIONS
    yield from _directory(run.spec, run.directory)
    yield from _streams(run)
    command = _Command(run.spec)
    yield from command.setup
    if run.spec.pre_launch is None and run.spec.post_launch is None:
        yield from command.before
        yield command.arguments
        yield from _launch(run)
        yield "_jpsi_code=$?"
        yield from command.after
        yield f'_jpsi_end {RAN} "$_jpsi_code"'
    else:
        yield from _sourcing(run, command)


_HOME = "_jpsi_home"


def _mentions_home(run: Run) -> bool:
    spec = run.spec
    streams = (spec.stdin_path, spec.stdout_path, spec.stderr_path)
    paths = (run.directory, *streams, spec.pre_launch, spec.post_launch)
    return any(str(path).startswith("~") for path in paths)


def _path(path: str) -> str:
    return path_word(path, home=_HOME)


def _claim(attempt: int) -> str:
    return f"""\
# Whoever makes the claim runs this attempt, nobody else ever does.
set -C
echo $$ >{_FOLDER}/claim.{attempt} || exit {SETUP_CODE}
set +C
exec 9>&-"""


_FOLDER = '"$_jpsi_folder"'
_FUNCTIONS = "\n".join(
    [
        "# A marker is an empty file whose name is the fact; one that cannot be written stops nothing.",
        '_jpsi_note() { true >"$_jpsi_mark.$1" || :; }',
        '_jpsi_end() { _jpsi_note "exit.$1.$2"; exit "$2"; }',
        f"trap '_jpsi_note signalled' {' '.join(_SIGNALS)}",
    ]
)


def _directory(spec: JobSpec, directory: str) -> Iterator[str]:
    target = _path(directory)
    if spec.create_directory:
        yield f"mkdir -p -- {target}"
    yield f"cd {target} || _jpsi_end {DIRECTORY} {SETUP_CODE}"


def _streams(run: Run) -> Iterator[str]:
    # Standard error stays the runner's own until the launch: a shell reports there what signals end.
    stdin, stdout = run.spec.stdin_path, run.spec.stdout_path
    yield _open("<", str(stdin or "/dev/null"), STDIN)
    yield _open(">", str(stdout or f"{run.folder}/{STDOUT}"), STDOUT)
    yield _open_stderr(run, ">", f"_jpsi_end {STDERR} {SETUP_CODE}")


def _open_stderr(run: Run, operator: str, otherwise: str) -> str:
    stdout, stderr = run.spec.stdout_path, run.spec.stderr_path
    if stderr is not None and stderr == stdout:
        return "exec 8>&1"
    path = _path(str(stderr or f"{run.folder}/{STDERR}"))
    return f"command exec 8{operator}{path} || {otherwise}"


def _open(operator: str, path: str, phase: str) -> str:
    # `command` keeps a failing redirection from ending the shell (POSIX XCU 2.8.1).
    return f"command exec {operator}{_path(path)} || _jpsi_end {phase} {SETUP_CODE}"


def _launch(run: Run) -> Iterator[str]:
    yield "("
    yield from run.launch
    yield ") 2>&8 8>&-"


def _sourcing(run: Run, command: _Command) -> Iterator[str]:
    # The scripts may exit, trap, cd or set whatever they like: they do it in a subshell, and how far that
    # came, with what code, is in a file that the shell around it reads.
    phase = word(f"{run.folder}/phase.{run.attempt}")
    catch = f"trap : {' '.join(_SIGNALS)}"
    yield "("
    yield "exec 2>&8"
    yield catch
    if run.spec.pre_launch is not None:
        yield f"echo {PRE_LAUNCH} >{phase} || exit {SETUP_CODE}"
        yield from _source(run.spec.pre_launch)
        yield '[ "$1" -eq 0 ] || exit "$1"'
        yield "unset IFS"
        yield catch
        yield f"command cd {_path(run.directory)} || exit {SETUP_CODE}"
        # what it did to descriptor 8 is its own affair
        yield _open_stderr(run, ">>", f"exit {SETUP_CODE}")
    yield f'_jpsi_end() {{ command echo "$1 $2" >{phase}; exit "$2"; }}'
    yield f"command echo {RAN} >{phase}"
    yield from command.before
    yield command.arguments
    yield "exec 2>/dev/null"
    yield from _launch(run)
    yield "_jpsi_code=$?"
    yield from command.after
    if run.spec.post_launch is None:
        yield f'_jpsi_end {RAN} "$_jpsi_code"'
    else:
        yield f'command echo "{POST_LAUNCH} $_jpsi_code" >{phase}'
        yield "exec 2>&8"
        yield from _source(run.spec.post_launch)
        yield f'[ "$1" -ne 0 ] || command echo "{RAN} $_jpsi_code" >{phase}'
        yield 'exit "$_jpsi_code"'
    yield ")"
    yield "_jpsi_code=$?"
    yield f"{{ read -r _jpsi_phase _jpsi_known <{phase}; }} 2>/dev/null || :"
    # An exit in pre_launch, whatever its code, means that nothing was launched.
    yield f'if [ "${{_jpsi_phase:-{RAN}}}" = {PRE_LAUNCH} ] && [ "$_jpsi_code" -eq 0 ]; then'
    yield f"  _jpsi_code={SETUP_CODE}"
    yield "fi"
    yield f'_jpsi_end "${{_jpsi_phase:-{RAN}}}" "${{_jpsi_known:-$_jpsi_code}}"'


def _source(script: Path) -> Iterator[str]:
    # A name without a slash would be looked up on PATH, one that starts with - be an option (XCU 2.14, dot).
    text = str(script)
    yield f". {_path(text if script.is_absolute() or text.startswith('~') else f'./{text}')}"
    yield 'set +aefuxvC -- "$?"'


class _Command:
    """The lines that make the job's environment and put its command line into "$@"."""

    def __init__(self, spec: JobSpec) -> None:
        self._executable = spec.executable or ""
        self._arguments = spec.arguments or []
        #: Lines that set the environment, before pre_launch.
        self.setup: list[str] = []
        #: Lines that end the job if there is plainly no such executable.
        self.before: list[str] = []
        #: Lines that see, by its exit code, whether the job failed for want of its executable all the same.
        self.after: list[str] = []
        #: The line that sets "$@"; `${NAME}` in arguments is expanded when it runs.
        self.arguments = ""
        if spec.inherit_environment:
            self._inheriting(spec.environment or {})
        else:
            self._exactly(spec.environment or {})

    def _inheriting(self, environment: dict[str, str | None]) -> None:
        owned: dict[str, str | None] = {}
        for index, (name, value) in enumerate(environment.items()):
            if _is_owned(name):
                owned[name] = None
                if value is not None:
                    held = owned[name] = f"_jpsi_value_{index}"
                    self.setup.append(f"{held}={_word(value, owned, keep_unset=False)}")
            elif value is None:
                self.setup.append(f"unset {name}")
            else:
                self.setup.append(f"export {name}={_word(value, owned, keep_unset=False)}")
        prefix = [f"-u {name}" for name, held in owned.items() if held is None]
        prefix += [f'"{name}=${held}"' for name, held in owned.items() if held is not None]
        arguments = [_word(text, owned, keep_unset=True) for text in self._arguments]
        self._finish(["/usr/bin/env", *prefix] if prefix else [], arguments)

    def _exactly(self, environment: dict[str, str | None]) -> None:
        # Nothing of the place where the job runs can show, so all is known now.
        known: dict[str, str] = {}
        for name, value in environment.items():
            if value is None:
                known.pop(name, None)
            else:
                known[name] = expand(value, known, keep_unset=False)
        prefix = [word(f"{name}={value}") for name, value in known.items()]
        arguments = [word(expand(text, known, keep_unset=True)) for text in self._arguments]
        self._finish(["/usr/bin/env", "-i", *prefix], arguments, path=known.get("PATH", _DEFAULT_PATH))

    def _finish(self, prefix: list[str], arguments: list[str], path: str | None = None) -> None:
        executable = self._executable
        if "=" in executable or executable.startswith("-"):
            # env(1) would take it for an assignment or option; nice(1) changes nothing but that.
            prefix = [*prefix, "/usr/bin/nice", "-n", "0", "--"]
        self.arguments = " ".join(["set --", *prefix, word(executable), *arguments])
        if "/" in executable:
            self._look_at(word(executable))
        else:
            self._look_for(word(executable), path)

    def _look_at(self, file: str) -> None:
        self.before = [
            f"[ -f {file} ] && [ -x {file} ] || {{",
            f"  [ -e {file} ] || {_BLAME} {NOT_FOUND_CODE}",
            f"  {_BLAME} {NOT_EXECUTABLE_CODE}",
            "}",
        ]

    def _look_for(self, name: str, path: str | None) -> None:
        if path is None:
            self.before = [f"command -v -- {name} >/dev/null || {_BLAME} {NOT_FOUND_CODE}"]
        # That was content with a builtin, and env(1), where there is one, looked for itself.
        places = '"$PATH"' if path is None else word(path)
        looks = f'[ -f "${{_jpsi_place:-.}}"/{name} ] && exit 0'
        self.after = [
            "_jpsi_search() {",
            f"  set -f; IFS=:; for _jpsi_place in $1; do {looks}; done; exit 1",
            "}",
            f"[ $_jpsi_code -ne {NOT_FOUND_CODE} ] || (_jpsi_search {places}) || {_BLAME} {NOT_FOUND_CODE}",
        ]


_BLAME = f"_jpsi_end {EXECUTABLE}"
# Where execvp(3) looks if there is no PATH.
_DEFAULT_PATH = "/bin:/usr/bin"


def _is_owned(name: str) -> bool:
    return name in _SHELL_OWNED or name.startswith(("BASH", "_jpsi_"))


def _word(text: str, owned: dict[str, str | None], *, keep_unset: bool) -> str:
    if not has_reference(text):
        return expanding(text, keep_unset=keep_unset)
    return "".join(_piece(piece, owned, keep_unset=keep_unset) for piece in pieces(text)) or "''"


def _piece(piece: str | Reference, owned: dict[str, str | None], *, keep_unset: bool) -> str:
    if isinstance(piece, str):
        return word(piece)
    held = owned.get(piece.name)
    if held is None and (not _is_owned(piece.name) or (piece.name in _PASSED_ON - owned.keys())):
        return expanding(f"${{{piece.name}}}", keep_unset=keep_unset)
    if held is not None:
        return f'"${held}"'
    return word(f"${{{piece.name}}}") if keep_unset else "''"
