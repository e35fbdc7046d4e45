"""The launchers whose program only starts one process, on a node of the job.

Such a program may pass on neither environment, directory, input, output nor exit codes. So the lines run each
process by a script, and exchange all that by files in the job's folder, which the nodes must share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import JobSpec, ShellLine, hookimpl, word
from jpsi.plugin.engine import process_count
from jpsi.plugin.kit import forward_signals, trap_signals

from .shell_lines import shell


@attrs.frozen(slots=True, kw_only=True)
class TaskStarter:
    """The program of a batch system that starts a process, and what shell text is its own.

    The variables of the shell text begin with the name of the program. `heterogeneous`, `rank_variables` and
    `launch` are the hooks of these names.
    """

    name: str
    #: What follows `$PATH` where the lines look for the program, and what the message says about that.
    further_path: str
    further_place: str
    #: The variables that the program sets for a process, by short names for the lines.
    variables: Mapping[str, str]
    #: Text that writes the file `slots`, whose line for each process says where it starts.
    write_slots: str
    #: The words before the process's command; they name its slot.
    options: str
    #: A condition: the process has ended, once the program has, or does not start any more.
    has_ended: str
    #: Commands that run on each signal, before it is passed on.
    on_signal: str = ""

    @hookimpl
    def heterogeneous(self) -> bool:
        """Return True: it starts a process on the node of each slot, whatever the kinds of slots."""
        return True

    @hookimpl
    def rank_variables(self) -> Sequence[str]:
        """Return the variables with the rank of a process, and those of the program about its place."""
        return ("JPSI_RANK", "JPSI_SIZE", *self.variables.values())

    @hookimpl
    def launch(self, spec: JobSpec) -> Sequence[ShellLine]:
        """Return the lines that start all processes and wait for them.

        The exit code is that of the lowest rank that failed.
        """
        return [
            *self._shell(_FIND),
            ShellLine(f"_{self.name}_size={word(str(process_count(spec.resources)))}"),
            *self._shell(_PREPARE),
            *forward_signals("launch"),
            *trap_signals("launch", self.on_signal),
            *self._shell(_START),
            *self._shell(_WAIT),
        ]

    def _shell(self, text: str) -> list[ShellLine]:
        names = self.variables.items()
        own = {
            "FURTHER_PATH": self.further_path,
            "FURTHER_PLACE": self.further_place,
            "SAVE_VARIABLES": " ".join(f"_NAME_{it}=${{{name}-}}" for it, name in names),
            "VARIABLES": " ".join(self.variables.values()),
            "RESTORE": "\n".join(
                f'[ -z "$_NAME_{it}" ] || export {name}="$_NAME_{it}"' for it, name in names
            ),
            "WRITE_SLOTS": self.write_slots,
            "OPTIONS": self.options,
            "HAS_ENDED": self.has_ended,
            "NAME": self.name,
        }
        for placeholder, value in own.items():
            text = text.replace(placeholder, value)
        return shell(text)


# The start files of a login shell, which run before each job, may have set PATH without the directory of the
# batch system.
_FIND = """\
_NAME_path=${PATH-}:/usr/bin:/bin
_NAME_program=$(PATH=$_NAME_pathFURTHER_PATH command -v NAME) || {
  echo "NAME is not on the PATH of the job: ${PATH-}, nor FURTHER_PLACE" >"$_jpsi_log"
  exit 127
}"""

_PREPARE = """\
_NAME_umask=$(umask)
umask 077
# A process of a run before a requeue may still write.
_NAME_files=$(PATH=$_NAME_path TMPDIR=$_jpsi_folder mktemp -d) || exit 125
# What each process needs: the shell quotes the environment and the command, whatever they contain.
# shellcheck disable=SC2016  # for that shell
_NAME_directory=$PWD _NAME_umask=$_NAME_umask _NAME_stdin=$_jpsi_stdin _NAME_path=$_NAME_path \\
_NAME_size=$_NAME_size /bin/sh -c '
  _NAME_count=0
  for _NAME_argument in "$@"; do
    _NAME_count=$((_NAME_count + 1))
    eval "_NAME_word_$_NAME_count=\\$_NAME_argument; export _NAME_word_$_NAME_count"
  done
  export _NAME_count
  # bash in POSIX mode would end where a variable of its own is set that cannot be
  [ -z "${BASH_VERSION-}" ] || export -n UID EUID PPID SHELLOPTS BASHOPTS BASH_VERSINFO
  export -p
' sh "$@" >"$_NAME_files/environment"
# What each process runs as: $1 is the directory of these files, and $2 the rank.
PATH=$_NAME_path cat >"$_NAME_files/task" <<'TASK'
exec >>"$1/out.$2" 2>>"$1/err.$2"
_NAME_files=$1 _NAME_rank=$2
SAVE_VARIABLES
unset VARIABLES
. "$1/environment"
set --
_NAME_number=0
while [ "$_NAME_number" -lt "$_NAME_count" ]; do
  _NAME_number=$((_NAME_number + 1))
  eval "set -- \\"\\$@\\" \\"\\$_NAME_word_$_NAME_number\\"; unset _NAME_word_$_NAME_number"
done
RESTORE
export JPSI_RANK="$_NAME_rank" JPSI_SIZE="$_NAME_size"
[ "$_NAME_rank" -eq 0 ] || _NAME_stdin=/dev/null
# The daemons of PBS start it with HUP and QUIT ignored.
if /usr/bin/env -i --default-signal=HUP,INT,QUIT,TTIN /bin/true 2>/dev/null; then
  set -- /usr/bin/env --default-signal=HUP,INT,QUIT,TTIN "$@"
fi
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
(
  trap - HUP INT QUIT TERM ALRM USR1 USR2 XCPU
  cd -- "$_NAME_directory" && umask "$_NAME_umask" || exit 125
  _NAME_input=$_NAME_stdin
  unset _NAME_count _NAME_directory _NAME_path _NAME_size _NAME_stdin _NAME_umask
  exec "$@" <"$_NAME_input"
)
_NAME_code=$?
umask 077
echo "$_NAME_code" >"$_NAME_files/code.$_NAME_rank.new"
PATH=/usr/bin:/bin mv "$_NAME_files/code.$_NAME_rank.new" "$_NAME_files/code.$_NAME_rank"
exit "$_NAME_code"
TASK
WRITE_SLOTS
# Copies what the processes have written to the job's streams, now and then and once more at the end.
_NAME_copy() {
  while :; do
    _NAME_is_over=
    [ ! -e "$_NAME_files/over" ] || _NAME_is_over=1
    _NAME_rank=0
    while [ "$_NAME_rank" -lt "$_NAME_size" ]; do
      for _NAME_stream in out err; do
        _NAME_file=$_NAME_files/$_NAME_stream.$_NAME_rank
        # At the end the file is opened, as the size that NFS remembers may be old.
        [ -n "$_NAME_is_over" ] || [ -s "$_NAME_file" ] || continue
        _NAME_begin=0
        eval "_NAME_begin=\\${_NAME_${_NAME_stream}_$_NAME_rank:-0}"
        { _NAME_end=$(wc -c <"$_NAME_file"); } 2>/dev/null || continue
        [ "$_NAME_end" -gt "$_NAME_begin" ] || continue
        if [ "$_NAME_stream" = out ]; then
          tail -c "+$((_NAME_begin + 1))" "$_NAME_file" | head -c "$((_NAME_end - _NAME_begin))"
        else
          tail -c "+$((_NAME_begin + 1))" "$_NAME_file" | head -c "$((_NAME_end - _NAME_begin))" >&2
        fi
        eval "_NAME_${_NAME_stream}_$_NAME_rank=\\$((_NAME_end))"
      done
      _NAME_rank=$((_NAME_rank + 1))
    done
    [ -z "$_NAME_is_over" ] || return 0
    sleep 0.2 || sleep 1
  done
}"""

_START = """\
_NAME_missing='' _NAME_rank=0
while read -r _NAME_slot; do
  (
    [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
    set -- /bin/sh "$_NAME_files/task" "$_NAME_files" "$_NAME_rank"
    exec "$_NAME_program" OPTIONS "$@"
  ) </dev/null >>"$_NAME_files/log" 2>&1 &
  _launch_pids="$_launch_pids$! "
  _NAME_rank=$((_NAME_rank + 1))
done <"$_NAME_files/slots"
while [ "$_NAME_rank" -lt "$_NAME_size" ]; do
  _NAME_missing="$_NAME_missing $_NAME_rank"
  _NAME_rank=$((_NAME_rank + 1))
done
# No child of this shell: where a signal comes as a process ends, bash 5.2 may wait for all other children.
(
  (
    trap '' HUP INT QUIT TERM ALRM USR1 USR2 XCPU
    PATH=$_NAME_path
    _NAME_copy
    true >"$_NAME_files/copied"
  ) &
  echo "$!" >"$_NAME_files/copier"
)"""

# NAME ends with 0 whatever the process returned, and with something else if it was interrupted: then the
# process may have got the signal as well, and go on.
_WAIT = """\
_NAME_first=0 _NAME_lost=$_NAME_missing
_NAME_rank=0
for _NAME_pid in $_launch_pids; do
  _launch_wait "$_NAME_pid"
  _NAME_tries=0
  until [ -s "$_NAME_files/code.$_NAME_rank" ]; do
    # The file may be late where the nodes share the folder by NFS, whose clients may keep what they know of a
    # folder for a minute, unless they change it themselves.
    if HAS_ENDED || [ ! -e "$_NAME_files/out.$_NAME_rank" ]; then
      _NAME_tries=$((_NAME_tries + 1))
      [ "$_NAME_tries" -le 60 ] || break
      true >"$_NAME_files/look.$_NAME_tries"
    fi
    PATH=$_NAME_path sleep 1
  done
  _launch_code=
  { read -r _launch_code <"$_NAME_files/code.$_NAME_rank"; } 2>/dev/null ||
    _NAME_lost="$_NAME_lost $_NAME_rank"
  [ "$_NAME_first" -ne 0 ] || _NAME_first=${_launch_code:-0}
  _NAME_rank=$((_NAME_rank + 1))
done
true >"$_NAME_files/over"
read -r _NAME_copier <"$_NAME_files/copier"
until [ -e "$_NAME_files/copied" ] || ! kill -s 0 "$_NAME_copier" 2>/dev/null; do
  PATH=$_NAME_path command sleep 0.2 || PATH=$_NAME_path sleep 1
done
if [ -n "$_NAME_lost" ]; then
  {
    echo "NAME lost processes, or did not start them, of rank$_NAME_lost:"
    PATH=$_NAME_path tail -n 5 "$_NAME_files/log"
  } >"$_jpsi_log"
  [ "$_NAME_first" -ne 0 ] || _NAME_first=125
fi
(exit "$_NAME_first")"""
