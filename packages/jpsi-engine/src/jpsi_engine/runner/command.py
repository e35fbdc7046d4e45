"""Renders the lines of the runner's script that set the job's environment and its command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from jpsi.plugin import JobSpec, word
from jpsi.plugin.engine import Reference, expand, expanding, has_reference, pieces
from jpsi_engine.verdict import ARGUMENTS, EXECUTABLE, NOT_EXECUTABLE_CODE, NOT_FOUND_CODE

#: The variables from which a job reads its id and the file with the nodes of its processes.
JOB_ID = "JPSI_JOB_ID"
NODEFILES = ("JPSI_NODEFILE", "PSIJ_NODEFILE")
OURS = frozenset({JOB_ID, *NODEFILES})

# Variables that a shell sets, reads or guards itself (dash(1), bash(1), POSIX XCU 2.5.3): the script passes
# their values to the job through env(1) and never reads them from the shell.
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
# The variables among these that a shell passes on like any other.
_PASSED_ON = frozenset({"PWD", "OLDPWD"})


@attrs.frozen(slots=True, kw_only=True)
class ProcessLauncher:
    """The program through which a launcher starts each process of a job that inherits no environment."""

    #: The words of its command line before the job's own.
    words: Sequence[str]
    #: True if variables that scripts export reach the processes; their values are in `_jpsi_new_NAME` then.
    has_scripts: bool


class CommandLines:
    """The lines that make the job's environment and put its command line into "$@"."""

    def __init__(self, spec: JobSpec, own: Mapping[str, str], through: ProcessLauncher | None = None) -> None:
        """Render the lines for a spec.

        Args:
            spec: the user's spec.
            own: the variables that the runner has exported, which the spec cannot change.
            through: the program that starts the processes of a job that inherits nothing; None means env(1).
        """
        self._executable = spec.executable or ""
        self._arguments = spec.arguments or []
        #: The words that run env(1) with the variables of a job that inherits nothing.
        self.environment: list[str] = []
        #: Lines that set the environment, before pre_launch.
        self.setup: list[str] = []
        #: Lines that end the job if the executable plainly does not exist.
        self.before: list[str] = []
        #: Lines that find out from the exit code whether the job failed because it has no executable.
        self.after: list[str] = []
        #: The line that sets "$@"; `${NAME}` in arguments is expanded when it runs.
        self.arguments = ""
        environment = spec.environment or {}
        if spec.inherit_environment:
            self._inheriting(_without_ours(environment))
        elif through is None:
            self._exactly(environment)
        else:
            self._through(through, own, _without_ours(environment))

    def _inheriting(self, environment: Mapping[str, str | None]) -> None:
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
        self._finish(["/usr/bin/env", *prefix] if prefix else [], arguments, '"$PATH"')

    def _exactly(self, environment: Mapping[str, str | None]) -> None:
        # The job sees nothing of the node's environment, so all values are known now.
        known = self._know(environment)
        arguments = [word(expand(text, known, keep_unset=True)) for text in self._arguments]
        self._finish(self.environment, arguments, word(known.get("PATH", _DEFAULT_PATH)))

    def _know(
        self, environment: Mapping[str, str | None], own: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """Return the variables of a job that inherits nothing; set `environment` to the env(1) words."""
        known: dict[str, str] = {**own}
        for name, value in environment.items():
            if value is None:
                known.pop(name, None)
            else:
                known[name] = expand(value, known, keep_unset=False)
        self.environment = ["/usr/bin/env", "-i", *(f"{name}={word(value)}" for name, value in known.items())]
        return known

    def _through(
        self, through: ProcessLauncher, own: Mapping[str, str], environment: Mapping[str, str | None]
    ) -> None:
        known = self._know(environment, own)
        path = known.get("PATH", _DEFAULT_PATH)
        if not through.has_scripts:
            arguments = [word(expand(text, known, keep_unset=True)) for text in self._arguments]
            self._finish(through.words, arguments, word(path))
            return
        # The value of a reference is known only after the scripts ran.
        referred = {
            piece.name
            for text in self._arguments
            if has_reference(text)
            for piece in pieces(text)
            if isinstance(piece, Reference)
        }
        values = {name: known.get(name, f"${{{name}}}") for name in sorted(referred)} | {"PATH": path}
        self.setup += [f"_jpsi_new_{name}={word(value)}" for name, value in values.items()]
        held: dict[str, str | None] = {name: f"_jpsi_new_{name}" for name in values}
        arguments = [_word(text, held, keep_unset=True) for text in self._arguments]
        self._finish(through.words, arguments, '"$_jpsi_new_PATH"')

    def _finish(self, prefix: Sequence[str], arguments: Sequence[str], path: str) -> None:
        """Set the lines that depend on the executable; `path` is the search path as a word of shell."""
        executable = self._executable
        if "=" in executable or executable.startswith("-"):
            # env(1) would take the executable for an assignment or option; nice(1) changes nothing but that.
            prefix = [*prefix, "/usr/bin/nice", "-n", "0", "--"]
        self.arguments = " ".join(["set --", *prefix, word(executable), *arguments])
        self.after = [*_TOO_LARGE]
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

    def _look_for(self, name: str, path: str) -> None:
        if not self.environment:
            self.before = [f"command -v -- {name} >/dev/null || {_BLAME} {NOT_FOUND_CODE}"]
        # `command -v` accepts a builtin as well, and env(1), where it is used, searched the path itself.
        looks = f'[ -f "${{_jpsi_place:-.}}"/{name} ] && exit 0'
        self.after += [
            "_jpsi_search() {",
            f"  set -f; IFS=:; for _jpsi_place in $1; do {looks}; done; exit 1",
            "}",
            f"[ $_jpsi_code -ne {NOT_FOUND_CODE} ] || (_jpsi_search {path}) || {_BLAME} {NOT_FOUND_CODE}",
        ]


def _without_ours(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a spec's variables without the runner's own, which may come from a surrounding job."""
    return {name: value for name, value in environment.items() if name not in OURS}


_BLAME = f"_jpsi_end {EXECUTABLE}"
# A shell reports E2BIG by an exit code that the program may have returned. If it is E2BIG, no other program
# can be started with these arguments and this environment either.
_OTHER = '/bin/sh -c : "$@" 2>/dev/null'
_TOO_LARGE = [
    f"[ $_jpsi_code -ne {NOT_EXECUTABLE_CODE} ] || {_OTHER} || [ $? -ne {NOT_EXECUTABLE_CODE} ] ||",
    f"  _jpsi_end {ARGUMENTS} {NOT_EXECUTABLE_CODE}",
]
# The path that execvp(3) searches if PATH is not set.
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
