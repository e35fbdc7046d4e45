"""Renders the lines of the runner's script that stage files in before the job and out after it.

The node that runs the job stages them, in the job's directory, each time that the batch system runs the job.
Work that an earlier run has done already is no failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jpsi import StagingMode
from jpsi.plugin import word
from jpsi.plugin.kit import SIGNALS
from jpsi_engine.runner.claim_and_markers import JOB_UMASK, OWN
from jpsi_engine.runner.script_input import Run, home_path_word
from jpsi_engine.spool import attempt_file
from jpsi_engine.transfer import Outcome, Transfer
from jpsi_engine.verdict import ALSO, CLEANUP, SETUP_CODE, STAGE_IN, STAGE_OUT, TIMEOUT

_LOG = "staging"
# Signals that notify the job and do not end it.
_NOTICES = "ALRM USR1 USR2"
# Seconds that the runner waits, after a job that failed, for a signal of its own.
_SIGNAL_WAIT_SECONDS = 0.1
# How often the runner waits that long if jpsi has requested the end of the job.
_REQUESTED_WAITS = 50

# In these functions, `_jpsi_staging` is the path of a log, and `_jpsi_draft` begins the names of unfinished
# copies.
_FUNCTIONS = r"""
# A copy is made beside its target and renamed, so that no process finds half of it.
_jpsi_tool() { PATH=${PATH-}:/usr/bin:/bin command "$@"; }
_jpsi_complain() { printf '%s\n' "$1"; return 1; }
# MODE SOURCE TARGET NUMBER [optional]
_jpsi_stage() {
  _jpsi_to=$3 _jpsi_began=$_jpsi_staging.$4
  if [ ! -e "$2" ] && [ ! -L "$2" ]; then
    # a move that an earlier run began, and whose source is gone, is complete
    [ "$1" = move ] && [ -e "$_jpsi_began" ] && return 0
    [ -n "${5-}" ] || _jpsi_complain "${2#./}: there is no such file or directory"
    return
  fi
  # As with cp(1), a file goes into an existing directory; so does a link.
  if [ -d "$3" ] && { [ ! -d "$2" ] || { [ "$1" = link ] && [ ! -L "$3" ]; }; }; then
    _jpsi_to=${3%/}/${2##*/}
  fi
  if [ -d "$_jpsi_to" ] && { [ ! -d "$2" ] || { [ "$1" = link ] && [ ! -L "$_jpsi_to" ]; }; }; then
    _jpsi_complain "${_jpsi_to#./}: there is a directory of that name"
    return
  fi
  if [ "$1" != copy ] || [ -d "$2" ]; then
    [ "$2" -ef "$_jpsi_to" ] && return 0
  fi
  case $_jpsi_to in */*) _jpsi_beside=${_jpsi_to%/*}/ ;; *) _jpsi_beside=./ ;; esac
  _jpsi_new=$_jpsi_beside$_jpsi_draft.$4
  _jpsi_tool mkdir -p -- "$_jpsi_beside" && _jpsi_tool rm -rf -- "$_jpsi_new" || return
  case $1 in
  copy) _jpsi_copy "$2" ;;
  link) _jpsi_tool ln -s -- "$2" "$_jpsi_new" && _jpsi_rename ;;
  move)
    ( umask 077; true >"$_jpsi_began" ) || :
    if _jpsi_is_near "$2" "$_jpsi_beside" && [ ! -d "$_jpsi_to" ]; then
      _jpsi_tool mv -f -- "$2" "$_jpsi_to"
    else
      _jpsi_copy "$2" && _jpsi_tool rm -rf -- "$2"
    fi ;;
  esac
}
# A directory is merged into an existing one: entries of the same names are replaced, all others stay.
_jpsi_copy() {
  if [ -d "$1" ] && [ -d "$_jpsi_to" ]; then
    _jpsi_tool cp -R -p -- "$1/." "$_jpsi_to/"
  else
    _jpsi_tool cp -R -p -H -- "$1" "$_jpsi_new" && _jpsi_rename
  fi
}
_jpsi_rename() {
  # mv(1) would follow a link to a directory
  if [ -L "$_jpsi_to" ] && [ -d "$_jpsi_to" ]; then _jpsi_tool rm -f -- "$_jpsi_to"; fi
  _jpsi_tool mv -f -- "$_jpsi_new" "$_jpsi_to" && return
  _jpsi_tool rm -rf -- "$_jpsi_new"
  return 1
}
# True if both are on one file system, where mv(1) is atomic.
_jpsi_is_near() {
  _jpsi_places=$(_jpsi_tool df -P -- "$1" "$2" 2>/dev/null) || return
  printf '%s\n' "$_jpsi_places" |
    _jpsi_tool awk 'NR > 1 { at[NR] = $1 " " $NF } END { exit NR != 3 || at[2] != at[3] }'
}
# Removes a path in the job's directory; refuses one that symbolic links lead out of it.
_jpsi_remove() (
  case $1 in */*) _jpsi_beside=${1%/*}/ ;; *) _jpsi_beside=./ ;; esac
  _jpsi_top=$(pwd -P) && [ -n "$_jpsi_top" ] || exit 1
  [ -d "$_jpsi_beside" ] || exit 0
  cd -P -- "$_jpsi_beside" || exit 1
  case $(pwd -P)/ in
  "${_jpsi_top%/}"/*) _jpsi_tool rm -rf -- "./${1##*/}" ;;
  *) _jpsi_complain "${1#./}: leads out of the job's directory" ;;
  esac
)""".strip()

_BEGIN = """\
_jpsi_staging={log}
_jpsi_draft=.{prefix}{name}
# 1 once the runner got a signal that ends the job.
_jpsi_signalled=
_jpsi_note() {{ [ "$1" != signalled ] || _jpsi_signalled=1; umask 077; true >"$_jpsi_mark.$1" || :; }}"""

# Some signals only notify the job: a job that ends well after one of them was not cancelled. A batch system
# may signal the job before its runner, as Slurm does, so the runner waits a moment for a signal of its own;
# longer if jpsi has requested the end of the job, as jpsi does before it signals. If sleep(1) does not accept
# fractions, the runner does not wait.
_OUTCOME = """\
_jpsi_end() {{
  _jpsi_measure
  _jpsi_outcome={success} _jpsi_waits=0
  if [ "$2" -ne 0 ]; then _jpsi_outcome={error} _jpsi_waits=1; fi
  [ ! -s {stop} ] || _jpsi_waits={requested_waits}
  while [ -z "$_jpsi_signalled" ] && [ "$_jpsi_waits" -gt 0 ]; do
    _jpsi_waits=$((_jpsi_waits - 1))
    # the signal may end the sleep first
    _jpsi_tool sleep {seconds} 2>/dev/null || [ $? -gt 128 ] || break
  done
  if [ -n "$_jpsi_signalled" ]; then
    _jpsi_stop=
    {{ read -r _jpsi_stop <{stop}; }} 2>/dev/null || :
    case $_jpsi_stop in
    *'"{timeout}"'*) _jpsi_outcome={error} ;;
    ?*) _jpsi_outcome={cancel} ;;
    *) [ "$2" -eq 0 ] || _jpsi_outcome={cancel} ;;
    esac
  fi
  (
  # no signal interrupts stage out, which goes on as long as there is time
  trap '' {signals}"""

_RECORD_OUTCOME = """\
  )
  case $? in
  0) _jpsi_note "exit.$1$_jpsi_used.$2" ;;
  {cleanup_code}) _jpsi_note "exit.$1{also}{cleanup}$_jpsi_used.$2" ;;
  *)
    _jpsi_note "exit.$1{also}{stage_out}$_jpsi_used.$2"
    # a job that depends on the success of this one must not start without its results
    [ "$2" -ne 0 ] || exit {code} ;;
  esac
  exit "$2"
}}"""

_CLEANUP_CODE = 2
_QUIET = "command exec </dev/null >{log} 2>&1 || command exec </dev/null >/dev/null 2>&1"


def log_file(folder: str, attempt: int) -> str:
    """Return the path of the output of an attempt's staging commands."""
    return attempt_file(folder, _LOG, attempt)


def functions(runs: Iterable[Run]) -> Sequence[str]:
    """Return the lines of the functions that stage files; none if no run stages any."""
    return _FUNCTIONS.splitlines() if any(run.plan for run in runs) else ()


def begin(run: Run) -> Iterator[str]:
    """Yield the lines that stage in; the lines after them end by a `_jpsi_end` that stages out."""
    yield _BEGIN.format(
        log=word(log_file(run.folder, run.attempt)), prefix=OWN, name=word(f".{run.job_id}.{run.attempt}")
    )
    yield from run.frame.define(functions([run]))
    if run.plan.stage_in:
        yield from run.frame.run_in_subshell(_stage_in_lines(run.plan.stage_in))
        yield f'[ "$_jpsi_code" -eq 0 ] || _jpsi_end {STAGE_IN} "$_jpsi_code"'
    if run.plan.stage_out or run.plan.cleanup:
        yield from _stage_out_lines(run)


def _stage_in_lines(transfers: Iterable[Transfer]) -> Iterator[str]:
    yield f"trap '' {_NOTICES}"
    yield _QUIET.format(log='"$_jpsi_staging"')
    yield JOB_UMASK
    for number, transfer in enumerate(transfers, 1):
        target = _job_path(transfer.target)
        command = _stage_command(transfer, word(transfer.source), target, f"in.{number}")
        yield f"{command} || exit {SETUP_CODE}"
    yield "exit 0"


def _stage_out_lines(run: Run) -> Iterator[str]:
    yield _OUTCOME.format(
        success=Outcome.SUCCESS.value,
        seconds=_SIGNAL_WAIT_SECONDS,
        requested_waits=_REQUESTED_WAITS,
        error=Outcome.ERROR.value,
        cancel=Outcome.CANCEL.value,
        stop=word(f"{run.file('stop')}.json"),
        timeout=TIMEOUT,
        signals=" ".join(SIGNALS),
    )
    yield f"  {_QUIET.format(log=chr(34) + '$_jpsi_staging' + chr(34))}"
    yield f"  {JOB_UMASK}"
    yield "  _jpsi_failed=0"
    for number, transfer in enumerate(run.plan.stage_out, 1):
        # the source of a link is absolute, as a link is relative to its own directory and not to the job's
        source = _job_path(transfer.source, base='"$PWD"' if transfer.mode is StagingMode.LINK else ".")
        command = _stage_command(transfer, source, word(transfer.target), f"out.{number}")
        yield f"  {_if_outcome(transfer.outcomes, f'{command} || _jpsi_failed=1')}"
    yield '  [ "$_jpsi_failed" -eq 0 ] || exit 1'
    for path in run.plan.cleanup:
        command = f"_jpsi_remove {_job_path(path)} || _jpsi_failed={_CLEANUP_CODE}"
        yield f"  {_if_outcome(run.plan.cleanup_outcomes, command)}"
    yield '  exit "$_jpsi_failed"'
    yield _RECORD_OUTCOME.format(
        also=ALSO, cleanup_code=_CLEANUP_CODE, cleanup=CLEANUP, stage_out=STAGE_OUT, code=SETUP_CODE
    )


def _stage_command(transfer: Transfer, source: str, target: str, number: str) -> str:
    optional = " optional" if transfer.is_optional else ""
    return f"_jpsi_stage {transfer.mode.value} {source} {target} {number}{optional}"


def _if_outcome(outcomes: Iterable[Outcome], command: str) -> str:
    listed = list(outcomes)
    if len(listed) == len(Outcome):
        return command
    return f"case $_jpsi_outcome in {' | '.join(it.value for it in listed)}) {command} ;; esac"


def _job_path(path: str, base: str = ".") -> str:
    """Return a path on the job's side as a word of shell that no command takes for an option."""
    return home_path_word(path) if path.startswith(("/", "~/")) or path == "~" else f"{base}/{word(path)}"
