"""Renders the commands, shell programs, by which the executor `local` runs jobs on a remote host.

The hooks of `local` return them in place of the commands of a batch system; `remote_process_output` parses
their output. On this machine, `local` does not use them.

The programs need nothing there but sh(1), ps(1) or /proc, and setsid(1) or a shell with job control. A shell
reads such a program from its standard input; a program that arrives in part is a syntax error and does
nothing.

A job is a session of its own. Its leader is a shell that waits for the job's script, and ends the whole
session on TERM or when the job has used up its duration; it exits after the last process that it ended. The
native id consists of the leader's pid, its start time, the machine and the machine's boot, as the system
reuses a pid alone.
"""

from __future__ import annotations

from jpsi.plugin import word

#: The variable that holds the job's native id in its environment.
ID_VARIABLE = "JPSI_PROCESS"

# Names begin with jpsi_, so that the program changes no variable that the user has exported to the job.
_MACHINE = r"""
jpsi_node=$(uname -n) || exit
{ read -r jpsi_boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || jpsi_boot=0
jpsi_boot=${jpsi_boot%%-*}
# Every process: pid, parent, group, user, state, start, command line. It takes the place of a subshell, so
# that it adds no process but a child of this shell.
jpsi_ps() {
  exec env LC_ALL=C TZ=UTC0 ps -A -ww -o pid= -o ppid= -o pgid= -o uid= -o stat= -o lstart= -o args=
}
# One process: its parent, group, session, state and start; false if there is none. The status is explicit,
# as bash returns another one while a trap runs.
jpsi_look() {
  if [ -r /proc/self/stat ]; then
    { read -r jpsi_line <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${jpsi_line##*') '}
    [ $# -ge 20 ] || return 1
    jpsi_state=$1 jpsi_parent=$2 jpsi_group=$3 jpsi_session=$4 jpsi_start=${20}
    return 0
  fi
  jpsi_line=$(LC_ALL=C TZ=UTC0 ps -o ppid= -o pgid= -o stat= -o lstart= -p "$1") || return 1
  set -- $jpsi_line
  [ $# -eq 8 ] || return 1
  jpsi_state=$3 jpsi_parent=$1 jpsi_group=$2 jpsi_session=$2 jpsi_start=$5$6-$7-$8
}
# The files in this directory record which jobs leaders have ended, and why.
jpsi_ends=${XDG_STATE_HOME:-${HOME-}/.local/state}/jpsi-local
"""

_LEADER = r"""
# The processes of this session, except those that its leader itself has started: PID:PARENT, in jpsi_found.
jpsi_others() {
  jpsi_found=
  if [ -r /proc/self/stat ]; then
    for jpsi_it in /proc/[0-9]*; do
      jpsi_look "${jpsi_it#/proc/}" && jpsi_other "${jpsi_it#/proc/}"
    done
    return
  fi
  jpsi_rows=$(jpsi_ps)
  while read -r jpsi_it jpsi_parent jpsi_group jpsi_line jpsi_state jpsi_line; do
    jpsi_session=$jpsi_group
    jpsi_other "$jpsi_it"
  done <<jpsi_rows
$jpsi_rows
jpsi_rows
}
jpsi_other() {
  case $jpsi_state in [ZX]*) return ;; esac
  [ "$jpsi_session" = $$ ] || [ "$jpsi_group" = $$ ] || return
  case $1 in $$) return ;; "$jpsi_runner" | "$jpsi_timer") ;; *) [ "$jpsi_parent" != $$ ] || return ;; esac
  jpsi_found="$jpsi_found $1:$jpsi_parent"
}
# Ends the session: TERM to the runner first, so that it knows of the signal before it sees its child end (it
# signals the child itself); then to all others; and KILL to the processes that remain after the delay.
jpsi_end() {
  trap : TERM ALRM
  jpsi_remember "$1"
  # it may have been started a moment ago
  jpsi_runner=${jpsi_runner:-${!-}}
  kill -s TERM "$jpsi_runner"
  jpsi_others
  for jpsi_it in $jpsi_found; do
    case $jpsi_it in "$jpsi_runner:"* | *":$jpsi_runner") ;; *) kill -s TERM "${jpsi_it%:*}" ;; esac
  done
  jpsi_tick=0.1 jpsi_left=$((@DELAY@ * 10))
  sleep $jpsi_tick || jpsi_tick=1 jpsi_left=@DELAY@
  while jpsi_others; [ -n "$jpsi_found" ]; do
    jpsi_left=$((jpsi_left - 1))
    if [ $jpsi_left -le 0 ]; then
      for jpsi_it in $jpsi_found; do kill -s KILL "${jpsi_it%:*}"; done
    fi
    sleep $jpsi_tick
  done
  exit
}
# No other process knows the reason; a full disk does not keep the job from ending.
jpsi_remember() {
  umask 077
  mkdir -p "$jpsi_ends"
  find "$jpsi_ends" -type f -mtime +30 -exec rm -f {} \;
  { true >"$jpsi_ends/$1.$JPSI_PROCESS"; } || :
}
jpsi_look $$ || exit
[ "$jpsi_group" = $$ ] || { echo 'no group'; exit; }
export JPSI_PROCESS=$$.$jpsi_start.$jpsi_boot.$jpsi_node
jpsi_born=$jpsi_start jpsi_runner='' jpsi_timer=''
cd /
trap : HUP INT QUIT PIPE USR1 USR2 XCPU
trap 'jpsi_end cancel' TERM
trap 'jpsi_end timeout' ALRM
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
set -- /bin/sh -c @SCRIPT@
@HEED@
( [ -z "${BASH_VERSION-}" ] || trap - INT QUIT; exec "$@" ) </dev/null >/dev/null 2>&1 &
jpsi_runner=$!
echo "started $JPSI_PROCESS"
exec </dev/null >/dev/null 2>&1
if [ @LIMIT@ -gt 0 ]; then
  (
    sleep @LIMIT@ &
    # a leader that was killed meanwhile has left its pid to others
    wait "$!" && jpsi_look $$ && [ "$jpsi_start" = "$jpsi_born" ] && kill -s ALRM $$
  ) &
  jpsi_timer=$!
fi
while :; do
  wait "$jpsi_runner"
  # a signal ends this early
  [ $? -gt 128 ] && kill -s 0 "$jpsi_runner" || break
done
if [ -n "$jpsi_timer" ]; then
  # it starts nothing more; no other signal is sure to reach a shell that was started just now
  kill -s STOP "$jpsi_timer"
  jpsi_others
  for jpsi_it in $jpsi_found; do
    case $jpsi_it in "$jpsi_timer:"* | *":$jpsi_timer") kill -s KILL "${jpsi_it%:*}" ;; esac
  done
fi
exit
"""

_START = r"""
jpsi_lead() {
  ( [ -z "${BASH_VERSION-}" ] || trap - INT QUIT; exec "$@" /bin/sh -s @TAG@ ) <<'@MARK@' &
{@LEADER@}
@MARK@
}
if command -v setsid >/dev/null 2>&1; then
  jpsi_output=$(jpsi_lead setsid)
else
  jpsi_output=$(set -m; jpsi_lead env)
fi
case $jpsi_output in
  'started '*) printf '%s\n' "$jpsi_output" ;;
  'no group') echo 'there is neither setsid(1) nor a /bin/sh with job control' >&2; exit 3 ;;
  *) exit 1 ;;
esac
"""

_PRINT_HOST = 'echo "here $jpsi_node $jpsi_boot"\n'
_END = "echo end\n"

_QUERY = r"""
if [ -r /proc/self/stat ]; then
  for jpsi_id do
    jpsi_look "${jpsi_id%%.*}" && echo "process ${jpsi_id%%.*} $jpsi_state $jpsi_start"
  done
else
  jpsi_wanted=' '
  for jpsi_id do jpsi_wanted="$jpsi_wanted${jpsi_id%%.*} "; done
  jpsi_rows=$(jpsi_ps) || exit
  while read -r jpsi_pid jpsi_it jpsi_it jpsi_it jpsi_state jpsi_it jpsi_a jpsi_b jpsi_c jpsi_d jpsi_it; do
    case $jpsi_wanted in
      *" $jpsi_pid "*) echo "process $jpsi_pid $jpsi_state $jpsi_a$jpsi_b-$jpsi_c-$jpsi_d" ;;
    esac
  done <<jpsi_rows
$jpsi_rows
jpsi_rows
fi
for jpsi_id do
  for jpsi_it in timeout cancel; do
    [ ! -e "$jpsi_ends/$jpsi_it.$jpsi_id" ] || echo "ended $jpsi_it $jpsi_id"
  done
done
"""

# Lists leaders by their command lines: processes of this user that lead a group. The parser of the output
# drops other processes whose command lines look alike.
_LIST = r"""
if [ -r /proc/self/stat ]; then
  for jpsi_it in $(grep -lzF -e jpsi- /proc/[0-9]*/cmdline 2>/dev/null); do
    jpsi_pid=${jpsi_it#/proc/} jpsi_pid=${jpsi_pid%/cmdline}
    [ -O "/proc/$jpsi_pid" ] && jpsi_look "$jpsi_pid" && [ "$jpsi_group" = "$jpsi_pid" ] || continue
    jpsi_args=$(tr '\0\n' '  ' 2>/dev/null <"$jpsi_it")
    case $jpsi_args in
      *' -s jpsi-'*) echo "process $jpsi_pid $jpsi_state $jpsi_start $jpsi_args" ;;
    esac
  done
else
  jpsi_me=$(id -u) && jpsi_rows=$(jpsi_ps) || exit
  while read -r jpsi_pid jpsi_it jpsi_group jpsi_user jpsi_state \
      jpsi_it jpsi_a jpsi_b jpsi_c jpsi_d jpsi_args; do
    [ "$jpsi_group:$jpsi_user" = "$jpsi_pid:$jpsi_me" ] || continue
    case $jpsi_args in
      *' -s jpsi-'*) echo "process $jpsi_pid $jpsi_state $jpsi_a$jpsi_b-$jpsi_c-$jpsi_d $jpsi_args" ;;
    esac
  done <<jpsi_rows
$jpsi_rows
jpsi_rows
fi
"""

# A job that has ended needs no signal, and a job may end while the signal is sent.
_CANCEL = r"""
jpsi_runs() {
  [ "${1#*.*.}" = "$jpsi_boot.$jpsi_node" ] && jpsi_look "${1%%.*}" || return
  case $jpsi_state in [ZX]*) return 1 ;; esac
  [ "$1" = "${1%%.*}.$jpsi_start.$jpsi_boot.$jpsi_node" ]
}
for jpsi_id do
  if [ "${jpsi_id#*.*.*.}" != "$jpsi_node" ]; then
    echo "refused $jpsi_id it runs on ${jpsi_id#*.*.*.}, but this host is $jpsi_node"
  elif jpsi_runs "$jpsi_id" && ! kill -s TERM "${jpsi_id%%.*}" 2>/dev/null && jpsi_runs "$jpsi_id"; then
    echo "refused $jpsi_id it belongs to another user"
  fi
done
"""


def render_start(script: str, tag: str, *, limit: int, delay: int) -> str:
    """Return the program that starts a job, and prints `started` and its native id.

    The program exits with 3 if the host has neither setsid(1) nor a shell with job control.

    Args:
        script: the job, as a script of POSIX shell.
        tag: the tag that the leader has in its command line, by which the job is found.
        limit: the time limit in seconds; 0 is no limit.
        delay: the seconds between TERM and KILL.
    """
    from jpsi.plugin.kit import unignore_signals  # noqa: PLC0415  with tools that processes here do not need

    leader = _MACHINE + _LEADER.replace("@HEED@", "\n".join(unignore_signals()))
    leader = leader.replace("@LIMIT@", str(limit)).replace("@DELAY@", str(delay))
    leader = leader.replace("@SCRIPT@", word(script))
    text = _START.replace("@TAG@", word(tag)).replace("@MARK@", f"end-of-{tag}")
    return _program(text.replace("@LEADER@", leader))


def render_query() -> str:
    """Return the program that prints the state of the jobs whose native ids are its arguments.

    It prints `here`, the machine and its boot; a line `process PID STATE START` for each process; `ended WHY
    ID` for each job that was ended, with `timeout` or `cancel` for WHY; and `end`.
    """
    return _program(_MACHINE + _PRINT_HOST + _QUERY + _END)


def render_listing() -> str:
    """Return the program that prints every leader of this user.

    Its output is that of `render_query`, with the command line at the end of each line.
    """
    return _program(_MACHINE + _PRINT_HOST + _LIST + _END)


def render_cancel() -> str:
    """Return the program that ends the jobs whose native ids are its arguments.

    It prints `refused ID WHY` for those that it did not end, and `end`.
    """
    return _program(_MACHINE + _CANCEL + _END)


def _program(text: str) -> str:
    return f"{{{text}}}\n"
