"""Renders the lines of the runner's script that source the user's and the site's scripts around the launch.

These scripts may exit, trap, cd or set whatever they like. They do it in a shell of their own, which writes
the phase that it has reached, and an exit code, to a file; the runner's shell reads that file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jpsi.plugin import word
from jpsi_engine.runner import clean_environment, streams
from jpsi_engine.runner.claim_and_markers import JOB_UMASK
from jpsi_engine.runner.script_input import Run, home_path_word
from jpsi_engine.verdict import POST_LAUNCH, PROLOGUE, RAN, SETUP_CODE

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
    if run.prologue:
        lines = " ".join(word(line) for line in run.prologue)
        yield f"printf '%s\\n' {lines} >{word(run.file(PROLOGUE))} || _jpsi_end {PROLOGUE} {SETUP_CODE}"
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
