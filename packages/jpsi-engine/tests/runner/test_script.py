"""The runner's script in real shells: the arguments and environment of the job, and the files it leaves."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jpsi.contract.shell import ShellLine
from jpsi.model.spec import JobSpec
from jpsi.model.variable_references import escape
from jpsi_engine.runner.claim_and_markers import BatchFrame, ProcessFrame
from jpsi_engine.runner.requeue import RequeueRules
from jpsi_engine.runner.script import render_runner
from jpsi_engine.runner.script_input import Run
from jpsi_engine.runner.walltime_warning import WalltimeWarning
from jpsi_testing.waiting import eventually
from runners import PATH, SINGLE, RunnerBench, script, shell_job, without_usage

SIGNALS = ("HUP", "INT", "QUIT", "TERM", "ALRM", "USR1", "USR2", "XCPU")

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
# env(1) makes the environment of a job that inherits nothing, whatever the shell
ways = pytest.mark.parametrize(
    ("shell", "inherit"),
    [("sh", True), ("bash", True), ("sh", False)],
    ids=["sh-inheriting", "bash-inheriting", "exactly"],
    indirect=["shell"],
)
properties = settings(
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# ------------------------------------------------------------------------------------------- the text

SIMPLE = r"""#!/bin/sh
# Attempt 1 of jpsi job a1; intent.1.json beside it holds the request.
_jpsi_umask=$(umask)
umask 077
_jpsi_folder=/spool/jobs/a1
_jpsi_mark=/spool/events/a1.1
# The runner that makes the claim runs this attempt, no other ever does.
set -C
echo $$ >"$_jpsi_folder"/claim.1 || exit 125
set +C
exec 9>&-
# A marker is an empty file whose name is the fact; the job goes on if it cannot be written.
_jpsi_note() { umask 077; true >"$_jpsi_mark.$1" || :; }
# Sets _jpsi_used to the CPU time of the runner's children, in hundredths of a second, if the kernel tells it.
_jpsi_used=''
_jpsi_measure() {
  {
    IFS=' ' read -r _ _jpsi_name _ _ _ _ _ _ _ _ _ _ _ _ _ _jpsi_user _jpsi_system _ </proc/self/stat
  } 2>/dev/null || return 0
  case $_jpsi_name in *')') _jpsi_used=$_jpsi_used-$((_jpsi_user + _jpsi_system)) ;; esac
}
_jpsi_end() { _jpsi_measure; _jpsi_note "exit.$1$_jpsi_used.$2"; exit "$2"; }
trap '_jpsi_note signalled' HUP INT QUIT TERM ALRM USR1 USR2 XCPU
trap 'trap : TERM; _jpsi_note signalled' TERM
cd '/data/my runs' || _jpsi_end directory 125
command exec </dev/null || _jpsi_end stdin 125
command exec >/spool/jobs/a1/stdout || _jpsi_end stdout 125
command exec 8>/spool/jobs/a1/stderr || _jpsi_end stderr 125
unset JPSI_NODEFILE PSIJ_NODEFILE
export JPSI_JOB_ID=a1
[ -f /bin/echo ] && [ -x /bin/echo ] || {
  [ -e /bin/echo ] || _jpsi_end executable 127
  _jpsi_end executable 126
}
set -- /bin/echo 'it'\''s' "${USER-\${USER\}}"
(
test ! -e /spool/jobs/a1/stop.1.json || { kill -s TERM $$; exit 143; }
umask "$_jpsi_umask"
exec "$@"
) 2>&8 8>&-
_jpsi_code=$?
[ $_jpsi_code -ne 126 ] || /bin/sh -c : "$@" 2>/dev/null || [ $? -ne 126 ] ||
  _jpsi_end arguments 126
_jpsi_end run "$_jpsi_code"
"""

SOURCING = r"""#!/bin/sh
# Attempt 2 of jpsi job a1; intent.2.json beside it holds the request.
_jpsi_umask=$(umask)
umask 077
_jpsi_folder=/spool/jobs/a1
_jpsi_mark=/spool/events/a1.2
# The runner that makes the claim runs this attempt, no other ever does.
set -C
echo $$ >"$_jpsi_folder"/claim.2 || exit 125
set +C
exec 9>&-
# A marker is an empty file whose name is the fact; the job goes on if it cannot be written.
_jpsi_note() { umask 077; true >"$_jpsi_mark.$1" || :; }
# Sets _jpsi_used to the CPU time of the runner's children, in hundredths of a second, if the kernel tells it.
_jpsi_used=''
_jpsi_measure() {
  {
    IFS=' ' read -r _ _jpsi_name _ _ _ _ _ _ _ _ _ _ _ _ _ _jpsi_user _jpsi_system _ </proc/self/stat
  } 2>/dev/null || return 0
  case $_jpsi_name in *')') _jpsi_used=$_jpsi_used-$((_jpsi_user + _jpsi_system)) ;; esac
}
_jpsi_end() { _jpsi_measure; _jpsi_note "exit.$1$_jpsi_used.$2"; exit "$2"; }
trap '_jpsi_note signalled' HUP INT QUIT TERM ALRM USR1 USR2 XCPU
trap 'trap : TERM; _jpsi_note signalled' TERM
_jpsi_home=${HOME-}
umask "$_jpsi_umask"; mkdir -p -- "$_jpsi_home"/runs; umask 077
cd "$_jpsi_home"/runs || _jpsi_end directory 125
command exec <'in' || _jpsi_end stdin 125
umask "$_jpsi_umask"
command exec >out || _jpsi_end stdout 125
umask 077
exec 8>&1
unset JPSI_NODEFILE PSIJ_NODEFILE
export JPSI_JOB_ID=a1
export A=1
export PATH=/opt/bin:"${PATH-}"
_jpsi_value_2="${A-}",
unset LANG
true >/spool/jobs/a1/phase.2 || :
(
umask "$_jpsi_umask"
exec 2>&8
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
command echo pre_launch >/spool/jobs/a1/phase.2 || exit 125
. ./pre.sh
set +aefuxvC -- "$?"
unset -f cd command echo false kill printf read test true wait
[ "$1" -eq 0 ] || exit "$1"
unset IFS
command trap - ABRT BUS CHLD CONT FPE ILL PIPE PROF SEGV SYS TRAP TSTP TTIN TTOU URG VTALRM XFSZ \
  2>/dev/null || :
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
command cd "$_jpsi_home"/runs || exit 125
exec 8>&1
_jpsi_end() { command echo "$1 $2" >/spool/jobs/a1/phase.2; exit "$2"; }
command echo run >/spool/jobs/a1/phase.2
command -v -- prog >/dev/null || _jpsi_end executable 127
set -- /usr/bin/env -u PS4 "IFS=$_jpsi_value_2" prog 'a b' "${A-\${A\}}"/x
exec 2>/dev/null
(
test ! -e /spool/jobs/a1/stop.2.json || { kill -s TERM $$; exit 143; }
exec "$@"
) 2>&8 8>&-
_jpsi_code=$?
[ $_jpsi_code -ne 126 ] || /bin/sh -c : "$@" 2>/dev/null || [ $? -ne 126 ] ||
  _jpsi_end arguments 126
_jpsi_search() {
  set -f; IFS=:; for _jpsi_place in $1; do [ -f "${_jpsi_place:-.}"/prog ] && exit 0; done; exit 1
}
[ $_jpsi_code -ne 127 ] || (_jpsi_search "$PATH") || _jpsi_end executable 127
command echo "post_launch $_jpsi_code" >/spool/jobs/a1/phase.2
exec 2>&8
. "$_jpsi_home"/post.sh
set +aefuxvC -- "$?"
unset -f cd command echo false kill printf read test true wait
[ "$1" -ne 0 ] || command echo "run $_jpsi_code" >/spool/jobs/a1/phase.2
exit "$_jpsi_code"
)
_jpsi_code=$?
{ read -r _jpsi_phase _jpsi_known </spool/jobs/a1/phase.2; } 2>/dev/null || :
case "${_jpsi_phase-} $_jpsi_code" in
'pre_launch 0') _jpsi_code=125 ;;
esac
_jpsi_end "${_jpsi_phase:-run}" "${_jpsi_known:-$_jpsi_code}"
"""

BATCH = r"""#!/bin/sh
# Attempt 1 of jpsi job b2; intent.1.json beside it holds the request.
_jpsi_umask=$(umask)
umask 077
_jpsi_folder=/spool/jobs/b2
_jpsi_mark=/spool/events/b2.1
_jpsi_native_id=${SLURM_JOB_ID:-unnamed.$$}
# A signal takes effect only after the claim is complete.
_jpsi_early=''
for _jpsi_signal in HUP INT QUIT TERM ALRM USR1 USR2 XCPU; do
  # shellcheck disable=SC2064  # the signal of now
  trap "_jpsi_early=$_jpsi_signal" "$_jpsi_signal"
done
# The runner that makes the claim runs this attempt, no other ever does; a requeued job finds its own claim.
set -C
if ! { echo "$_jpsi_native_id" >"$_jpsi_folder"/claim.1; } 2>/dev/null; then
  read -r _jpsi_claim <"$_jpsi_folder"/claim.1 || exit 125
  [ "$_jpsi_claim" = "$_jpsi_native_id" ] || exit 125
fi
set +C
trap - HUP INT QUIT TERM ALRM USR1 USR2 XCPU
[ -z "$_jpsi_early" ] || kill -s "$_jpsi_early" $$
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
    case $_jpsi_exit in *-stage_out*.0) _jpsi_code=125 ;; esac
    _jpsi_over=$_jpsi_code
  done
}
_jpsi_is_over() {
  # The requeue count has not changed: the batch system has lost that run, and gets its exit code now.
  _jpsi_counted=''
  { read -r _jpsi_counted <"$_jpsi_folder/start.$1.$_jpsi_restart"; } 2>/dev/null || :
  [ -z "$_jpsi_count" ] || [ "$_jpsi_counted" != "$_jpsi_count" ] || return 0
  # The exit codes after which the site requeues jobs, which clients write to the spool once they know them.
  _jpsi_codes=99 _jpsi_line=''
  { read -r _jpsi_line <"$_jpsi_folder/../../requeue.json"; } 2>/dev/null || :
  case $_jpsi_line in
  '{"requeue_exit_codes": ['*']}') _jpsi_codes=${_jpsi_line#*[[]} _jpsi_codes=${_jpsi_codes%]*} ;;
  esac
  case ", $_jpsi_codes," in *", $_jpsi_code,"*) _jpsi_requests=1 ;; *) _jpsi_requests='' ;; esac
  # A client has published its end, or has cancelled it, and it has ended.
  if [ -e "$_jpsi_folder/final.$1.json" ] || [ -e "$_jpsi_folder/stop.$1.json" ]; then
    # With an exit code that requests a requeue, it would be requeued for ever.
    [ -z "$_jpsi_requests" ] || _jpsi_code=125
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
}
_jpsi_restart=0 _jpsi_run=$_jpsi_mark _jpsi_count=${SLURM_RESTART_COUNT:-0} _jpsi_over=''
# A job that was published as ended does not start, and a run that has ended is repeated only after a requeue.
[ ! -e "$_jpsi_folder/final.1.json" ] || _jpsi_over=125
while
  [ -e "$_jpsi_folder/start.1.$_jpsi_restart" ] ||
    _jpsi_has_left active || _jpsi_has_left exit.shell.125
do
  _jpsi_judge "1"
  _jpsi_restart=$((_jpsi_restart + 1))
  _jpsi_run=$_jpsi_mark.$_jpsi_restart
done
if [ -n "$_jpsi_over" ]; then
  echo "$_jpsi_native_id" >>"$_jpsi_folder/rerun.1" || :
  exit "$_jpsi_over"
fi
echo "$_jpsi_count" >"$_jpsi_folder/start.1.$_jpsi_restart" || :
_jpsi_mark=$_jpsi_run
# A marker is an empty file whose name is the fact; the job goes on if it cannot be written.
_jpsi_note() { umask 077; true >"$_jpsi_mark.$1" || :; }
# Sets _jpsi_used to the CPU time of the runner's children, in hundredths of a second, if the kernel tells it.
_jpsi_used=''
_jpsi_measure() {
  {
    IFS=' ' read -r _ _jpsi_name _ _ _ _ _ _ _ _ _ _ _ _ _ _jpsi_user _jpsi_system _ </proc/self/stat
  } 2>/dev/null || return 0
  case $_jpsi_name in *')') _jpsi_used=$_jpsi_used-$((_jpsi_user + _jpsi_system)) ;; esac
}
_jpsi_end() { _jpsi_measure; _jpsi_note "exit.$1$_jpsi_used.$2"; exit "$2"; }
# Notes that the kernel killed a process of this job for its memory, if the job's own control group says so.
_jpsi_find_kill() {
  _jpsi_own=${_jpsi_element_id:-$_jpsi_native_id}
  case $_jpsi_own in *[!0-9]*) ;; *) return 0 ;; esac
  while IFS=: read -r _ _jpsi_name _jpsi_group; do
    case $_jpsi_name$_jpsi_group/ in
    memory/*/"$_jpsi_own"/*) _jpsi_group=/memory$_jpsi_group/memory.oom_control ;;
    /*/"$_jpsi_own"/*) _jpsi_group=$_jpsi_group/memory.events ;;
    *) continue ;;
    esac
    while IFS=' ' read -r _jpsi_name _jpsi_kills; do
      case $_jpsi_name,$_jpsi_kills in oom_kill,[1-9]*) _jpsi_used=-oom ;; esac
    done <"/sys/fs/cgroup$_jpsi_group"
  done </proc/self/cgroup
}
_jpsi_pids='' _jpsi_reached='' _jpsi_got='' _jpsi_begun=''
# shellcheck disable=SC2317,SC2329  # the traps call it
_jpsi_pass() {
  _jpsi_got=$1
  _jpsi_reached=$_jpsi_pids
  _jpsi_kill "$1" "$_jpsi_pids"
}
_jpsi_kill() {
  [ -n "$2" ] || return 0
  # A process that dash has just started loses a signal until it has reset its traps.
  if _jpsi_is_young; then
    PATH=${PATH-}:/usr/bin:/bin command sleep 0.2 || PATH=/usr/bin:/bin command sleep 1
  fi
  # shellcheck disable=SC2086  # several words
  kill -s "$1" $2 2>/dev/null || :
}
# True in the first seconds of a process, and where no file tells the time.
_jpsi_is_young() {
  _jpsi_now=''
  { read -r _jpsi_now _ </proc/uptime; } 2>/dev/null || :
  [ -z "$_jpsi_begun" ] || [ $((${_jpsi_now%.*} - ${_jpsi_begun%.*})) -le 1 ]
}
# True of a process whose end bash 5.2 has lost, as a signal came at the same time: bash lists it as running,
# and `wait` would return -1 once all other processes, such as a timer, have ended.
_jpsi_is_lost() {
  [ -n "${BASH_VERSION-}" ] && ! kill -s 0 "$1" 2>/dev/null || return
  # shellcheck disable=SC3045  # bash
  for _jpsi_running in $(jobs -r -p); do [ "$_jpsi_running" != "$1" ] || return 0; done
  return 1
}
# A signal ends `wait` early. If `wait` has just reported the end of this process, it then returns 127.
_jpsi_wait() {
  [ -n "$_jpsi_begun" ] || { read -r _jpsi_begun _ </proc/uptime; } 2>/dev/null || :
  # A signal that came while processes were being started has not reached the later ones. The others must not
  # get it again: at a second signal, many programs exit without cleaning up.
  [ -z "$_jpsi_got" ] || _jpsi_kill "$_jpsi_got" "${_jpsi_pids#"$_jpsi_reached"}"
  _jpsi_code=''
  while :; do
    _jpsi_got=
    wait "$1"
    _jpsi_answer=$?
    case $_jpsi_code,$_jpsi_answer in [0-9]*,127 | [0-9]*,-1) ;; *) _jpsi_code=$_jpsi_answer ;; esac
    [ -n "$_jpsi_got" ] || break
    ! _jpsi_is_lost "$1" || { _jpsi_got=''; break; }
  done
  _jpsi_pids=${_jpsi_pids#* } _jpsi_reached=${_jpsi_reached#* }
  [ -n "$_jpsi_pids" ] || _jpsi_begun=''
}
for _jpsi_signal in HUP INT QUIT TERM ALRM USR1 USR2 XCPU; do
  # shellcheck disable=SC2064  # the signal of now
  trap "_jpsi_note signalled; _jpsi_pass $_jpsi_signal" "$_jpsi_signal"
done
_jpsi_note active
cd /data || _jpsi_end directory 125
command exec </dev/null || _jpsi_end stdin 125
command exec >/spool/jobs/b2/stdout || _jpsi_end stdout 125
command exec 8>/spool/jobs/b2/stderr || _jpsi_end stderr 125
(
uname -n
) </dev/null >/spool/jobs/b2/nodes.1 2>&8 8>&- && [ -s /spool/jobs/b2/nodes.1 ] &&
  export JPSI_NODEFILE=/spool/jobs/b2/nodes.1 PSIJ_NODEFILE=/spool/jobs/b2/nodes.1 ||
  unset JPSI_NODEFILE PSIJ_NODEFILE
export JPSI_JOB_ID=b2
[ -f /bin/echo ] && [ -x /bin/echo ] || {
  [ -e /bin/echo ] || _jpsi_end executable 127
  _jpsi_end executable 126
}
set -- /bin/echo x
# What runs in the background ignores INT and QUIT, and so does what a batch system starts that ignores them.
if /usr/bin/env -i --default-signal=INT,QUIT >/dev/null 2>&1; then
  set -- /usr/bin/env --default-signal=INT,QUIT "$@"
fi
command exec 7<&0 || exec 7</dev/null
(
[ -z "${BASH_VERSION-}" ] || trap - INT QUIT
_jpsi_got=''
umask "$_jpsi_umask"
exec "$@"
) <&7 7<&- 2>&8 8>&- &
_jpsi_pids="$! "
exec 7<&-
_jpsi_wait $!
[ $_jpsi_code -ne 137 ] || { _jpsi_find_kill; } 2>/dev/null || :
[ $_jpsi_code -ne 126 ] || /bin/sh -c : "$@" 2>/dev/null || [ $? -ne 126 ] ||
  _jpsi_end arguments 126
_jpsi_end run "$_jpsi_code"
"""

GOLDEN = {
    "simple": (
        Run(
            job_id="a1",
            attempt=1,
            folder="/spool/jobs/a1",
            events="/spool/events",
            directory="/data/my runs",
            spec=JobSpec("/bin/echo", ["it's", "${USER}"]),
            launch=SINGLE,
            frame=ProcessFrame(),
        ),
        SIMPLE,
    ),
    "sourcing": (
        Run(
            job_id="a1",
            attempt=2,
            folder="/spool/jobs/a1",
            events="/spool/events",
            directory="~/runs",
            spec=JobSpec(
                "prog",
                ["a b", "${A}/x"],
                environment={
                    "A": "1",
                    "PATH": "/opt/bin:${PATH}",
                    "IFS": "${A},",
                    "LANG": None,
                    "PS4": None,
                },
                create_directory=True,
                stdin_path=Path("in"),
                stdout_path=Path("out"),
                stderr_path=Path("out"),
                pre_launch=Path("pre.sh"),
                post_launch=Path("~/post.sh"),
            ),
            launch=SINGLE,
            frame=ProcessFrame(),
        ),
        SOURCING,
    ),
    "batch": (
        Run(
            job_id="b2",
            attempt=1,
            folder="/spool/jobs/b2",
            events="/spool/events",
            directory="/data",
            spec=JobSpec("/bin/echo", ["x"]),
            launch=SINGLE,
            nodes=[ShellLine("uname -n")],
            frame=BatchFrame("SLURM_JOB_ID", RequeueRules("SLURM_RESTART_COUNT", frozenset({99}))),
        ),
        BATCH,
    ),
}


@pytest.mark.parametrize(("run", "text"), GOLDEN.values(), ids=GOLDEN)
def test_script_matches_the_golden_text(run: Run, text: str) -> None:
    assert render_runner(run) == text


@pytest.mark.parametrize("checker", ["sh", "dash", "bash"])
@pytest.mark.parametrize(("run", "text"), GOLDEN.values(), ids=GOLDEN)
def test_script_is_valid(run: Run, text: str, checker: str, tmp_path: Path) -> None:
    if shutil.which(checker) is None:
        pytest.skip(f"there is no {checker} here")
    path = script(tmp_path / "run", render_runner(run))

    checked = subprocess.run([checker, "-n", str(path)], capture_output=True, check=False)

    assert (checked.returncode, checked.stderr) == (0, b"")


# ------------------------------------------------------------------- arguments and the environment

# A job that prints its command line and its environment, as the kernel has them.
PROBE = (
    "import sys\n"
    "for name in ('cmdline', 'environ'):\n"
    "    with open('/proc/self/' + name, 'rb') as file: sys.stdout.buffer.write(file.read())\n"
)
PROBING = [sys.executable, "-I", "-S", "-c", PROBE]

HOSTILE = (
    *("", " ", "a b", "\n", "a\nb\n", "\t", "'", '"', 'it\'s "it"', "\\", "\\\\n", "$", "$$", "$A", "*"),
    *("$(exit 3)", "`exit 3`", "$((1))", "a=b", "-n", "--", "!", "#", "&", ";", "|", "{}", "${", "${A"),
    *("${1}", "$${A}", "$$${A}", "~", "\x01", "\x7f", "é", "日本", "🐚", "\x85", "\u2028"),
    *(bytes([byte]).decode("utf-8", "surrogateescape") for byte in range(0x80, 0x90)),
)
#: Variables that shells set, read or guard. Shells export PWD, OLDPWD, SHLVL and _ to every process.
EXPORTED = ("PWD", "OLDPWD", "SHLVL", "_")
OWNED = (
    *("ENV", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "IFS", "LINENO", "OPTARG", "OPTERR", "OPTIND"),
    *("PPID", "PS1", "PS2", "PS4", "RANDOM", "SECONDS", "SHELLOPTS", "UID", "POSIXLY_CORRECT"),
    *("BASH", "BASHPID", "BASH_ENV", "BASHOPTS", "BASH_VERSION", "BASH_ARGV0", "BASH_SUBSHELL"),
)
#: Variables that some shells use, but do not guard.
SPECIAL = (
    *("CDPATH", "COLUMNS", "COMP_WORDBREAKS", "COPROC", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS"),
    *("EXECIGNORE", "FUNCNEST", "GLOBIGNORE", "HOSTNAME", "LC_ALL", "LINES", "MAILCHECK", "MAPFILE"),
    *("OSTYPE", "PATH", "PIPESTATUS", "PROMPT_COMMAND", "REPLY", "SRANDOM", "TIMEFORMAT", "TMOUT"),
)
INHERITED = {"INHERITED": "from outside\n", "A": "outer $(A)"}
ORDINARY = ("A", "B", "long_Name_1", "__", "HOME", "PATH", "INHERITED")

texts = (
    st.sampled_from(HOSTILE)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
    | st.binary(max_size=5).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
)
references = st.sampled_from([*ORDINARY, "UNSET", *OWNED]).map("${{{}}}".format)
templates = st.lists(texts | references, max_size=4).map("".join)
environments = st.lists(
    st.tuples(st.sampled_from(ORDINARY) | st.sampled_from((*OWNED, *EXPORTED)), st.none() | templates),
    max_size=8,
).map(dict)


def expanded(text: str, environment: Mapping[str, str], *, keep_unset: bool) -> str:
    """Expand `${NAME}` by its definition: a left-to-right walk, without a regex."""
    out = ""
    while text:
        dollars = len(text) - len(text.lstrip("$"))
        name, closing, rest = text[dollars + 1 :].partition("}")
        if (
            dollars
            and text[dollars : dollars + 1] == "{"
            and closing
            and name.isascii()
            and name.isidentifier()
        ):
            literal = "${" + name + "}"
            value = environment.get(name, literal if keep_unset else "")
            out += value if dollars == 1 else "$" * (dollars - 2) + literal
            text = rest
        else:
            out += text[: max(dollars, 1)]
            text = text[max(dollars, 1) :]
    return out


def model(spec: JobSpec, inherited: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment that a job must get (facts/clauses.md)."""
    environment = dict(inherited) if spec.inherit_environment else {}
    for name, value in (spec.environment or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = expanded(value, environment, keep_unset=False)
    return [expanded(text, environment, keep_unset=True) for text in spec.arguments or []], environment


def parse_probe(output: bytes, count: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Return the last `count` arguments, and the environment, from the output of the probe."""
    items = output.split(b"\0")[:-1]
    start = len(PROBING)
    arguments, entries = items[start : start + count], items[start + count :]
    environment = dict(entry.split(b"=", 1) for entry in entries)
    assert len(environment) == len(entries), "no variable is there twice"
    return arguments, environment


def encoded(environment: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}


def run_probe(bench: RunnerBench, spec: JobSpec) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Run a job, and return the arguments and the environment that it got."""
    arguments = spec.arguments or []
    spec = attrs.evolve(spec, executable=PROBING[0], arguments=[*PROBING[1:], *arguments])
    ended = bench.run(spec, INHERITED)
    assert (ended.code, ended.markers, ended.stderr) == (0, ["exit.run.0"], b"")
    return parse_probe(ended.stdout, len(arguments))


@pytest.mark.clause("spec-expansion")
@linux
@ways
@properties
@given(environment=environments, arguments=st.lists(templates, max_size=8))
def test_references_are_expanded_and_all_else_arrives_unchanged(
    shell: str,
    tmp_path: Path,
    inherit: bool,
    environment: dict[str, str | None],
    arguments: list[str],
) -> None:
    bench = RunnerBench(Path(tempfile.mkdtemp(dir=tmp_path)), shell)
    spec = JobSpec("", arguments, environment=environment, inherit_environment=inherit)

    found_arguments, found_environment = run_probe(bench, spec)

    inherited = {"PATH": PATH, "HOME": str(bench.home), **INHERITED, "JPSI_JOB_ID": bench.job_id}
    expected_arguments, expected_environment = model(spec, inherited)
    assert found_arguments == [os.fsencode(text) for text in expected_arguments]
    if inherit:
        # variables of the shell itself, unless the spec sets them
        for name in set(EXPORTED) - set(environment):
            found_environment.pop(os.fsencode(name), None)
    assert found_environment == encoded(expected_environment)


@linux
@pytest.mark.parametrize("inherit", [True, False], ids=["inheriting", "exactly"])
@properties
@given(items=st.lists(templates, max_size=8), environment=st.dictionaries(st.sampled_from(OWNED), templates))
def test_escaped_text_arrives_unchanged(
    tmp_path: Path, inherit: bool, items: list[str], environment: dict[str, str]
) -> None:
    bench = RunnerBench(Path(tempfile.mkdtemp(dir=tmp_path)))
    escaped: dict[str, str | None] = {name: escape(value) for name, value in environment.items()}
    spec = JobSpec("", [escape(item) for item in items], environment=escaped, inherit_environment=inherit)

    arguments, found = run_probe(bench, spec)

    assert arguments == [os.fsencode(item) for item in items]
    assert encoded(environment).items() <= found.items()


@linux
@ways
def test_names_that_shells_own_are_like_any_other(bench: RunnerBench, inherit: bool) -> None:
    """This holds for the job, and for references that are expanded after them."""
    values = {name: f"a {name}*'\n" for name in (*OWNED, *EXPORTED)}
    environment: dict[str, str | None] = dict(values)
    environment |= {f"LATER_{name}": f"<${{{name}}}>" for name in values}
    spec = JobSpec(
        "", [f"${{{name}}}" for name in values], environment=environment, inherit_environment=inherit
    )

    arguments, found = run_probe(bench, spec)

    assert arguments == [value.encode() for value in values.values()]
    assert encoded(values).items() <= found.items()
    assert encoded({f"LATER_{name}": f"<{values[name]}>" for name in values}).items() <= found.items()


@linux
@pytest.mark.parametrize("shell", ["bash"], indirect=True)
@pytest.mark.parametrize("name", SPECIAL)
def test_name_that_some_shell_uses_is_like_any_other(bench: RunnerBench, name: str) -> None:
    """Its value has no effect on the runner, either."""
    value = {"FUNCNEST": "1", "LC_ALL": "C"}.get(name, "a b*'\n")
    spec = JobSpec("", [f"${{{name}}}"], environment={name: value, "LATER": f"<${{{name}}}>"})

    arguments, environment = run_probe(bench, spec)

    assert arguments == [value.encode()]
    assert encoded({name: value, "LATER": f"<{value}>"}).items() <= environment.items()


@linux
def test_any_name_can_be_unset(bench: RunnerBench) -> None:
    names = [*OWNED, *EXPORTED, "A", "INHERITED", "NEVER_SET"]

    _, environment = run_probe(bench, JobSpec("", [], environment=dict.fromkeys(names)))

    assert {os.fsencode(name) for name in names} & environment.keys() == set()


@pytest.mark.clause("spec-expansion")
@linux
@pytest.mark.parametrize("name", ["PWD", "INHERITED"])
def test_reference_to_an_inherited_variable_is_expanded(simple: RunnerBench, name: str) -> None:
    """This includes PWD, which every process of a shell has: it is the job's directory."""
    value = {"PWD": str(simple.directory), **INHERITED}[name].encode()

    arguments, environment = run_probe(
        simple, JobSpec("", [f"${{{name}}}/x"], environment={"LATER": f"${{{name}}}/y"})
    )

    assert arguments == [value + b"/x"]
    assert environment[b"LATER"] == value + b"/y"


@linux
def test_the_environment_of_the_job_has_only_the_id_from_the_runner(bench: RunnerBench) -> None:
    pre = script(bench.root / "pre.sh", "set -a\nFROM_PRE=1\n")

    _, environment = run_probe(bench, JobSpec("", [], environment={"IFS": "x"}, pre_launch=pre))

    assert [name for name in environment if b"jpsi" in name.lower()] == [b"JPSI_JOB_ID"]
    assert environment[b"FROM_PRE"] == b"1"


@pytest.mark.clause("spec-expansion-arguments")
@linux
def test_arguments_are_expanded_after_pre_launch(bench: RunnerBench) -> None:
    pre = script(bench.root / "pre.sh", "export A=changed NEW='new one'; unset INHERITED\n")

    arguments, environment = run_probe(
        bench, JobSpec("", ["${A}", "${NEW}", "${INHERITED}"], environment={"B": "${A}"}, pre_launch=pre)
    )

    assert arguments == [b"changed", b"new one", b"${INHERITED}"]
    assert environment[b"B"] == INHERITED["A"].encode()


@linux
def test_a_job_that_inherits_nothing_gets_nothing_from_pre_launch(bench: RunnerBench) -> None:
    pre = script(bench.root / "pre.sh", "export NEW=1\n")

    arguments, environment = run_probe(
        bench, JobSpec("", ["${NEW}"], environment={"B": "2"}, inherit_environment=False, pre_launch=pre)
    )

    assert (arguments, environment) == ([b"${NEW}"], {b"B": b"2"})


@pytest.mark.parametrize("inherit", [True, False])
def test_the_spec_cannot_set_a_variable_of_the_runner(bench: RunnerBench, inherit: bool) -> None:
    job = JobSpec("", [], environment={"JPSI_JOB_ID": "mine", "A": "1"}, inherit_environment=inherit)

    _, environment = run_probe(bench, job)

    assert environment.get(b"JPSI_JOB_ID") == (b"a1" if inherit else None)
    assert environment[b"A"] == b"1"


# -------------------------------------------------------------------------------- claim and markers


def test_second_run_of_an_attempt_does_nothing(bench: RunnerBench) -> None:
    written = bench.write(shell_job('echo ran >>"$1"; exit 7', bench.proof))

    first, second = bench.start(written), bench.start(written)

    assert (first.code, first.markers) == (7, ["exit.run.7"])
    assert (second.code, second.markers) == (125, ["exit.run.7"])
    assert bench.proof.read_text() == "ran\n"


def test_one_of_many_concurrent_runs_runs_the_attempt(bench: RunnerBench) -> None:
    written = bench.write(shell_job('echo ran >>"$1"; exit 7', bench.proof))

    runs = [subprocess.Popen([bench.shell, str(written)], stderr=subprocess.DEVNULL) for _ in range(8)]
    codes = [run.wait() for run in runs]

    assert sorted(codes) == [7] + [125] * 7
    assert bench.proof.read_text() == "ran\n"


def test_revoked_attempt_does_nothing(bench: RunnerBench) -> None:
    written = bench.write(shell_job('echo ran >>"$1"', bench.proof))
    (bench.folder / "claim.1").write_text("revoked")

    ended = bench.start(written)

    assert (ended.code, ended.markers) == (125, [])
    assert (bench.folder / "claim.1").read_text() == "revoked"
    assert not bench.proof.exists()


def test_another_attempt_has_its_own_claim(simple: RunnerBench) -> None:
    simple.run(shell_job("exit 7"))

    written = simple.write(shell_job("exit 8"), attempt=2)
    simple.start(written)

    assert simple.markers() == ["a1.2.exit.run.8", "exit.run.7"]


def test_claim_names_the_runner(process: RunnerBench) -> None:
    ended = process.run(shell_job("echo $PPID"))

    assert (process.folder / "claim.1").read_bytes() == ended.stdout


def test_claim_of_a_batch_job_is_its_native_id(batch: RunnerBench) -> None:
    batch.run(shell_job(":"), {"JOB_ID": "17.server"})

    assert (batch.folder / "claim.1").read_text() == "17.server\n"


@pytest.mark.parametrize(
    ("environment", "claim"),
    [({"A": "1", "B": "2"}, "1"), ({"B": "2"}, "2"), ({"A": "", "B": "2"}, "2"), ({}, "unnamed.")],
    ids=["both", "the second", "an empty one", "none"],
)
def test_native_id_is_the_first_variable_that_is_set(
    batch: RunnerBench, environment: Mapping[str, str], claim: str
) -> None:
    attrs.evolve(batch, frame=BatchFrame("A B")).run(shell_job(":"), environment)

    assert (batch.folder / "claim.1").read_text().startswith(claim)


def test_a_requeued_batch_job_leaves_its_own_markers(batch: RunnerBench) -> None:
    written = batch.write(shell_job('echo ran >>"$1"; [ $(wc -l <"$1") -eq 2 ]', batch.proof))

    first = batch.start(written, {"JOB_ID": "17"})
    second = batch.start(written, {"JOB_ID": "17"})

    assert (first.code, second.code) == (1, 0)
    assert second.markers == ["1.active", "1.exit.run.0", "exit.run.1"]


@linux
def test_batch_job_that_is_signalled_while_it_makes_its_claim_ends_with_a_whole_claim(
    batch: RunnerBench,
) -> None:
    """The claim is a pipe that is full, so that the runner waits there.

    A signal interrupts a write of bash to a pipe that has begun, as it never does to a file: bash then takes
    the claim for another's, and waits to read it. That run shows nothing; another follows, five at most.
    """
    written = batch.write(shell_job('echo ran >>"$1"', batch.proof))
    claim = batch.folder / "claim.1"
    codes: list[int] = []
    for _ in range(5):
        claim.unlink(missing_ok=True)
        os.mkfifo(claim)
        pipe = os.open(claim, os.O_RDWR | os.O_NONBLOCK)
        filler = bytes(fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ))
        os.write(pipe, filler)

        with subprocess.Popen([batch.shell, str(written)], env={"PATH": PATH, "JOB_ID": "17"}) as started:
            assert eventually(lambda: is_caught(started.pid, signal.SIGTERM), 60)
            started.terminate()
            os.read(pipe, len(filler))
            if eventually(lambda: started.poll() is not None, 10):
                codes.append(started.wait())
            started.kill()
        if codes:
            break

    assert (codes, os.read(pipe, 99)) == ([-signal.SIGTERM], b"17\n")
    assert (list(batch.events.iterdir()), batch.proof.exists()) == ([], False)


def is_caught(pid: int, number: signal.Signals) -> bool:
    """Return True if a process has a handler for a signal."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) & 1 << number - 1)


@pytest.mark.parametrize("claim", ["16", "revoked", ""])
def test_batch_job_whose_attempt_is_claimed_by_another_does_nothing(batch: RunnerBench, claim: str) -> None:
    written = batch.write(shell_job('echo ran >>"$1"', batch.proof))
    (batch.folder / "claim.1").write_text(claim)

    ended = batch.start(written, {"JOB_ID": "17"})

    assert (ended.code, list(batch.events.iterdir())) == (125, [])
    assert not batch.proof.exists()


def test_batch_jobs_without_an_id_cannot_take_each_others_claim(tmp_path: Path, shell: str) -> None:
    bench = RunnerBench(tmp_path, shell, BatchFrame(""))
    written = bench.write(shell_job('echo ran >>"$1"', bench.proof))

    assert (bench.start(written).code, bench.start(written).code) == (0, 125)
    assert bench.proof.read_text() == "ran\n"


def test_attempt_that_cannot_be_claimed_does_nothing(simple: RunnerBench) -> None:
    written = simple.write(shell_job('echo ran >>"$1"', simple.proof))
    moved = written.rename(simple.root / "run")
    simple.folder.rmdir()

    ended = simple.start(moved)

    assert (ended.code, ended.markers) == (125, [])
    assert not simple.proof.exists()


@pytest.mark.parametrize("code", [0, 1, 7, 125, 126, 127, 128, 255])
def test_code_of_the_job_is_in_the_marker_and_in_the_exit(bench: RunnerBench, code: int) -> None:
    ended = bench.run(shell_job(f"exit {code}"))

    assert (ended.code, ended.markers) == (code, [f"exit.run.{code}"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT])
def test_job_that_a_signal_ends_has_128_and_its_number(bench: RunnerBench, number: signal.Signals) -> None:
    ended = bench.run(shell_job(f"ulimit -c 0; kill -{number.value} $$"))

    assert (ended.code, ended.markers) == (128 + number, [f"exit.run.{128 + number}"])


@pytest.mark.parametrize("code", [0, 7])
@pytest.mark.parametrize("with_post", [False, True], ids=["plain", "sourcing"])
def test_job_runs_although_markers_cannot_be_written(bench: RunnerBench, code: int, with_post: bool) -> None:
    post = script(bench.root / "post.sh", "") if with_post else None
    written = bench.write(
        shell_job(f'echo ran >"$1"; exit {code}', bench.proof, post_launch=post), events="/nonexistent/events"
    )

    ended = bench.start(written)

    assert (ended.code, ended.markers) == (code, [])
    assert bench.proof.read_text() == "ran\n"


def spawned(bench: RunnerBench, written: Path, **options: Any) -> int:
    return os.posix_spawn(
        bench.shell,
        [bench.shell, str(written)],
        {"PATH": PATH, "JOB_ID": "17"},
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        **options,
    )


@pytest.mark.parametrize(
    ("name", "with_post"),
    [*((name, False) for name in SIGNALS), ("TERM", True)],
)
def test_a_signal_is_recorded_and_the_runner_waits_for_the_job(
    process: RunnerBench, fifo: Callable[[str], Path], name: str, with_post: bool
) -> None:
    up, down = fifo("up"), fifo("down")
    post = script(process.root / "post.sh", "") if with_post else None
    written = process.write(shell_job('echo >"$1"; read x <"$2"; exit 7', up, down, post_launch=post))

    pid = spawned(process, written)
    with up.open() as ready:
        ready.read()
    os.kill(pid, signal.Signals[f"SIG{name}"])
    with down.open("w") as release:
        release.write("\n")
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    assert process.markers() == ["exit.run.7", "signalled"]


@pytest.mark.parametrize("with_scripts", [False, True])
@pytest.mark.parametrize("warning", [None, WalltimeWarning("USR1", 86_400)])
def test_a_program_whose_end_was_requested_is_not_started(
    process: RunnerBench, warning: WalltimeWarning | None, *, with_scripts: bool
) -> None:
    """The TERM may have come before there was a process that could become the program."""
    own = (
        script(process.root / "own.sh", "_jpsi_folder=/nowhere; kill() { false; }") if with_scripts else None
    )
    spec = shell_job('echo >"$1"', process.proof, pre_launch=own, post_launch=own)
    written = process.write(spec, warning=warning)
    (process.folder / "stop.1.json").write_text("{}")

    ended = process.start(written)

    assert (ended.code, ended.markers) == (143, ["exit.run.143", "signalled"])
    assert not process.proof.exists()


def test_a_second_term_makes_the_marker_no_later(process: RunnerBench) -> None:
    """Later than that of the exit, it would say that the job had ended by itself."""
    process.folder.mkdir(parents=True)
    mark = f"{process.root}/mark"
    begin = "\n".join(process.frame.begin(mark, str(process.folder), 1))
    once = f"kill -s TERM $$; rm {mark}.signalled || exit 1; kill -s TERM $$; [ ! -e {mark}.signalled ]"

    done = subprocess.run([process.shell, "-c", f"{begin}\n{once}"], env={"PATH": PATH}, check=False)

    assert done.returncode == 0


@pytest.mark.parametrize("pre_launch", [None, "", "trap 'exit 3' TERM; trap '' USR1", "set -e"])
@pytest.mark.parametrize("name", SIGNALS)
def test_signal_to_the_batch_job_reaches_the_executable(
    batch: RunnerBench, fifo: Callable[[str], Path], name: str, pre_launch: str | None
) -> None:
    """The signal goes to the runner only, and the job decides how to react."""
    if pre_launch is not None and name in {"INT", "QUIT"} and not is_bash(batch.shell):
        pytest.skip("a shell between runner and job cannot take it, except bash")
    up = fifo("up")
    pre = None if pre_launch is None else script(batch.root / "pre.sh", pre_launch)
    trapping = 'trap "echo caught; exit 7" $2; echo >"$1"; while :; do sleep 0.01; done'
    written = batch.write(shell_job(trapping, up, name, pre_launch=pre))

    pid = spawned(batch, written)
    with up.open() as ready:
        ready.read()
    os.kill(pid, signal.Signals[f"SIG{name}"])
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    assert batch.markers() == ["exit.run.7", "signalled"]
    assert batch.read("stdout") == b"caught\n"


def test_a_signal_as_a_batch_job_begins_is_sent_once_to_each_process(batch: RunnerBench) -> None:
    """The shell that waits with the timer of a warning stands between the runner and the program."""
    spec = shell_job('trap "" USR1; sleep 0.6')
    written = batch.write(spec, warning=WalltimeWarning("USR2", 86_400))
    log, begun = batch.root / "kills", "_jpsi_note active\n"
    lines = f'kill() {{ printf "%s\\n" "$*" >>{log}; command kill "$@"; }}\ncommand kill -s USR1 $$\n'
    text = written.read_text()
    assert begun in text
    written.write_text(text.replace(begun, begun + lines))

    batch.start(written)

    sent = [it for it in log.read_text().splitlines() if it.startswith("-s USR1")]
    assert sent
    assert len(set(sent)) == len(sent)


def test_a_batch_job_that_ignores_a_signal_runs_on(batch: RunnerBench, fifo: Callable[[str], Path]) -> None:
    up, down = fifo("up"), fifo("down")
    # bash may lose the code of a process that ends as the signal arrives
    written = batch.write(shell_job('trap "" TERM; echo >"$1"; read x <"$2"; sleep 0.2; exit 7', up, down))

    pid = spawned(batch, written)
    with up.open() as ready:
        ready.read()
    os.kill(pid, signal.SIGTERM)
    while "signalled" not in batch.markers():
        pass
    with down.open("w") as release:
        release.write("\n")
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 7
    assert batch.markers() == ["exit.run.7", "signalled"]


def test_batch_job_that_the_signal_kills_has_its_code(
    batch: RunnerBench, fifo: Callable[[str], Path]
) -> None:
    up = fifo("up")
    written = batch.write(shell_job('echo >"$1"; while :; do sleep 0.01; done', up))

    pid = spawned(batch, written)
    with up.open() as ready:
        ready.read()
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 143
    assert batch.markers() == ["exit.run.143", "signalled"]


def test_batch_job_that_ends_by_a_signal_to_all_is_marked_as_signalled_first(
    batch: RunnerBench, fifo: Callable[[str], Path]
) -> None:
    """The job may be gone already when its runner handles the signal."""
    up = fifo("up")
    written = batch.write(shell_job('trap "exit 0" TERM; echo >"$1"; while :; do sleep 0.01; done', up))

    pid = spawned(batch, written, setpgroup=0)
    with up.open() as ready:
        ready.read()
    os.killpg(pid, signal.SIGTERM)
    os.waitpid(pid, 0)

    times = {
        without_usage(it.name.removeprefix("a1.1.")): it.stat().st_mtime_ns for it in batch.events.iterdir()
    }
    # bash may lose the code of a process that ends as the signal arrives
    (end,) = times.keys() & {"exit.run.0", "exit.run.143"}
    assert times["signalled"] <= times[end]


def is_bash(shell: str) -> bool:
    return "bash" in str(Path(shell).resolve())


def test_no_descriptor_but_the_streams_reaches_the_job(bench: RunnerBench) -> None:
    """This is essential for the lock on the intent: the job would hold it as long as it runs."""
    written = bench.write(shell_job("for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2>/dev/null && echo $fd; done; :"))
    lock = "exec 9</dev/null;" if isinstance(bench.frame, ProcessFrame) else ""

    subprocess.run(["sh", "-c", f'{lock} exec "{bench.shell}" "{written}"'], check=True)

    assert bench.read("stdout") == b""


# ------------------------------------------------------------------------------------- executables

ECHO = '#!/bin/sh\nprintf "<%s>" "$@"\nexit 6\n'


@pytest.mark.clause("spec-executable")
@ways
@pytest.mark.parametrize(
    "name",
    [
        *("prog", "a b", "x*", "é", "$HOME", "it's", ".prog", "a=b", "=x", "PATH=x", "-n", "--", "--help"),
        *("cd", "exit", "if", "echo", "[", "test", "true", ":", "!", "{", "time", "command", "~"),
    ],
)
def test_executable_is_searched_on_the_path_of_the_job(bench: RunnerBench, name: str, inherit: bool) -> None:
    """The runner never runs a builtin or reserved word of a shell in its bench."""
    script(bench.root / "bin" / name, ECHO)
    path: dict[str, str | None] = {"PATH": f"{bench.root}/bin:{PATH}"}

    ended = bench.run(JobSpec(name, ["a b", ""], environment=path, inherit_environment=inherit))

    assert (ended.code, ended.markers, ended.stdout) == (6, ["exit.run.6"], b"<a b><>")


@pytest.mark.clause("spec-executable")
@ways
@pytest.mark.parametrize("name", ["bin/prog", "./prog", "./a=b", "a=b/prog", "./a b", "./-", "$HOME/x"])
def test_relative_path_is_relative_to_the_directory_of_the_job(
    bench: RunnerBench, name: str, inherit: bool
) -> None:
    script(bench.directory / name, ECHO)

    ended = bench.run(JobSpec(name, ["x"], inherit_environment=inherit))

    assert (ended.code, ended.markers, ended.stdout) == (6, ["exit.run.6"], b"<x>")


@ways
def test_relative_path_may_begin_with_a_dash(bench: RunnerBench, inherit: bool) -> None:
    """A link to a binary: a script of that name would be one to its interpreter."""
    bench.write(JobSpec())
    (bench.directory / "-i").mkdir()
    (bench.directory / "-i" / "-u").symlink_to("/bin/sh")

    ended = bench.run(JobSpec("-i/-u", ["-c", "echo $1; exit 6", "-", "x"], inherit_environment=inherit))

    assert (ended.code, ended.markers, ended.stdout) == (6, ["exit.run.6"], b"x\n")


@ways
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing", 127),
        ("./missing", 127),
        ("/nonexistent/missing", 127),
        ("cd", 127),
        ("exit", 127),
        ("if", 127),
        ("a=b", 127),
        ("-n", 127),
        ("./plain", 126),
        ("./dir", 126),
        ("/", 126),
    ],
)
def test_executable_that_is_none_fails_with_the_usual_code(
    bench: RunnerBench, name: str, code: int, inherit: bool
) -> None:
    script(bench.directory / "plain", ECHO, mode=0o644)
    (bench.directory / "dir").mkdir()
    environment: dict[str, str | None] = {"PATH": str(bench.root / "empty")}

    ended = bench.run(JobSpec(name, inherit_environment=inherit, environment=environment))

    assert ended.code == code
    assert [re.sub("run|executable", "*", marker) for marker in ended.markers] == [f"exit.*.{code}"]


@pytest.mark.parametrize("inherit", [True, False], ids=["inheriting", "exactly"])
@pytest.mark.parametrize("name", ["missing", "./missing", "cd", "if", "./plain", "./dir"])
def test_missing_executable_is_distinguished_from_a_failed_one(
    simple: RunnerBench, name: str, inherit: bool
) -> None:
    """`Reason.EXECUTABLE` is derived from the phase in the marker."""
    script(simple.directory / "plain", ECHO, mode=0o644)
    (simple.directory / "dir").mkdir()
    environment: dict[str, str | None] = {"PATH": str(simple.root / "empty")}

    ended = simple.run(JobSpec(name, inherit_environment=inherit, environment=environment))

    assert ended.markers == [f"exit.executable.{ended.code}"]


# ----------------------------------------------------------------------------- directory and streams


def test_directory_that_is_missing_ends_the_job(bench: RunnerBench) -> None:
    ended = bench.run(shell_job("exit 7"), directory="/nonexistent/dir")

    assert (ended.code, ended.markers) == (125, ["exit.directory.125"])


@pytest.mark.parametrize("name", ["new/dir x", "-p", "$HOME"])
def test_directory_is_created_on_request(bench: RunnerBench, name: str) -> None:
    directory = bench.directory / name

    ended = bench.run(shell_job("pwd", create_directory=True), directory=str(directory))

    assert (ended.code, ended.stdout) == (0, f"{directory}\n".encode())


@pytest.mark.clause("spec-directory")
@pytest.mark.parametrize("directory", ["~", "~/", "~/a b"])
def test_directory_may_be_in_the_home_directory(bench: RunnerBench, directory: str) -> None:
    (bench.home / "a b").mkdir(parents=True)

    ended = bench.run(shell_job("pwd"), directory=directory)

    assert ended.stdout.decode().strip() == str(bench.home / directory[2:])


def test_streams_without_a_path_are_in_the_folder_and_input_is_empty(bench: RunnerBench) -> None:
    ended = bench.run(shell_job("cat; echo out; echo err >&2"))

    assert (ended.stdout, ended.stderr) == (b"out\n", b"err\n")


@pytest.mark.parametrize("kind", ["relative", "absolute", "home", "hostile"])
def test_streams_are_at_the_paths_of_the_spec(bench: RunnerBench, kind: str) -> None:
    prefix, below = {
        "relative": ("", bench.directory),
        "absolute": (f"{bench.root}/", bench.root),
        "home": ("~/", bench.home),
        "hostile": ("-n $HOME 'x\n", bench.directory),
    }[kind]
    hidden = prefix if kind == "hostile" else ""
    script(below / f"{hidden}in", "some input")

    ended = bench.run(
        shell_job(
            "cat; echo err >&2",
            stdin_path=Path(f"{prefix}in"),
            stdout_path=Path(f"{prefix}out"),
            stderr_path=Path(f"{prefix}err"),
        )
    )

    assert ended.code == 0
    assert (below / f"{hidden}out").read_text() == "some input"
    assert (below / f"{hidden}err").read_text() == "err\n"


def test_both_streams_may_go_to_one_file(bench: RunnerBench) -> None:
    both = Path("both")

    bench.run(shell_job("echo 1; echo 2 >&2; echo 3", stdout_path=both, stderr_path=both))

    assert (bench.directory / both).read_text() == "1\n2\n3\n"


def test_streams_are_truncated(simple: RunnerBench) -> None:
    script(simple.directory / "out", "what was there before")

    simple.run(shell_job("echo 1", stdout_path=Path("out")))

    assert (simple.directory / "out").read_text() == "1\n"


@pytest.mark.parametrize(
    ("fields", "phase"),
    [
        ({"stdin_path": Path("missing")}, "stdin"),
        ({"stdout_path": Path("missing/out")}, "stdout"),
        ({"stdout_path": Path()}, "stdout"),
        ({"stderr_path": Path("missing/err")}, "stderr"),
        ({"stderr_path": Path("/")}, "stderr"),
    ],
    ids=["no input", "output nowhere", "output a directory", "errors nowhere", "errors a directory"],
)
@pytest.mark.parametrize("with_post", [False, True], ids=["plain", "sourcing"])
def test_stream_that_cannot_be_opened_ends_the_job(
    bench: RunnerBench, fields: dict[str, Path], phase: str, with_post: bool
) -> None:
    pre = script(bench.root / "pre.sh", f"echo >{bench.proof}") if with_post else None

    ended = bench.run(shell_job('echo >"$1"', bench.proof, pre_launch=pre, **fields))

    assert (ended.code, ended.markers) == (125, [f"exit.{phase}.125"])
    assert not bench.proof.exists()


# --------------------------------------------------------------------------------------- launchers


def test_launcher_has_the_command_in_its_arguments_and_leaves_the_code(bench: RunnerBench) -> None:
    launch = [ShellLine('printf "%s|" "$@"'), ShellLine("(exit 9)")]

    ended = bench.run(JobSpec("/bin/echo", ["a b", "c"], environment={"A": "1"}), launch=launch)

    assert (ended.code, ended.markers) == (9, ["exit.run.9"])
    assert ended.stdout.removeprefix(b"/usr/bin/env|--default-signal=INT,QUIT|") == b"/bin/echo|a b|c|"
