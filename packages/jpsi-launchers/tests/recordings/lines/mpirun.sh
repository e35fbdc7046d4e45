command -v mpirun >/dev/null 2>&1 || {
  echo 'mpirun is not on the PATH of the job:' "${PATH-}" >"$_jpsi_log"
  exit 127
}
case " $* " in
*' : '*)
  # A colon would end the command here: each word goes with a dot before it, which is taken off again there.
  for _launch_word in "$@"; do shift; set -- "$@" ".$_launch_word"; done
  # shellcheck disable=SC2016  # for that shell
  set -- /bin/sh -c 'for word in "$@"; do shift; set -- "$@" "${word#.}"; done; exec "$@"' sh "$@"
  ;;
esac
_mpi_program=mpirun
_mpi_processes=3
_mpi_cores=''
_mpi_kinds=1
_mpi_nodefile=${JPSI_NODEFILE-}
# Where the first process that fails says so, if what starts it does not.
_mpi_failed=
# The signals that would end what starts the processes, and not them.
_mpi_unheard=
# The PATH of the job may lack what is needed here.
_mpi_path=${PATH-}:/usr/bin:/bin
# The largest number of processes on a node.
if [ -n "$_mpi_nodefile" ]; then
  _mpi_processes=$(
    PATH=$_mpi_path awk '++n[$0] > most { most = n[$0] } END { print most + 0 }' "$_mpi_nodefile"
  )
fi
# The numbers of a list such as 0-1,4.
_mpi_numbers() {
  [ -n "$1" ] || return 0
  echo "$1" | PATH=$_mpi_path tr , '\n' | while IFS=- read -r first last; do
    last=${last:-$first}
    while [ "$first" -le "$last" ]; do
      echo "$first"
      first=$((first + 1))
    done
  done
}
# What each process of Hydra runs as.
# shellcheck disable=SC2016  # for that shell
_mpi_rank='
  [ "${PMI_RANK:-0}" = 0 ] || exec </dev/null
  trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
  "$@"
  code=$?
  [ "$code" -eq 0 ] || { umask 077; set -C; echo "$code" >"$0"; } 2>/dev/null
  exit "$code"
'
# Whether this node has a core for each of them, or as many as each is to have.
_mpi_has_cores() {
  [ -r /proc/self/status ] || return 0
  _mpi_cpus=$(PATH=$_mpi_path awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)
  _mpi_found=$(
    _mpi_numbers "$_mpi_cpus" | while read -r cpu; do
      echo "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list"
    done | PATH=$_mpi_path xargs sort -u 2>/dev/null | PATH=$_mpi_path wc -l
  )
  [ $((_mpi_processes * ${_mpi_cores:-1})) -le "${_mpi_found:-0}" ]
}
_mpi_version=$(mpirun --version 2>&1 </dev/null)
case $_mpi_version in
*'(Open MPI)'* | *'(OpenRTE)'*)
  _mpi_unheard=QUIT
  case $_mpi_version in
  *'(OpenRTE)'* | *'(Open MPI) '[1-4].*) ;;
  *)
    # Since version 5 it passes standard input on with no end, or spoiled: rank 0 opens the file itself.
    if [ "$_jpsi_stdin" != /dev/null ]; then
      # shellcheck disable=SC2016  # for that shell
      set -- /bin/sh -c '[ "${OMPI_COMM_WORLD_RANK:-0}" != 0 ] || exec <"$0"; exec "$@"' "$_jpsi_stdin" "$@"
    fi
    set -- --stdin none "$@"
    # It takes a comma for the end of a path.
    case $_mpi_nodefile:$_jpsi_folder in
    ?*:*,*)
      umask 077
      echo "Open MPI 5 does not read $_jpsi_folder: a work_directory without a comma is needed" >"$_jpsi_log"
      exit 125
      ;;
    esac
    ;;
  esac
  if [ -n "$_mpi_cores" ] && _mpi_has_cores; then
    set -- --map-by "slot:PE=$_mpi_cores" --bind-to core "$@"
  elif [ "$_mpi_kinds" -gt 1 ] || ! _mpi_has_cores; then
    # Open MPI would start nothing, or give each process of several kinds as much.
    set -- --bind-to none "$@"
  fi
  if [ -n "$_mpi_nodefile" ]; then
    # A host that is named once, without a number, would have a slot for each of its cores.
    _mpi_hosts=$_jpsi_folder/$_mpi_program.hosts
    ( umask 077; true >"$_mpi_hosts" )
    PATH=$_mpi_path awk '!n[$0]++ { host[++hosts] = $0 }
      END { for (i = 1; i <= hosts; i++) print host[i] " slots=" n[host[i]] }' "$_mpi_nodefile" >"$_mpi_hosts"
    set -- --hostfile "$_mpi_hosts" "$@"
    # Of the environment it takes to other nodes what is named, by this option or by that variable.
    if [ -z "${OMPI_MCA_mca_base_env_list-}" ] && [ "$(PATH=$_mpi_path wc -l <"$_mpi_hosts")" -gt 1 ]; then
      # shellcheck disable=SC2013  # names, each a word
      for _mpi_name in $(
        PATH=$_mpi_path awk 'BEGIN {
          own = "^(_|PWD|OLDPWD|SHLVL|HOST|HOSTNAME|TMPDIR|XDG_RUNTIME_DIR|JOB_(ID|NAME|SCRIPT)"
          own = own "|(SLURM|SLURMD|PBS|LSB|LSF|SGE|PE|OMPI|PMI|PMIX|PRTE)_.*)$"
          for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ && name !~ own) print name
        }'
      ); do
        eval "set -- \${$_mpi_name+-x $_mpi_name} \"\$@\""
      done
    fi
  fi
  [ "$(PATH=$_mpi_path id -u)" -ne 0 ] || set -- --allow-run-as-root "$@"
  ;;
*'HYDRA build'* | *'Intel(R) MPI'*)
  # It starts them with TTIN ignored, and what rank 0 reads never ends for the others.
  if /usr/bin/env --default-signal=TTIN /bin/true 2>/dev/null; then
    set -- /usr/bin/env --default-signal=TTIN "$@"
  fi
  _mpi_unheard='HUP USR2 XCPU'
  # It makes one code of those of all ranks, bit by bit, or says which signal it was itself that ended some.
  _mpi_failed=$_jpsi_folder/$_mpi_program.failed
  PATH=$_mpi_path rm -f "$_mpi_failed"
  set -- /bin/sh -c "$_mpi_rank" "$_mpi_failed" "$@"
  [ -z "$_mpi_nodefile" ] || set -- -f "$_mpi_nodefile" "$@"
  case $_mpi_version in
  *'Intel(R) MPI'*)
    _mpi_unheard="$_mpi_unheard ALRM"
    # It divides the cores of a node among the processes by itself. Its mpirun is a script that finds out
    # about the batch system, and leaves this program behind when it is ended.
    _mpi_hydra=$(command -v "$_mpi_program")
    _mpi_hydra=${_mpi_hydra%/*}/mpiexec.hydra
    if [ -x "$_mpi_hydra" ]; then
      _mpi_program=$_mpi_hydra
      if [ -n "${I_MPI_HYDRA_BOOTSTRAP-}${I_MPI_HYDRA_BOOTSTRAP_EXEC-}" ]; then
        :
      elif [ -n "${SLURM_JOB_ID-}" ]; then
        set -- -bootstrap slurm "$@"
      elif [ -n "${PE_HOSTFILE-}" ]; then
        set -- -bootstrap sge "$@"
      elif [ -n "${LSB_JOBID-}" ]; then
        set -- -bootstrap lsf "$@"
      elif [ -n "${PBS_NODEFILE-}" ]; then
        set -- -bootstrap pbs "$@"
      fi
    fi
    ;;
  *) [ -z "$_mpi_cores" ] || ! _mpi_has_cores || set -- -bind-to "core:$_mpi_cores" "$@" ;;
  esac
  ;;
esac
set -- -n 3 "$@"
set -- "$_mpi_program" "$@"
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
for _launch_signal in $_mpi_unheard; do
  trap "_launch_pass TERM" "$_launch_signal"
done
(
  [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
  exec "$@" <&3 3<&-
) &
_launch_pids="$! "
_launch_wait $!
[ -z "$_mpi_failed" ] || { read -r _launch_code <"$_mpi_failed"; } 2>/dev/null || :
(exit "$_launch_code")
