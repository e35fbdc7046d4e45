"""Renders the lines of the runner's script that set the spec's variables and the job's command line.

`script` puts them into each runner. They ensure that the job gets exactly these values, even for variables
that a shell sets itself, and that a missing executable or too many arguments end the job with that as its
phase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from jpsi.plugin import Command, JobSpec, word
from jpsi.plugin.engine import Reference, expand, has_reference, pieces
from jpsi_engine.runner.containers import OR_EMPTY, STAND_INS, choose_command
from jpsi_engine.runner.own_variables import OWN_VARIABLES
from jpsi_engine.verdict import ARGUMENTS, EXECUTABLE, NOT_EXECUTABLE_CODE, NOT_FOUND_CODE

# Variables that a shell sets, reads or guards itself (dash(1), bash(1), POSIX XCU 2.5.3): the script passes
# their values to the job through env(1) and never reads them from the shell.
_SHELL_VARIABLES = re.compile(
    r"_|BASH.*|DIRSTACK|ENV|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|FUNCNEST|GROUPS|HISTCMD|IFS|LINENO|OLDPWD|"
    r"OPTARG|OPTERR|OPTIND|PIPESTATUS|POSIXLY_CORRECT|PPID|PS[124]|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|"
    r"UID|_jpsi_.*",
    re.DOTALL,
)
# The shell variables that a shell passes on to programs like any other variable.
_INHERITED = frozenset({"PWD", "OLDPWD"})


@attrs.frozen(slots=True, kw_only=True)
class ProcessStarter:
    """The words that a launcher (such as srun) puts before the job's command, to start each process.

    With them, each process starts through the runner's own file; see `clean_environment`. Only for jobs that
    do not inherit the environment.
    """

    #: The words, each a word of shell.
    words: Sequence[str]
    #: True if variables that scripts export reach the processes; the runner then has their values in
    #: variables `_jpsi_new_NAME`.
    has_scripts: bool


class CommandLines:
    """The lines that make the job's environment and put its command line into "$@"."""

    def __init__(
        self,
        spec: JobSpec,
        runner_variables: Mapping[str, str],
        starter: ProcessStarter | None = None,
        containers: Sequence[Command] = (),
    ) -> None:
        """Render the lines for a spec.

        Args:
            spec: the user's spec.
            runner_variables: the variables that the runner has exported, which the spec cannot change.
            starter: starts the processes of a job that inherits nothing; None means that env(1) does.
            containers: the commands that may run the job in its container, of which the node has one.
        """
        self._executable = spec.executable or ""
        self._arguments = spec.arguments or []
        #: The words of the command env(1) with the variables of a job that inherits nothing; else empty.
        self.env_command: list[str] = []
        #: Lines that set the environment, before pre_launch.
        self.setup: list[str] = []
        #: Lines that end the job, before it is launched, if the shell finds no such executable.
        self.before_launch: list[str] = []
        #: Lines that end the job if its exit code means that the executable was missing or that the arguments
        #: were too long.
        self.after_launch: list[str] = []
        #: The line of shell that sets "$@"; `${NAME}` in arguments is expanded when it runs.
        self.set_arguments = ""
        environment = _without_runner_variables(spec.environment or {})
        self._containers = containers
        # the runtime needs the environment that its program does not get
        if spec.inherit_environment or containers:
            self._extend_environment(environment)
        elif starter is None:
            self._replace_environment(environment)
        else:
            self._use_starter(starter, runner_variables, environment)

    def _extend_environment(self, environment: Mapping[str, str | None]) -> None:
        shell_variables: dict[str, str | None] = {}
        for index, (name, value) in enumerate(environment.items()):
            if _is_shell_variable(name):
                shell_variables[name] = None
                if value is not None:
                    variable = shell_variables[name] = f"_jpsi_value_{index}"
                    self.setup.append(
                        f"{variable}={expanding_word(value, shell_variables, keep_unset=False)}"
                    )
            elif value is None:
                self.setup.append(f"unset {name}")
            else:
                self.setup.append(f"export {name}={expanding_word(value, shell_variables, keep_unset=False)}")
        prefix = [f"-u {name}" for name, variable in shell_variables.items() if variable is None]
        prefix += [
            f'"{name}=${variable}"' for name, variable in shell_variables.items() if variable is not None
        ]
        if self._containers:
            self._set_container_commands(prefix, {**shell_variables, **STAND_INS})
            return
        arguments = [expanding_word(text, shell_variables, keep_unset=True) for text in self._arguments]
        self._set_command(["/usr/bin/env", *prefix] if prefix else [], arguments, '"$PATH"')

    def _set_container_commands(self, prefix: Sequence[str], stand_ins: Mapping[str, str | None]) -> None:
        """Set the lines that run the job in a container; `prefix` are further words for env(1)."""
        commands = []
        for it in self._containers:
            variables = [f"{name}={value}" for name, value in it.environment.items()]
            words = [expanding_word(text, stand_ins, keep_unset=True) for text in (*variables, *it.argv)]
            options = [*(f"-u {word(name)}" for name in it.unset), *prefix]
            env = ["/usr/bin/env", *options] if options or variables else []
            commands.append((it.argv[0], " ".join([*env, *words])))
        self.set_arguments = "\n".join(choose_command(commands))
        self.after_launch = [*_CHECK_SIZE]

    def _replace_environment(self, environment: Mapping[str, str | None]) -> None:
        # The job sees nothing of the node's environment, so all values are known now.
        variables = self._resolve(environment)
        arguments = [word(expand(text, variables, keep_unset=True)) for text in self._arguments]
        self._set_command(self.env_command, arguments, word(variables.get("PATH", _DEFAULT_PATH)))

    def _resolve(
        self,
        environment: Mapping[str, str | None],
        runner_variables: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, str]:
        """Return the variables of a job that inherits nothing, and set `env_command`."""
        variables: dict[str, str] = {**runner_variables}
        for name, value in environment.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = expand(value, variables, keep_unset=False)
        assignments = (f"{name}={word(value)}" for name, value in variables.items())
        self.env_command = ["/usr/bin/env", "-i", *assignments]
        return variables

    def _use_starter(
        self,
        starter: ProcessStarter,
        runner_variables: Mapping[str, str],
        environment: Mapping[str, str | None],
    ) -> None:
        variables = self._resolve(environment, runner_variables)
        path = variables.get("PATH", _DEFAULT_PATH)
        if not starter.has_scripts:
            arguments = [word(expand(text, variables, keep_unset=True)) for text in self._arguments]
            self._set_command(starter.words, arguments, word(path))
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
        stand_ins: dict[str, str | None] = {name: f"_jpsi_new_{name}" for name in values}
        arguments = [expanding_word(text, stand_ins, keep_unset=True) for text in self._arguments]
        self._set_command(starter.words, arguments, '"$_jpsi_new_PATH"')

    def _set_command(self, prefix: Sequence[str], arguments: Sequence[str], path: str) -> None:
        """Set the lines that depend on the executable; `path` is the search path as a word of shell."""
        executable = self._executable
        if "=" in executable or executable.startswith("-"):
            # env(1) would take the executable for an assignment or option; `nice -n 0 --` runs it unchanged.
            prefix = [*prefix, "/usr/bin/nice", "-n", "0", "--"]
        self.set_arguments = " ".join(["set --", *prefix, word(executable), *arguments])
        self.after_launch = [*_CHECK_SIZE]
        if "/" in executable:
            self._check_file(word(executable))
        else:
            self._check_search_path(word(executable), path)

    def _check_file(self, file: str) -> None:
        self.before_launch = [
            f"[ -f {file} ] && [ -x {file} ] || {{",
            f"  [ -e {file} ] || {_END} {NOT_FOUND_CODE}",
            f"  {_END} {NOT_EXECUTABLE_CODE}",
            "}",
        ]

    def _check_search_path(self, name: str, path: str) -> None:
        if not self.env_command:
            self.before_launch = [f"command -v -- {name} >/dev/null || {_END} {NOT_FOUND_CODE}"]
        # After the launch, 127 means that there is no such program, or that the program itself has returned
        # 127. The lines before the launch do not tell: `command -v` also finds builtins of the shell, and
        # env(1) searches another path. So these lines look for the file on the path that was searched.
        check = f'[ -f "${{_jpsi_place:-.}}"/{name} ] && exit 0'
        self.after_launch += [
            "_jpsi_search() {",
            f"  set -f; IFS=:; for _jpsi_place in $1; do {check}; done; exit 1",
            "}",
            f"[ $_jpsi_code -ne {NOT_FOUND_CODE} ] || (_jpsi_search {path}) || {_END} {NOT_FOUND_CODE}",
        ]


def _without_runner_variables(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a spec's variables without those that the runner sets, which may come from a surrounding job."""
    return {name: value for name, value in environment.items() if name not in OWN_VARIABLES}


_END = f"_jpsi_end {EXECUTABLE}"
# A shell reports E2BIG (the arguments and the environment are too large) by the exit code 126, which the
# program itself may also have returned. To tell the two apart, these lines start a program that does nothing
# with the same arguments and environment: it fails in the same way only if they are too large.
_NO_OP = '/bin/sh -c : "$@" 2>/dev/null'
_CHECK_SIZE = [
    f"[ $_jpsi_code -ne {NOT_EXECUTABLE_CODE} ] || {_NO_OP} || [ $? -ne {NOT_EXECUTABLE_CODE} ] ||",
    f"  _jpsi_end {ARGUMENTS} {NOT_EXECUTABLE_CODE}",
]
# The path that execvp(3) searches if PATH is not set.
_DEFAULT_PATH = "/bin:/usr/bin"


def _is_shell_variable(name: str) -> bool:
    return _SHELL_VARIABLES.fullmatch(name) is not None


def expanding_word(text: str, stand_ins: Mapping[str, str | None], *, keep_unset: bool) -> str:
    """Quote `text` as one word in which the shell replaces `${NAME}` by the variable when it runs the line.

    An unset name stays as written if `keep_unset` is true, else it is empty. `stand_ins` maps a variable
    that the line must not read, such as one that the shell sets itself, to the runner's variable that holds
    its value for the job; None if the job does not get it.

    >>> print(expanding_word("a b${C}", {}, keep_unset=False))
    'a b'"${C-}"
    """
    if not has_reference(text):
        return word(text)
    return "".join(_piece(piece, stand_ins, keep_unset=keep_unset) for piece in pieces(text)) or "''"


def _piece(piece: str | Reference, stand_ins: Mapping[str, str | None], *, keep_unset: bool) -> str:
    if isinstance(piece, str):
        return word(piece)
    name = piece.name.removeprefix(OR_EMPTY)
    keep_unset = keep_unset and name == piece.name
    variable = stand_ins.get(name)
    if variable is not None:
        return f'"${variable}"'
    if not _is_shell_variable(name) or name in _INHERITED - stand_ins.keys():
        unset = f"\\${{{name}\\}}" if keep_unset else ""
        return f'"${{{name}-{unset}}}"'
    return word(f"${{{name}}}") if keep_unset else "''"
