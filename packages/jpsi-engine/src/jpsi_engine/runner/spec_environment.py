"""Renders the lines of the runner's script that set the spec's variables and the job's command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from jpsi.plugin import JobSpec, word
from jpsi.plugin.engine import Reference, expand, has_reference, pieces
from jpsi_engine.runner.own_variables import OWN_VARIABLES
from jpsi_engine.verdict import ARGUMENTS, EXECUTABLE, NOT_EXECUTABLE_CODE, NOT_FOUND_CODE

# Variables that a shell sets, reads or guards itself (dash(1), bash(1), POSIX XCU 2.5.3): the script passes
# their values to the job through env(1) and never reads them from the shell.
_SHELL_OWNED = re.compile(
    r"_|BASH.*|DIRSTACK|ENV|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|FUNCNEST|GROUPS|HISTCMD|IFS|LINENO|OLDPWD|"
    r"OPTARG|OPTERR|OPTIND|PIPESTATUS|POSIXLY_CORRECT|PPID|PS[124]|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|"
    r"UID|_jpsi_.*",
    re.DOTALL,
)
# The variables among these that a shell passes on like any other.
_INHERITED = frozenset({"PWD", "OLDPWD"})


@attrs.frozen(slots=True, kw_only=True)
class ProcessLauncher:
    """The program through which a launcher starts each process of a job that inherits no environment."""

    #: The words of its command line before the job's own.
    words: Sequence[str]
    #: True if variables that scripts export reach the processes; their values are in `_jpsi_new_NAME` then.
    has_scripts: bool


class CommandLines:
    """The lines that make the job's environment and put its command line into "$@"."""

    def __init__(
        self, spec: JobSpec, own: Mapping[str, str], launcher: ProcessLauncher | None = None
    ) -> None:
        """Render the lines for a spec.

        Args:
            spec: the user's spec.
            own: the variables that the runner has exported, which the spec cannot change.
            launcher: the program that starts the processes of a job that inherits nothing; None means env(1).
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
        environment = _without_own_variables(spec.environment or {})
        if spec.inherit_environment:
            self._extend_environment(environment)
        elif launcher is None:
            self._replace_environment(environment)
        else:
            self._use_launcher(launcher, own, environment)

    def _extend_environment(self, environment: Mapping[str, str | None]) -> None:
        owned: dict[str, str | None] = {}
        for index, (name, value) in enumerate(environment.items()):
            if _is_owned(name):
                owned[name] = None
                if value is not None:
                    variable = owned[name] = f"_jpsi_value_{index}"
                    self.setup.append(f"{variable}={expanding_word(value, owned, keep_unset=False)}")
            elif value is None:
                self.setup.append(f"unset {name}")
            else:
                self.setup.append(f"export {name}={expanding_word(value, owned, keep_unset=False)}")
        prefix = [f"-u {name}" for name, variable in owned.items() if variable is None]
        prefix += [f'"{name}=${variable}"' for name, variable in owned.items() if variable is not None]
        arguments = [expanding_word(text, owned, keep_unset=True) for text in self._arguments]
        self._set_command(["/usr/bin/env", *prefix] if prefix else [], arguments, '"$PATH"')

    def _replace_environment(self, environment: Mapping[str, str | None]) -> None:
        # The job sees nothing of the node's environment, so all values are known now.
        variables = self._resolve(environment)
        arguments = [word(expand(text, variables, keep_unset=True)) for text in self._arguments]
        self._set_command(self.environment, arguments, word(variables.get("PATH", _DEFAULT_PATH)))

    def _resolve(
        self, environment: Mapping[str, str | None], own: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """Return the variables of a job that inherits nothing; set `environment` to the env(1) words."""
        variables: dict[str, str] = {**own}
        for name, value in environment.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = expand(value, variables, keep_unset=False)
        assignments = (f"{name}={word(value)}" for name, value in variables.items())
        self.environment = ["/usr/bin/env", "-i", *assignments]
        return variables

    def _use_launcher(
        self, launcher: ProcessLauncher, own: Mapping[str, str], environment: Mapping[str, str | None]
    ) -> None:
        variables = self._resolve(environment, own)
        path = variables.get("PATH", _DEFAULT_PATH)
        if not launcher.has_scripts:
            arguments = [word(expand(text, variables, keep_unset=True)) for text in self._arguments]
            self._set_command(launcher.words, arguments, word(path))
            return
        # The value of a reference is known only after the scripts ran.
        referenced = {
            piece.name
            for text in self._arguments
            if has_reference(text)
            for piece in pieces(text)
            if isinstance(piece, Reference)
        }
        values = {name: variables.get(name, f"${{{name}}}") for name in sorted(referenced)} | {"PATH": path}
        self.setup += [f"_jpsi_new_{name}={word(value)}" for name, value in values.items()]
        owned: dict[str, str | None] = {name: f"_jpsi_new_{name}" for name in values}
        arguments = [expanding_word(text, owned, keep_unset=True) for text in self._arguments]
        self._set_command(launcher.words, arguments, '"$_jpsi_new_PATH"')

    def _set_command(self, prefix: Sequence[str], arguments: Sequence[str], path: str) -> None:
        """Set the lines that depend on the executable; `path` is the search path as a word of shell."""
        executable = self._executable
        if "=" in executable or executable.startswith("-"):
            # env(1) would take the executable for an assignment or option; nice(1) changes nothing but that.
            prefix = [*prefix, "/usr/bin/nice", "-n", "0", "--"]
        self.arguments = " ".join(["set --", *prefix, word(executable), *arguments])
        self.after = [*_CHECK_SIZE]
        if "/" in executable:
            self._check_file(word(executable))
        else:
            self._check_search_path(word(executable), path)

    def _check_file(self, file: str) -> None:
        self.before = [
            f"[ -f {file} ] && [ -x {file} ] || {{",
            f"  [ -e {file} ] || {_END} {NOT_FOUND_CODE}",
            f"  {_END} {NOT_EXECUTABLE_CODE}",
            "}",
        ]

    def _check_search_path(self, name: str, path: str) -> None:
        if not self.environment:
            self.before = [f"command -v -- {name} >/dev/null || {_END} {NOT_FOUND_CODE}"]
        # `command -v` accepts a builtin as well, and env(1), where it is used, searched the path itself.
        check = f'[ -f "${{_jpsi_place:-.}}"/{name} ] && exit 0'
        self.after += [
            "_jpsi_search() {",
            f"  set -f; IFS=:; for _jpsi_place in $1; do {check}; done; exit 1",
            "}",
            f"[ $_jpsi_code -ne {NOT_FOUND_CODE} ] || (_jpsi_search {path}) || {_END} {NOT_FOUND_CODE}",
        ]


def _without_own_variables(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a spec's variables without the runner's own, which may come from a surrounding job."""
    return {name: value for name, value in environment.items() if name not in OWN_VARIABLES}


_END = f"_jpsi_end {EXECUTABLE}"
# A shell reports E2BIG by an exit code that the program may have returned. If it is E2BIG, no other program
# can be started with these arguments and this environment either.
_NO_OP = '/bin/sh -c : "$@" 2>/dev/null'
_CHECK_SIZE = [
    f"[ $_jpsi_code -ne {NOT_EXECUTABLE_CODE} ] || {_NO_OP} || [ $? -ne {NOT_EXECUTABLE_CODE} ] ||",
    f"  _jpsi_end {ARGUMENTS} {NOT_EXECUTABLE_CODE}",
]
# The path that execvp(3) searches if PATH is not set.
_DEFAULT_PATH = "/bin:/usr/bin"


def _is_owned(name: str) -> bool:
    return _SHELL_OWNED.fullmatch(name) is not None


def expanding_word(text: str, owned: Mapping[str, str | None], *, keep_unset: bool) -> str:
    """Quote `text` as one word in which the shell replaces `${NAME}` by the variable when it runs the line.

    An unset name stays as written if `keep_unset` is true, else it is empty. `owned` has, for variables that
    the shell owns, the name of the runner's variable with their value for the job; None if they are unset.

    >>> print(expanding_word("a b${C}", {}, keep_unset=False))
    'a b'"${C-}"
    """
    if not has_reference(text):
        return word(text)
    return "".join(_piece(piece, owned, keep_unset=keep_unset) for piece in pieces(text)) or "''"


def _piece(piece: str | Reference, owned: Mapping[str, str | None], *, keep_unset: bool) -> str:
    if isinstance(piece, str):
        return word(piece)
    variable = owned.get(piece.name)
    if variable is not None:
        return f'"${variable}"'
    if not _is_owned(piece.name) or piece.name in _INHERITED - owned.keys():
        unset = f"\\${{{piece.name}\\}}" if keep_unset else ""
        return f'"${{{piece.name}-{unset}}}"'
    return word(f"${{{piece.name}}}") if keep_unset else "''"
