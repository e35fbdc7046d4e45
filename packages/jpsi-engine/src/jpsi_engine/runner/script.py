"""Renders the runner: the POSIX shell script that carries out one attempt of one job.

The script claims the attempt, enters the directory, stages in, opens the streams, sets the environment,
sources pre_launch, launches, sources post_launch, stages out, and leaves the exit code as a marker. Whatever
the user's scripts do to the shell that sources them, the marker and the exit code are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jpsi.plugin import ShellLine, line, word
from jpsi_engine.runner import clean_environment, environment_setup, own_variables, staging, streams
from jpsi_engine.runner.claim_and_markers import JOB_UMASK, PRIVATE_UMASK
from jpsi_engine.runner.script_input import HOME, Run, home_path_word
from jpsi_engine.runner.spec_environment import CommandLines, ProcessStarter
from jpsi_engine.runner.walltime_warning import note_start
from jpsi_engine.spool import attempt_file
from jpsi_engine.verdict import (
    DIRECTORY,
    ENVIRONMENT_SETUP,
    LAUNCH,
    NODES,
    POST_LAUNCH,
    PROLOGUE,
    RAN,
    SETUP_CODE,
    STDIN,
)

#: The last line of the log of a launcher that has worked.
LAUNCHED = "_PSI_J_LAUNCHER_DONE"

_FOLDER, _LOG, _STDIN = "_jpsi_folder", "_jpsi_log", f"_jpsi_{STDIN}"
# Finds standard programs whatever PATH the job has.
_FIND_TOOL = "PATH=${PATH-}:/usr/bin:/bin command"


def launcher_log(folder: str, attempt: int) -> str:
    """Return the path of the log of an attempt's launcher."""
    return attempt_file(folder, LAUNCH, attempt)


def render_runner(run: Run) -> str:
    """Return the text of the script.

    A pure function: the same attempt always gives the same text.
    """
    intent = f"intent.{run.attempt}.json"
    heading = f"# Attempt {run.attempt} of jpsi job {run.job_id}; {intent} beside it holds the request."
    return "\n".join(["#!/bin/sh", heading, *runner_lines(run)]) + "\n"


def run_line(shell: Sequence[str], file: str, marker: str) -> ShellLine:
    """Return the line by which a batch system runs the file of a script.

    Args:
        shell: the words that run it.
        file: its path.
        marker: the path of the marker that says that the shell is missing; empty if there is none.
    """
    # If the runner's script was lost, in a crash or a clean-up, the job must not end with success. A
    # missing shell must not look like the job's own exit code 127.
    is_there, can_run = line("test", "-s", file), line("test", "-x", shell[0])
    note = f"true >{word(marker)}; " if marker else ""
    runs = f"{{ {can_run} || {{ {note}exit {SETUP_CODE}; }}; }}"
    return ShellLine(f"{is_there} && {runs} && {line('exec', *shell, file)}; exit {SETUP_CODE}")


def runner_lines(run: Run) -> Iterator[str]:
    """Yield the lines of the script without its heading."""
    runner_variables = own_variables.own_values(run.job_id, run.file(NODES) if run.nodes else None)
    starter = _process_starter(run)
    command = CommandLines(run.spec, runner_variables, starter, run.containers)
    if starter is not None:
        may_lack_nodes = run.nodes and not run.needs_nodes
        further_lines = [own_variables.drop_node_variables(run.file(NODES))] if may_lack_nodes else []
        yield from clean_environment.start_process(
            command.env_command, run.rank_variables, further_lines, kept_variables=run.kept_variables
        )
    yield from run.frame.begin(f"{run.events}/{run.job_id}.{run.attempt}", run.folder, run.attempt)
    if run.starts_processes and not run.frame.has_all_processes:
        # a launcher may start them on other nodes, or have a daemon start them
        yield "_jpsi_measure() { :; }"
    if run.warning is not None:
        yield note_start()
    if run.uses_home:
        # The spec may set HOME for the job.
        yield f"{HOME}=${{HOME-}}"
    yield from _enter_directory(run)
    if run.plan:
        yield from staging.begin(run)
    yield from streams.open_streams(run)
    if run.nodes:
        yield from own_variables.write_node_file(run.nodes, run.file(NODES), is_needed=run.needs_nodes)
    else:
        yield own_variables.unset_node_variables()
    yield from own_variables.export_own_variables(run.job_id)
    yield from command.setup

    def launch_lines() -> Iterator[str]:
        return _launch_lines(run, command)

    if run.preparations or run.post_launch is not None:
        has_names = starter is not None and starter.has_scripts
        yield from source_scripts(run, launch_lines, has_names=has_names)
    else:
        yield from launch_lines()
        yield f'_jpsi_end {RAN} "$_jpsi_code"'


def _process_starter(run: Run) -> ProcessStarter | None:
    """Return the words with which a launcher starts the processes of a job that inherits nothing.

    None if the job inherits its environment, or if no launcher starts its processes.
    """
    if run.spec.inherit_environment or run.containers or not run.starts_processes:
        return None
    has_scripts = bool(run.preparations)
    words = clean_environment.process_prefix(run.frame.rerun_words(run.file("run")), has_scripts=has_scripts)
    return ProcessStarter(words=words, has_scripts=has_scripts)


def _enter_directory(run: Run) -> Iterator[str]:
    target = home_path_word(run.directory)
    if run.spec.create_directory:
        yield f"{JOB_UMASK}; mkdir -p -- {target}; {PRIVATE_UMASK}"
    yield f"cd {target} || _jpsi_end {DIRECTORY} {SETUP_CODE}"


def _launch_lines(run: Run, command: CommandLines) -> Iterator[str]:
    """Yield the lines that launch the job and leave its exit code in `_jpsi_code`."""
    # A launcher that sources the user's scripts may get another PATH or directory from them, so the runner
    # cannot check for the executable then.
    if not run.sources_scripts:
        yield from command.before_launch
    yield command.set_arguments
    runs_scripts = bool(run.preparations or run.post_launch)
    if runs_scripts:
        yield "exec 2>/dev/null"
    text = "".join(run.launch)
    log = word(launcher_log(run.folder, run.attempt))
    if runs_scripts and _FOLDER in text:  # the scripts may have changed it
        yield f"{_FOLDER}={word(run.folder)}"
    if _STDIN in text and not run.sources_scripts:
        yield streams.stream_variable(STDIN, run.spec.stdin_path or Path("/dev/null"))
    if _LOG in text:
        yield f"{_LOG}={log}"
        yield f"[ ! -e {log} ] || {_FIND_TOOL} rm -f {log}"  # of another run of this attempt
    # a sourced script may have set another umask
    umask = () if runs_scripts else (ShellLine(JOB_UMASK),)
    check = run.frame.check_stop(f"{run.file('stop')}.json")
    yield from run.frame.launch([*check, *umask, *run.launch], run.warning)
    if _LOG in text:
        yield from _check_launcher_log(log)
    if not run.sources_scripts:
        yield from command.after_launch


def _check_launcher_log(log: str) -> Iterator[str]:
    """Yield the lines that end the job if its launcher left a log that does not end with `LAUNCHED`."""
    yield f"if [ -e {log} ]; then"
    yield f"  _jpsi_last=$({_FIND_TOOL} tail -n 1 {log})"
    yield f'  if [ "$_jpsi_last" != {LAUNCHED} ]; then'
    yield f"    [ $_jpsi_code -ne 0 ] || _jpsi_code={SETUP_CODE}"
    yield f"    _jpsi_end {LAUNCH} $_jpsi_code"
    yield "  fi"
    yield "fi"


# The scripts of the user and the site may exit, trap, cd or set whatever they like. They do it in a shell of
# their own, which writes the phase that it has reached, and an exit code, to a file; the runner's shell reads
# that file.

# The signals of POSIX that no frame traps: the job must not find any of them ignored.
_OTHER_SIGNALS = "ABRT BUS CHLD CONT FPE ILL PIPE PROF SEGV SYS TRAP TSTP TTIN TTOU URG VTALRM XFSZ"

# The commands that the rest of the script and launchers call: a sourced function of such a name would run
# instead.
_COMMANDS = "cd command echo false kill printf read test true wait"


def source_scripts(run: Run, launch_lines: Callable[[], Iterator[str]], *, has_names: bool) -> Iterator[str]:
    """Yield the lines that source the scripts, launch the job, and end.

    Args:
        run: the attempt.
        launch_lines: returns the lines that launch, and leave the exit code in `_jpsi_code`.
        has_names: True if the names of exported variables are needed.
    """
    phase = word(run.file("phase"))
    log = launcher_log(run.folder, run.attempt)
    setup = list(environment_setup.setup_lines(run.spec.environment_setup or (), log))
    for name, lines in ((PROLOGUE, run.prologue), (ENVIRONMENT_SETUP, setup)):
        if lines:
            texts = " ".join(word(line) for line in lines)
            yield f"printf '%s\\n' {texts} >{word(run.file(name))} || _jpsi_end {name} {SETUP_CODE}"
    yield f"true >{phase} || :"  # made by the runner, the file is the user's alone
    if has_names:
        yield from clean_environment.save_environment()
    yield from run.frame.run_in_subshell(_script_lines(run, launch_lines, phase, has_names=has_names))
    yield f"{{ read -r _jpsi_phase _jpsi_known <{phase}; }} 2>/dev/null || :"
    if run.preparations:
        # An exit in these scripts, whatever its code, means that nothing was launched.
        nothing_ran = " | ".join(f"'{name} 0'" for name in run.preparations)
        yield 'case "${_jpsi_phase-} $_jpsi_code" in'
        yield f"{nothing_ran}) _jpsi_code={SETUP_CODE} ;;"
        yield "esac"
    yield f'_jpsi_end "${{_jpsi_phase:-{RAN}}}" "${{_jpsi_known:-$_jpsi_code}}"'


def _script_lines(
    run: Run, launch_lines: Callable[[], Iterator[str]], phase: str, *, has_names: bool
) -> Iterator[str]:
    yield JOB_UMASK
    yield "exec 2>&8"
    yield from run.frame.set_traps()
    for name, script in run.preparations.items():
        yield f"command echo {name} >{phase} || exit {SETUP_CODE}"
        yield from _source(script)
        yield '[ "$1" -eq 0 ] || exit "$1"'
        yield "unset IFS"
        yield f"command trap - {_OTHER_SIGNALS} \\"
        yield "  2>/dev/null || :"  # a shell may not know one
        yield from run.frame.set_traps()
        yield f"command cd {home_path_word(run.directory)} || exit {SETUP_CODE}"
        # the script may have changed descriptor 8
        yield streams.reopen_stderr(run)
    yield f'_jpsi_end() {{ command echo "$1 $2" >{phase}; exit "$2"; }}'
    if has_names:
        yield from clean_environment.find_changes()
    yield f"command echo {RAN} >{phase}"
    yield from launch_lines()
    if run.post_launch is None:
        yield f'_jpsi_end {RAN} "$_jpsi_code"'
    else:
        yield f'command echo "{POST_LAUNCH} $_jpsi_code" >{phase}'
        yield "exec 2>&8"
        yield from _source(run.post_launch)
        yield f'[ "$1" -ne 0 ] || command echo "{RAN} $_jpsi_code" >{phase}'
        yield 'exit "$_jpsi_code"'


def _source(script: str) -> Iterator[str]:
    yield f". {script}"
    yield 'set +aefuxvC -- "$?"'
    yield f"unset -f {_COMMANDS}"
