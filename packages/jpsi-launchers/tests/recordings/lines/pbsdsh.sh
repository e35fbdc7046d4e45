_pbsdsh_path=${PATH-}:/usr/bin:/bin
_pbsdsh_program=$(PATH=$_pbsdsh_path:${PBS_O_PATH-} command -v pbsdsh) || {
  echo "pbsdsh is not on the PATH of the job: ${PATH-}, nor of its submission: ${PBS_O_PATH-}" >"$_jpsi_log"
  exit 127
}
_pbsdsh_size=3
_pbsdsh_umask=$(umask)
umask 077
# A process of a run before a requeue may still write.
_pbsdsh_files=$(PATH=$_pbsdsh_path TMPDIR=$_jpsi_folder mktemp -d) || exit 125
# What each process needs: the shell quotes the environment and the command, whatever they contain.
# shellcheck disable=SC2016  # for that shell
_pbsdsh_directory=$PWD _pbsdsh_umask=$_pbsdsh_umask _pbsdsh_stdin=$_jpsi_stdin _pbsdsh_path=$_pbsdsh_path \
_pbsdsh_size=$_pbsdsh_size /bin/sh -c '
  _pbsdsh_count=0
  for _pbsdsh_argument in "$@"; do
    _pbsdsh_count=$((_pbsdsh_count + 1))
    eval "_pbsdsh_word_$_pbsdsh_count=\$_pbsdsh_argument; export _pbsdsh_word_$_pbsdsh_count"
  done
  export _pbsdsh_count
  # bash in POSIX mode would end where a variable of its own is set that cannot be
  [ -z "${BASH_VERSION-}" ] || export -n UID EUID PPID SHELLOPTS BASHOPTS BASH_VERSINFO
  export -p
' sh "$@" >"$_pbsdsh_files/environment"
# What each process runs as: $1 is the directory of these files, and $2 the rank.
PATH=$_pbsdsh_path cat >"$_pbsdsh_files/task" <<'TASK'
exec >>"$1/out.$2" 2>>"$1/err.$2"
_pbsdsh_files=$1 _pbsdsh_rank=$2
_pbsdsh_node=${PBS_NODENUM-} _pbsdsh_task=${PBS_TASKNUM-} _pbsdsh_vnode=${PBS_VNODENUM-}
unset PBS_NODENUM PBS_TASKNUM PBS_VNODENUM
. "$1/environment"
set --
_pbsdsh_number=0
while [ "$_pbsdsh_number" -lt "$_pbsdsh_count" ]; do
  _pbsdsh_number=$((_pbsdsh_number + 1))
  eval "set -- \"\$@\" \"\$_pbsdsh_word_$_pbsdsh_number\"; unset _pbsdsh_word_$_pbsdsh_number"
done
[ -z "$_pbsdsh_node" ] || export PBS_NODENUM="$_pbsdsh_node"
[ -z "$_pbsdsh_task" ] || export PBS_TASKNUM="$_pbsdsh_task"
[ -z "$_pbsdsh_vnode" ] || export PBS_VNODENUM="$_pbsdsh_vnode"
export JPSI_RANK="$_pbsdsh_rank" JPSI_SIZE="$_pbsdsh_size"
[ "$_pbsdsh_rank" -eq 0 ] || _pbsdsh_stdin=/dev/null
# The daemons of PBS start it with HUP and QUIT ignored.
if /usr/bin/env -i --default-signal=HUP,INT,QUIT,TTIN /bin/true 2>/dev/null; then
  set -- /usr/bin/env --default-signal=HUP,INT,QUIT,TTIN "$@"
fi
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
(
  trap - HUP INT QUIT TERM ALRM USR1 USR2 XCPU
  cd -- "$_pbsdsh_directory" && umask "$_pbsdsh_umask" || exit 125
  _pbsdsh_input=$_pbsdsh_stdin
  unset _pbsdsh_count _pbsdsh_directory _pbsdsh_path _pbsdsh_size _pbsdsh_stdin _pbsdsh_umask
  exec "$@" <"$_pbsdsh_input"
)
_pbsdsh_code=$?
umask 077
echo "$_pbsdsh_code" >"$_pbsdsh_files/code.$_pbsdsh_rank.new"
PATH=/usr/bin:/bin mv "$_pbsdsh_files/code.$_pbsdsh_rank.new" "$_pbsdsh_files/code.$_pbsdsh_rank"
exit "$_pbsdsh_code"
TASK
# For each process, the first slot of its node, by which pbsdsh finds the node.
PATH=$_pbsdsh_path awk '
  NR == FNR { if (!($0 in first)) first[$0] = FNR - 1; next }
  { print first[$0] + 0 }
' "${PBS_NODEFILE:-$JPSI_NODEFILE}" "$JPSI_NODEFILE" >"$_pbsdsh_files/slots"
# Copies what the processes have written to the job's streams, now and then and once more at the end.
_pbsdsh_copy() {
  while :; do
    _pbsdsh_is_over=
    [ ! -e "$_pbsdsh_files/over" ] || _pbsdsh_is_over=1
    _pbsdsh_rank=0
    while [ "$_pbsdsh_rank" -lt "$_pbsdsh_size" ]; do
      for _pbsdsh_stream in out err; do
        _pbsdsh_file=$_pbsdsh_files/$_pbsdsh_stream.$_pbsdsh_rank
        # At the end the file is opened, as the size that NFS remembers may be old.
        [ -n "$_pbsdsh_is_over" ] || [ -s "$_pbsdsh_file" ] || continue
        _pbsdsh_begin=0
        eval "_pbsdsh_begin=\${_pbsdsh_${_pbsdsh_stream}_$_pbsdsh_rank:-0}"
        { _pbsdsh_end=$(wc -c <"$_pbsdsh_file"); } 2>/dev/null || continue
        [ "$_pbsdsh_end" -gt "$_pbsdsh_begin" ] || continue
        if [ "$_pbsdsh_stream" = out ]; then
          tail -c "+$((_pbsdsh_begin + 1))" "$_pbsdsh_file" | head -c "$((_pbsdsh_end - _pbsdsh_begin))"
        else
          tail -c "+$((_pbsdsh_begin + 1))" "$_pbsdsh_file" | head -c "$((_pbsdsh_end - _pbsdsh_begin))" >&2
        fi
        eval "_pbsdsh_${_pbsdsh_stream}_$_pbsdsh_rank=\$((_pbsdsh_end))"
      done
      _pbsdsh_rank=$((_pbsdsh_rank + 1))
    done
    [ -z "$_pbsdsh_is_over" ] || return 0
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
  trap "_launch_pass $_launch_signal" "$_launch_signal"
done
_pbsdsh_missing='' _pbsdsh_rank=0
while read -r _pbsdsh_slot; do
  (
    [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
    set -- /bin/sh "$_pbsdsh_files/task" "$_pbsdsh_files" "$_pbsdsh_rank"
    exec "$_pbsdsh_program" -n "$_pbsdsh_slot" -- "$@"
  ) </dev/null >>"$_pbsdsh_files/log" 2>&1 &
  _launch_pids="$_launch_pids$! "
  _pbsdsh_rank=$((_pbsdsh_rank + 1))
done <"$_pbsdsh_files/slots"
while [ "$_pbsdsh_rank" -lt "$_pbsdsh_size" ]; do
  _pbsdsh_missing="$_pbsdsh_missing $_pbsdsh_rank"
  _pbsdsh_rank=$((_pbsdsh_rank + 1))
done
# No child of this shell: where a signal comes as a process ends, bash 5.2 may wait for all other children.
(
  (
    trap '' HUP INT QUIT TERM ALRM USR1 USR2 XCPU
    PATH=$_pbsdsh_path
    _pbsdsh_copy
    true >"$_pbsdsh_files/copied"
  ) &
  echo "$!" >"$_pbsdsh_files/copier"
)
_pbsdsh_first=0 _pbsdsh_lost=$_pbsdsh_missing
_pbsdsh_rank=0
for _pbsdsh_pid in $_launch_pids; do
  _launch_wait "$_pbsdsh_pid"
  _pbsdsh_tries=0
  until [ -s "$_pbsdsh_files/code.$_pbsdsh_rank" ]; do
    # The file may be late where the nodes share the folder by NFS, whose clients may keep what they know of a
    # folder for a minute, unless they change it themselves.
    if [ "$_launch_code" -eq 0 ] || [ ! -e "$_pbsdsh_files/out.$_pbsdsh_rank" ]; then
      _pbsdsh_tries=$((_pbsdsh_tries + 1))
      [ "$_pbsdsh_tries" -le 60 ] || break
      true >"$_pbsdsh_files/look.$_pbsdsh_tries"
    fi
    PATH=$_pbsdsh_path sleep 1
  done
  _launch_code=
  { read -r _launch_code <"$_pbsdsh_files/code.$_pbsdsh_rank"; } 2>/dev/null ||
    _pbsdsh_lost="$_pbsdsh_lost $_pbsdsh_rank"
  [ "$_pbsdsh_first" -ne 0 ] || _pbsdsh_first=${_launch_code:-0}
  _pbsdsh_rank=$((_pbsdsh_rank + 1))
done
true >"$_pbsdsh_files/over"
read -r _pbsdsh_copier <"$_pbsdsh_files/copier"
until [ -e "$_pbsdsh_files/copied" ] || ! kill -s 0 "$_pbsdsh_copier" 2>/dev/null; do
  PATH=$_pbsdsh_path command sleep 0.2 || PATH=$_pbsdsh_path sleep 1
done
if [ -n "$_pbsdsh_lost" ]; then
  {
    echo "pbsdsh lost processes, or did not start them, of rank$_pbsdsh_lost:"
    PATH=$_pbsdsh_path tail -n 5 "$_pbsdsh_files/log"
  } >"$_jpsi_log"
  [ "$_pbsdsh_first" -ne 0 ] || _pbsdsh_first=125
fi
(exit "$_pbsdsh_first")
