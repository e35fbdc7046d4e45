"""The lines of shell that run processes with the launcher of an MPI: `mpirun` or `mpiexec`.

Which MPI that is, is only known where the job runs, so the lines find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import ShellLine, line, word

from .shape import Shape
from .text import HEED_SIGNALS, HIDE_COLONS, PASS_SIGNALS, shell

_RANK_VARIABLES = (
    *("OMPI_*", "OPAL_*", "PMIX_*", "PRTE_*"),
    *("PMI_*", "HYDI_*", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "I_MPI_*",
)


def rank_variables() -> Sequence[str]:
    """What Open MPI, Hydra (MPICH, MVAPICH) and Intel MPI give each process."""
    return _RANK_VARIABLES


def lines(program: str, shape: Shape) -> Sequence[ShellLine]:
    """The lines that start the processes of a shape with this program."""
    return list(_lines(program, shape))


def _lines(program: str, shape: Shape) -> Iterator[ShellLine]:
    yield from HIDE_COLONS
    yield ShellLine(f"_mpi_program={word(program)}")
    yield ShellLine(f"_mpi_processes={word(str(shape.processes))}")
    yield ShellLine(f"_mpi_cores={word(str(shape.cores or ''))}")
    yield from _COMMON
    yield ShellLine(f"_mpi_version=$({line(program, '--version')} 2>&1 </dev/null)")
    yield ShellLine("case $_mpi_version in")
    yield from _CASES
    yield ShellLine("esac")
    yield ShellLine(f'{line("set", "--", "-n", str(shape.processes))} "$@"')
    yield ShellLine('[ -n "$_mpi_is_hydra" ] || exec "$_mpi_program" "$@"')
    yield ShellLine('set -- "$_mpi_program" "$@"')
    yield from HEED_SIGNALS
    yield from PASS_SIGNALS
    yield from _UNDER_WATCH


_COMMON = shell(
    """\
_mpi_nodefile=${JPSI_NODEFILE-}
_mpi_is_hydra=
# The PATH of the job may lack what is needed here.
_mpi_path=${PATH-}:/usr/bin:/bin
# The largest number of processes on a node.
if [ -n "$_mpi_nodefile" ]; then
  _mpi_processes=$(
    PATH=$_mpi_path awk '++n[$0] > most { most = n[$0] } END { print most + 0 }' "$_mpi_nodefile"
  )
fi
# Whether this node has a core for each of them, or as many as each is to have.
_mpi_has_cores() {
  [ -r /proc/self/status ] || return 0
  _mpi_found=$(
    PATH=$_mpi_path awk '$1 == "Cpus_allowed_list:" { gsub(",", "\\n", $2); print $2 }' /proc/self/status |
      while IFS=- read -r first last; do
        while [ "$first" -le "${last:-$first}" ]; do
          echo "/sys/devices/system/cpu/cpu$first/topology/thread_siblings_list"
          first=$((first + 1))
        done
      done | PATH=$_mpi_path xargs sort -u 2>/dev/null | PATH=$_mpi_path wc -l
  )
  [ $((_mpi_processes * ${_mpi_cores:-1})) -le "${_mpi_found:-0}" ]
}"""
)

# What --version says: Open MPI 4 `mpirun (Open MPI) 4.1.4` (Debian: `(OpenRTE)`), 5 the same; Hydra
# `HYDRA build details:`; Intel MPI `Intel(R) MPI Library for Linux* OS, Version 2021.19`.
_CASES = shell(
    """\
*'(Open MPI)'* | *'(OpenRTE)'*)
  if [ -n "$_mpi_cores" ] && _mpi_has_cores; then
    set -- --map-by "slot:PE=$_mpi_cores" --bind-to core "$@"
  elif ! _mpi_has_cores; then
    # Open MPI would start nothing.
    set -- --bind-to none "$@"
  fi
  if [ -n "$_mpi_nodefile" ]; then
    # A host that is named once, without a number, would have a slot for each of its cores.
    _mpi_hosts=$_jpsi_folder/$_mpi_program.hosts
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
        eval "set -- \\${$_mpi_name+-x $_mpi_name} \\"\\$@\\""
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
  # shellcheck disable=SC2016  # for that shell
  set -- /bin/sh -c '[ "${PMI_RANK:-0}" = 0 ] || exec </dev/null; exec "$@"' sh "$@"
  [ -z "$_mpi_nodefile" ] || set -- -f "$_mpi_nodefile" "$@"
  case $_mpi_version in
  *'Intel(R) MPI'*)
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
  _mpi_is_hydra=yes
  ;;"""
)

# Hydra says 0 when it was ended, and a job that was ended would pass for one that has completed.
_UNDER_WATCH = shell(
    """\
# Hydra says 0 of processes that a signal has ended.
_launch_ended=0
(
  [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
  exec "$@" <&3 3<&-
) &
_launch_pids=$!
[ -z "$_launch_got" ] || kill -s "$_launch_got" $! 2>/dev/null || :
_launch_wait $!
[ "$_launch_code" -ne 0 ] || _launch_code=$_launch_ended
(exit "$_launch_code")"""
)
