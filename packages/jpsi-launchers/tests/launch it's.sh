#!/bin/bash
# A launcher script as PSI/J has them. It starts a process for each line of the node file, or one.
job_id=$1 log=$2 pre_launch=$3 post_launch=$4 stdin=$5 stdout=$6 stderr=$7
shift 7

if [ -n "$pre_launch" ]; then
  . "$pre_launch" || { echo "pre_launch failed with $?"; exit 1; }
fi
pids=()
told=
trap 'told=yes; kill "${pids[@]}"' TERM
{
  for node in $(cat "${PSIJ_NODEFILE:-/dev/stdin}" <<<"$HOSTNAME"); do
    # Rank 0 has the input; bash has what runs in the background ignore two signals.
    (trap - INT QUIT; exec "$@") <"$stdin" &
    pids+=($!)
    stdin=/dev/null
  done
} >"$stdout" 2>"$stderr"
# The last one may have run before it was known by its number.
[ -z "$told" ] || kill "${pids[@]}"
code=0
for pid in "${pids[@]}"; do
  wait "$pid"
  one=$?
  # The trap has ended the first wait.
  while kill -0 "$pid" 2>/dev/null; do wait "$pid"; one=$?; done
  [ "$code" -ne 0 ] || code=$one
done
echo "$job_id ended with $code" >>"$log"
if [ -n "$post_launch" ]; then
  . "$post_launch"
fi
echo _PSI_J_LAUNCHER_DONE
exit "$code"
