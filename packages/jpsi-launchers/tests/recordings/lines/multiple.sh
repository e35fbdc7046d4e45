JPSI_SIZE=3
# What runs in the background ignores INT and QUIT, and so does what a batch system starts that ignores them.
if /usr/bin/env -i --default-signal=INT,QUIT >/dev/null 2>&1; then
  set -- /usr/bin/env --default-signal=INT,QUIT "$@"
fi
_launch_pids='' _launch_reached='' _launch_got='' _launch_begun=''
# shellcheck disable=SC2317,SC2329  # the traps call it
_launch_pass() {
  _launch_got=$1
  _launch_reached=$_launch_pids
  _launch_kill "$1" "$_launch_pids"
}
_launch_kill() {
  [ -n "$2" ] || return 0
  # A process that dash has just started loses a signal until it has reset its traps.
  if _launch_is_young; then
    PATH=${PATH-}:/usr/bin:/bin command sleep 0.2 || PATH=/usr/bin:/bin command sleep 1
  fi
  # shellcheck disable=SC2086  # several words
  kill -s "$1" $2 2>/dev/null || :
}
# True in the first seconds of a process, and where no file tells the time.
_launch_is_young() {
  _launch_now=''
  { read -r _launch_now _ </proc/uptime; } 2>/dev/null || :
  [ -z "$_launch_begun" ] || [ $((${_launch_now%.*} - ${_launch_begun%.*})) -le 1 ]
}
# True of a process whose end bash 5.2 has lost, as a signal came at the same time: bash lists it as running,
# and `wait` would return -1 once all other processes, such as a timer, have ended.
_launch_is_lost() {
  [ -n "${BASH_VERSION-}" ] && ! kill -s 0 "$1" 2>/dev/null || return
  # shellcheck disable=SC3045  # bash
  for _launch_running in $(jobs -r -p); do [ "$_launch_running" != "$1" ] || return 0; done
  return 1
}
# A signal ends `wait` early. If `wait` has just reported the end of this process, it then returns 127.
_launch_wait() {
  [ -n "$_launch_begun" ] || { read -r _launch_begun _ </proc/uptime; } 2>/dev/null || :
  # A signal that came while processes were being started has not reached the later ones. The others must not
  # get it again: at a second signal, many programs exit without cleaning up.
  [ -z "$_launch_got" ] || _launch_kill "$_launch_got" "${_launch_pids#"$_launch_reached"}"
  _launch_code=''
  while :; do
    _launch_got=
    wait "$1"
    _launch_answer=$?
    case $_launch_code,$_launch_answer in [0-9]*,127 | [0-9]*,-1) ;; *) _launch_code=$_launch_answer ;; esac
    [ -n "$_launch_got" ] || break
    ! _launch_is_lost "$1" || { _launch_got=''; break; }
  done
  _launch_pids=${_launch_pids#* } _launch_reached=${_launch_reached#* }
  [ -n "$_launch_pids" ] || _launch_begun=''
}
for _launch_signal in HUP INT QUIT TERM ALRM USR1 USR2 XCPU; do
  # shellcheck disable=SC2064  # the signal of now
  trap "_launch_pass $_launch_signal" "$_launch_signal"
done
command exec 3<&0 || exec 3</dev/null
export JPSI_SIZE
_multiple_rank=0
while [ "$_multiple_rank" -lt "$JPSI_SIZE" ]; do
  (
    [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
    [ "$_multiple_rank" -eq 0 ] || exec 3</dev/null
    JPSI_RANK=$_multiple_rank
    export JPSI_RANK
    exec "$@" <&3 3<&-
  ) &
  _launch_pids="$_launch_pids$! "
  _multiple_rank=$((_multiple_rank + 1))
done
exec 3<&-
# The code of the job is that of the lowest rank that failed.
_multiple_code=0
for _multiple_pid in $_launch_pids; do
  _launch_wait "$_multiple_pid"
  [ "$_multiple_code" -ne 0 ] || _multiple_code=$_launch_code
done
(exit "$_multiple_code")
