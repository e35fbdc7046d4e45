_blaunch_path=${PATH-}:/usr/bin:/bin
_blaunch_program=$(PATH=$_blaunch_path${LSF_BINDIR:+:$LSF_BINDIR} command -v blaunch) || {
  echo "blaunch is not on the PATH of the job: ${PATH-}, nor in LSF_BINDIR: ${LSF_BINDIR-}" >"$_jpsi_log"
  exit 127
}
_blaunch_size=3
_blaunch_umask=$(umask)
umask 077
# A process of a run before a requeue may still write.
_blaunch_files=$(PATH=$_blaunch_path TMPDIR=$_jpsi_folder mktemp -d) || exit 125
# What each process needs: the shell quotes the environment and the command, whatever they contain.
# shellcheck disable=SC2016  # for that shell
_blaunch_directory=$PWD _blaunch_umask=$_blaunch_umask _blaunch_stdin=$_jpsi_stdin _blaunch_path=$_blaunch_path \
_blaunch_size=$_blaunch_size /bin/sh -c '
  _blaunch_count=0
  for _blaunch_argument in "$@"; do
    _blaunch_count=$((_blaunch_count + 1))
    eval "_blaunch_word_$_blaunch_count=\$_blaunch_argument; export _blaunch_word_$_blaunch_count"
  done
  export _blaunch_count
  # bash in POSIX mode would end where a variable of its own is set that cannot be
  [ -z "${BASH_VERSION-}" ] || export -n UID EUID PPID SHELLOPTS BASHOPTS BASH_VERSINFO
  export -p
' sh "$@" >"$_blaunch_files/environment"
# What each process runs as: $1 is the directory of these files, and $2 the rank.
PATH=$_blaunch_path cat >"$_blaunch_files/task" <<'TASK'
exec >>"$1/out.$2" 2>>"$1/err.$2"
_blaunch_files=$1 _blaunch_rank=$2
_blaunch_task=${LSF_PM_TASKID-} _blaunch_machine=${LSF_PM_XMACHID-} _blaunch_process=${LSF_PM_XPROCID-}
unset LSF_PM_TASKID LSF_PM_XMACHID LSF_PM_XPROCID
. "$1/environment"
set --
_blaunch_number=0
while [ "$_blaunch_number" -lt "$_blaunch_count" ]; do
  _blaunch_number=$((_blaunch_number + 1))
  eval "set -- \"\$@\" \"\$_blaunch_word_$_blaunch_number\"; unset _blaunch_word_$_blaunch_number"
done
[ -z "$_blaunch_task" ] || export LSF_PM_TASKID="$_blaunch_task"
[ -z "$_blaunch_machine" ] || export LSF_PM_XMACHID="$_blaunch_machine"
[ -z "$_blaunch_process" ] || export LSF_PM_XPROCID="$_blaunch_process"
export JPSI_RANK="$_blaunch_rank" JPSI_SIZE="$_blaunch_size"
[ "$_blaunch_rank" -eq 0 ] || _blaunch_stdin=/dev/null
# The daemons of PBS start it with HUP and QUIT ignored.
if /usr/bin/env -i --default-signal=HUP,INT,QUIT,TTIN /bin/true 2>/dev/null; then
  set -- /usr/bin/env --default-signal=HUP,INT,QUIT,TTIN "$@"
fi
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
(
  trap - HUP INT QUIT TERM ALRM USR1 USR2 XCPU
  cd -- "$_blaunch_directory" && umask "$_blaunch_umask" || exit 125
  _blaunch_input=$_blaunch_stdin
  unset _blaunch_count _blaunch_directory _blaunch_path _blaunch_size _blaunch_stdin _blaunch_umask
  exec "$@" <"$_blaunch_input"
)
_blaunch_code=$?
umask 077
echo "$_blaunch_code" >"$_blaunch_files/code.$_blaunch_rank.new"
PATH=/usr/bin:/bin mv "$_blaunch_files/code.$_blaunch_rank.new" "$_blaunch_files/code.$_blaunch_rank"
exit "$_blaunch_code"
TASK
_blaunch_signal=''
# For each process, the host of its slot.
PATH=$_blaunch_path cat "$JPSI_NODEFILE" >"$_blaunch_files/slots"
# Copies what the processes have written to the job's streams, now and then and once more at the end.
_blaunch_copy() {
  while :; do
    _blaunch_is_over=
    [ ! -e "$_blaunch_files/over" ] || _blaunch_is_over=1
    _blaunch_rank=0
    while [ "$_blaunch_rank" -lt "$_blaunch_size" ]; do
      for _blaunch_stream in out err; do
        _blaunch_file=$_blaunch_files/$_blaunch_stream.$_blaunch_rank
        # At the end the file is opened, as the size that NFS remembers may be old.
        [ -n "$_blaunch_is_over" ] || [ -s "$_blaunch_file" ] || continue
        _blaunch_begin=0
        eval "_blaunch_begin=\${_blaunch_${_blaunch_stream}_$_blaunch_rank:-0}"
        { _blaunch_end=$(wc -c <"$_blaunch_file"); } 2>/dev/null || continue
        [ "$_blaunch_end" -gt "$_blaunch_begin" ] || continue
        if [ "$_blaunch_stream" = out ]; then
          tail -c "+$((_blaunch_begin + 1))" "$_blaunch_file" | head -c "$((_blaunch_end - _blaunch_begin))"
        else
          tail -c "+$((_blaunch_begin + 1))" "$_blaunch_file" | head -c "$((_blaunch_end - _blaunch_begin))" >&2
        fi
        eval "_blaunch_${_blaunch_stream}_$_blaunch_rank=\$((_blaunch_end))"
      done
      _blaunch_rank=$((_blaunch_rank + 1))
    done
    [ -z "$_blaunch_is_over" ] || return 0
    sleep 0.2 || sleep 1
  done
}
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
  trap "_blaunch_signal=1; _launch_pass $_launch_signal" "$_launch_signal"
done
_blaunch_missing='' _blaunch_rank=0
while read -r _blaunch_slot; do
  (
    [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
    set -- /bin/sh "$_blaunch_files/task" "$_blaunch_files" "$_blaunch_rank"
    exec "$_blaunch_program" -z "$_blaunch_slot" -no-shell "$@"
  ) </dev/null >>"$_blaunch_files/log" 2>&1 &
  _launch_pids="$_launch_pids$! "
  _blaunch_rank=$((_blaunch_rank + 1))
done <"$_blaunch_files/slots"
while [ "$_blaunch_rank" -lt "$_blaunch_size" ]; do
  _blaunch_missing="$_blaunch_missing $_blaunch_rank"
  _blaunch_rank=$((_blaunch_rank + 1))
done
# No child of this shell: where a signal comes as a process ends, bash 5.2 may wait for all other children.
(
  (
    trap '' HUP INT QUIT TERM ALRM USR1 USR2 XCPU
    PATH=$_blaunch_path
    _blaunch_copy
    true >"$_blaunch_files/copied"
  ) &
  echo "$!" >"$_blaunch_files/copier"
)
_blaunch_first=0 _blaunch_lost=$_blaunch_missing
_blaunch_rank=0
for _blaunch_pid in $_launch_pids; do
  _launch_wait "$_blaunch_pid"
  _blaunch_tries=0
  until [ -s "$_blaunch_files/code.$_blaunch_rank" ]; do
    # The file may be late where the nodes share the folder by NFS, whose clients may keep what they know of a
    # folder for a minute, unless they change it themselves.
    if [ -z "$_blaunch_signal" ] || [ "$_launch_code" -eq 0 ] || [ ! -e "$_blaunch_files/out.$_blaunch_rank" ]; then
      _blaunch_tries=$((_blaunch_tries + 1))
      [ "$_blaunch_tries" -le 60 ] || break
      true >"$_blaunch_files/look.$_blaunch_tries"
    fi
    PATH=$_blaunch_path sleep 1
  done
  _launch_code=
  { read -r _launch_code <"$_blaunch_files/code.$_blaunch_rank"; } 2>/dev/null ||
    _blaunch_lost="$_blaunch_lost $_blaunch_rank"
  [ "$_blaunch_first" -ne 0 ] || _blaunch_first=${_launch_code:-0}
  _blaunch_rank=$((_blaunch_rank + 1))
done
true >"$_blaunch_files/over"
read -r _blaunch_copier <"$_blaunch_files/copier"
until [ -e "$_blaunch_files/copied" ] || ! kill -s 0 "$_blaunch_copier" 2>/dev/null; do
  PATH=$_blaunch_path command sleep 0.2 || PATH=$_blaunch_path sleep 1
done
if [ -n "$_blaunch_lost" ]; then
  {
    echo "blaunch lost processes, or did not start them, of rank$_blaunch_lost:"
    PATH=$_blaunch_path tail -n 5 "$_blaunch_files/log"
  } >"$_jpsi_log"
  [ "$_blaunch_first" -ne 0 ] || _blaunch_first=125
fi
(exit "$_blaunch_first")
