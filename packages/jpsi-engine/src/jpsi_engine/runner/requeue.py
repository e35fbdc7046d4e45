"""Renders the lines of the runner's script for an attempt that the batch system starts again.

Batch systems requeue jobs, and the runner then runs the job once more. But a batch system whose controller
was killed and came back from an old state starts jobs that have already ended. The runner tells the two cases
apart by the files that earlier runs have left, and repeats nothing that is over. Builtins of the shell do all
of it; in the first run it costs a few tests for files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import attrs

from jpsi.plugin import word
from jpsi_engine.verdict import SETUP_CODE, SHELL

#: The name, before the attempt's number, of the file that has one line for each start that was refused.
RERUN = "rerun"

#: The word for unknown exit codes: any failure may be one of them.
_ANY = "any"


@attrs.frozen(slots=True)
class RequeueRules:
    """The rules by which a batch system requeues jobs."""

    #: The variable that holds the number of times that the job was requeued; empty if there is none.
    count_variable: str = ""
    #: The exit codes after which the site requeues jobs; None if they are not known.
    exit_codes: Collection[int] | None = None


def define_functions(rules: RequeueRules) -> Iterator[str]:
    """Yield the functions that the lines of `count_runs` call."""
    codes = _ANY if rules.exit_codes is None else ", ".join(map(str, sorted(rules.exit_codes)))
    yield _FUNCTIONS.replace("@CODES@", word(codes)).replace("@SETUP@", str(SETUP_CODE))


def count_runs(attempt: str, rules: RequeueRules) -> Iterator[str]:
    """Yield the lines that exit if an attempt is over, and otherwise let `_jpsi_mark` name its next run.

    Args:
        attempt: the attempt's number, as text between double quotes of shell.
        rules: the rules, as in `define_functions`.
    """
    count = f"${{{rules.count_variable}:-0}}" if rules.count_variable else ""
    start = 'echo "$_jpsi_count"' if count else "true"
    text = _COUNT.replace("@ATTEMPT@", attempt).replace("@COUNT@", count).replace("@START@", start)
    shell = f"exit.{SHELL}.{SETUP_CODE}"
    yield text.replace("@RERUN@", RERUN).replace("@SHELL@", shell).replace("@SETUP@", str(SETUP_CODE))


# A client moves markers from `events` into the job's folder, so the functions look in that order.
_FUNCTIONS = """\
_jpsi_has_left() { [ -e "$_jpsi_run.$1" ] || [ -e "$_jpsi_folder/${_jpsi_run##*/}.$1" ]; }
# Sets _jpsi_over to the exit code of the earlier run _jpsi_run of attempt $1, if that was the last.
_jpsi_judge() {
  # A shell profile may have changed these options.
  set +f
  [ -z "${BASH_VERSION-}" ] || { unset GLOBIGNORE; shopt -u failglob dotglob; }
  for _jpsi_exit in "$_jpsi_run".exit.*.* "$_jpsi_folder/${_jpsi_run##*/}".exit.*.*; do
    _jpsi_code=${_jpsi_exit##*.}
    case $_jpsi_code in '' | *[!0-9]*) continue ;; esac
    _jpsi_is_over "$1" || continue
    case $_jpsi_exit in *-stage_out*.0) _jpsi_code=@SETUP@ ;; esac
    _jpsi_over=$_jpsi_code
  done
}
_jpsi_is_over() {
  # The requeue count has not changed: the batch system has lost that run, and gets its exit code now.
  _jpsi_counted=''
  { read -r _jpsi_counted <"$_jpsi_folder/start.$1.$_jpsi_restart"; } 2>/dev/null || :
  [ -z "$_jpsi_count" ] || [ "$_jpsi_counted" != "$_jpsi_count" ] || return 0
  # The exit codes after which the site requeues jobs, which clients write to the spool once they know them.
  _jpsi_codes=@CODES@ _jpsi_line=''
  { read -r _jpsi_line <"$_jpsi_folder/../../requeue.json"; } 2>/dev/null || :
  case $_jpsi_line in
  '{"requeue_exit_codes": ['*']}') _jpsi_codes=${_jpsi_line#*[[]} _jpsi_codes=${_jpsi_codes%]*} ;;
  esac
  case ", $_jpsi_codes," in *", $_jpsi_code,"*) _jpsi_requests=1 ;; *) _jpsi_requests='' ;; esac
  # A client has published its end, or has cancelled it, and it has ended.
  if [ -e "$_jpsi_folder/final.$1.json" ] || [ -e "$_jpsi_folder/stop.$1.json" ]; then
    # With an exit code that requests a requeue, it would be requeued for ever.
    [ -z "$_jpsi_requests" ] || _jpsi_code=@SETUP@
    return 0
  fi
  # The batch system may have ended the job to requeue it, or requeues it because of its exit code.
  [ "$_jpsi_code" -le 128 ] && [ -z "$_jpsi_requests" ] || return 1
  [ "$_jpsi_codes" != any ] || [ "$_jpsi_code" -eq 0 ] || return 1
  [ -e "$_jpsi_exit" ] || _jpsi_exit=$_jpsi_folder/${_jpsi_exit##*/}
  for _jpsi_signal_mark in "$_jpsi_run.signalled" "$_jpsi_folder/${_jpsi_run##*/}.signalled"; do
    # A signal that came after the end did not cause it.
    [ ! -e "$_jpsi_signal_mark" ] || [ "$_jpsi_exit" -ot "$_jpsi_signal_mark" ] || return 1
  done
}"""

_COUNT = """\
_jpsi_restart=0 _jpsi_run=$_jpsi_mark _jpsi_count=@COUNT@ _jpsi_over=''
# A job that was published as ended does not start, and a run that has ended is repeated only after a requeue.
[ ! -e "$_jpsi_folder/final.@ATTEMPT@.json" ] || _jpsi_over=@SETUP@
while
  [ -e "$_jpsi_folder/start.@ATTEMPT@.$_jpsi_restart" ] ||
    _jpsi_has_left active || _jpsi_has_left @SHELL@
do
  _jpsi_judge "@ATTEMPT@"
  _jpsi_restart=$((_jpsi_restart + 1))
  _jpsi_run=$_jpsi_mark.$_jpsi_restart
done
if [ -n "$_jpsi_over" ]; then
  echo "$_jpsi_native_id" >>"$_jpsi_folder/@RERUN@.@ATTEMPT@" || :
  exit "$_jpsi_over"
fi
@START@ >"$_jpsi_folder/start.@ATTEMPT@.$_jpsi_restart" || :
_jpsi_mark=$_jpsi_run"""
