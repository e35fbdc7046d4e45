"""Launchers in the runner's script: the environment of processes, nodes, and output of launchers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from jpsi.contract.shell import ShellLine
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobSpec
from jpsi_engine.runner.claim_and_markers import ProcessFrame
from jpsi_engine.runner.script import render_runner
from jpsi_engine.runner.script_input import Run
from runners import PATH, SINGLE, RunnerBench, script, shell_job

TWO = ResourceSpecV1(process_count=2)
THREE = ResourceSpecV1(process_count=3)
#: A launcher that starts a process twice, and gives each its rank.
TWICE = [ShellLine('for rank in 0 1; do PMI_RANK=$rank OTHER=x "$@" || exit; done')]
#: What a job runs that shows its environment.
ENV = ["/usr/bin/env", "-0"]

RANKS = r"""#!/bin/sh
# Attempt 1 of jpsi job a1; intent.1.json beside it holds the request.
# Prints the names of all variables of the environment, whatever their values contain.
_jpsi_names() {
  PATH=${PATH-}:/usr/bin:/bin LC_ALL=C command awk \
    'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z_0-9]*$/) print name }'
}
# The launcher starts each process of the job through this file. Its environment has the variables of the
# spec, those that pre_launch exported, whose names are in the option, and those that the launcher sets.
case ${1-} in
--process=*)
  unset -f command
  _jpsi_exported=${1#--process=}
  shift
  _jpsi_found=$(_jpsi_names) || exit 125
  unset IFS
  for _jpsi_name in $_jpsi_found; do
    case $_jpsi_name in
    PMI_* | PMIX_*) ;;
    *) case $_jpsi_exported in *",$_jpsi_name,"*) ;; *) continue ;; esac ;;
    esac
    eval "set -- \${$_jpsi_name+\"$_jpsi_name=\$$_jpsi_name\"} \"\$@\""
  done
  exec /usr/bin/env -i JPSI_JOB_ID=a1 A='it'\''s' "$@"
  ;;
esac
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
cd /data || _jpsi_end directory 125
command exec </dev/null || _jpsi_end stdin 125
command exec >/spool/jobs/a1/stdout || _jpsi_end stdout 125
command exec 8>/spool/jobs/a1/stderr || _jpsi_end stderr 125
unset JPSI_NODEFILE PSIJ_NODEFILE
export JPSI_JOB_ID=a1
_jpsi_new_A='it'\''s'
_jpsi_new_PATH=/bin:/usr/bin
printf '%s\n' 'module load mpi' >/spool/jobs/a1/prologue.1 || _jpsi_end prologue 125
true >/spool/jobs/a1/phase.1 || :
# The variables that pre_launch exports are those that differ after it.
_jpsi_exported=,
_jpsi_found=$(_jpsi_names) || _jpsi_end environment 125
for _jpsi_name in $_jpsi_found; do
  eval "_jpsi_was_$_jpsi_name=\${$_jpsi_name+x\$$_jpsi_name}"
done
(
umask "$_jpsi_umask"
exec 2>&8
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
command echo prologue >/spool/jobs/a1/phase.1 || exit 125
. /spool/jobs/a1/prologue.1
set +aefuxvC -- "$?"
unset -f cd command echo false kill printf read test true wait
[ "$1" -eq 0 ] || exit "$1"
unset IFS
command trap - ABRT BUS CHLD CONT FPE ILL PIPE PROF SEGV SYS TRAP TSTP TTIN TTOU URG VTALRM XFSZ \
  2>/dev/null || :
trap : HUP INT QUIT TERM ALRM USR1 USR2 XCPU
command cd /data || exit 125
command exec 8>>/spool/jobs/a1/stderr || exit 125
_jpsi_end() { command echo "$1 $2" >/spool/jobs/a1/phase.1; exit "$2"; }
_jpsi_found=$(_jpsi_names 2>/dev/null) || _jpsi_end environment 125
for _jpsi_name in $_jpsi_found; do
  case $_jpsi_name in _ | PWD | OLDPWD | SHLVL | _jpsi_*) continue ;; esac
  eval "_jpsi_was=\${_jpsi_was_$_jpsi_name-} _jpsi_is=\${$_jpsi_name+x\$$_jpsi_name}"
  [ -z "$_jpsi_is" ] || [ "$_jpsi_is" = "$_jpsi_was" ] && continue
  _jpsi_exported=$_jpsi_exported$_jpsi_name,
  eval "_jpsi_new_$_jpsi_name=\$$_jpsi_name"
done
command echo run >/spool/jobs/a1/phase.1
[ -f /bin/prog ] && [ -x /bin/prog ] || {
  [ -e /bin/prog ] || _jpsi_end executable 127
  _jpsi_end executable 126
}
set -- /bin/sh /spool/jobs/a1/run.1 "--process=$_jpsi_exported" /bin/prog "$_jpsi_new_A"
exec 2>/dev/null
(
test ! -e /spool/jobs/a1/stop.1.json || { kill -s TERM $$; exit 143; }
exec mpiexec "$@"
) 2>&8 8>&-
_jpsi_code=$?
[ $_jpsi_code -ne 126 ] || /bin/sh -c : "$@" 2>/dev/null || [ $? -ne 126 ] ||
  _jpsi_end arguments 126
_jpsi_end run "$_jpsi_code"
)
_jpsi_code=$?
{ read -r _jpsi_phase _jpsi_known </spool/jobs/a1/phase.1; } 2>/dev/null || :
case "${_jpsi_phase-} $_jpsi_code" in
'prologue 0') _jpsi_code=125 ;;
esac
_jpsi_end "${_jpsi_phase:-run}" "${_jpsi_known:-$_jpsi_code}"
"""

LOGGED = r"""_jpsi_folder=/spool/jobs/a1
_jpsi_log=/spool/jobs/a1/launch.1
[ ! -e /spool/jobs/a1/launch.1 ] || PATH=${PATH-}:/usr/bin:/bin command rm -f /spool/jobs/a1/launch.1
(
test ! -e /spool/jobs/a1/stop.1.json || { kill -s TERM $$; exit 143; }
"$@" >"$_jpsi_folder"/x.out 2>"$_jpsi_log"
) 2>&8 8>&-
_jpsi_code=$?
if [ -e /spool/jobs/a1/launch.1 ]; then
  _jpsi_last=$(PATH=${PATH-}:/usr/bin:/bin command tail -n 1 /spool/jobs/a1/launch.1)
  if [ "$_jpsi_last" != _PSI_J_LAUNCHER_DONE ]; then
    [ $_jpsi_code -ne 0 ] || _jpsi_code=125
    _jpsi_end launch $_jpsi_code
  fi
fi
[ $_jpsi_code -ne 126 ] || /bin/sh -c : "$@" 2>/dev/null || [ $? -ne 126 ] ||
  _jpsi_end arguments 126
_jpsi_end run "$_jpsi_code"
"""

RUN_RANKS = Run(
    job_id="a1",
    attempt=1,
    folder="/spool/jobs/a1",
    events="/spool/events",
    directory="/data",
    spec=JobSpec("/bin/prog", ["${A}"], environment={"A": "it's"}, inherit_environment=False),
    launch=[ShellLine('exec mpiexec "$@"')],
    rank_variables=["PMI_*", "PMIX_*"],
    prologue=["module load mpi"],
    frame=ProcessFrame(),
)


def test_script_of_a_launcher_matches_the_golden_text() -> None:
    assert render_runner(RUN_RANKS) == RANKS


def test_launcher_with_files_of_its_own_finds_them(tmp_path: Path) -> None:
    lines = [ShellLine('"$@" >"$_jpsi_folder"/x.out 2>"$_jpsi_log"')]

    assert LOGGED in render_runner(attrs.evolve(RUN_RANKS, launch=lines))


@pytest.mark.parametrize("checker", ["sh", "dash", "bash"])
@pytest.mark.parametrize("text", [RANKS, LOGGED], ids=["ranks", "logged"])
def test_script_of_a_launcher_is_valid(text: str, checker: str, tmp_path: Path) -> None:
    if shutil.which(checker) is None:
        pytest.skip(f"there is no {checker} here")
    path = script(tmp_path / "run", text)

    checked = subprocess.run([checker, "-n", str(path)], capture_output=True, check=False)

    assert (checked.returncode, checked.stderr) == (0, b"")


# ------------------------------------------------------------------------------------ what it costs


def test_one_process_costs_one_fork_and_no_file(tmp_path: Path) -> None:
    """The job's own fork, and claim, streams and marker; programs that run many jobs count on it."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("there is no strace here")
    bench = RunnerBench(tmp_path)
    written = bench.write(JobSpec("/bin/true"), frame=ProcessFrame("0022"))
    trace = tmp_path / "trace"
    forks = "trace=fork,vfork,clone,clone3"

    subprocess.run(
        [strace, "-f", "-qq", "-e", "signal=none", "-e", forks, "-o", trace, bench.shell, written], check=True
    )

    assert len(trace.read_text().splitlines()) == 1
    assert sorted(it.name for it in bench.folder.iterdir()) == ["claim.1", "run.1", "stderr", "stdout"]
    assert bench.markers() == ["exit.run.0"]


# ----------------------------------------------------------------------- the environment of processes


def environments(output: bytes) -> list[dict[str, str]]:
    """Return the environments that `ENV` printed in processes of a job, without that of the runner."""
    found: list[dict[str, str]] = []
    for item in output.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        name, _, value = item.partition("=")
        if name == "JPSI_JOB_ID":  # the first of each
            found.append({})
        found[-1][name] = value
    return found


HOSTILE = {
    "LINES": "a\nPMI_FAKE=1\nb",
    "QUOTES": 'it\'s "it" `exit 3` $(exit 3) $A \\',
    "EQUALS": "=a=b=",
    "EMPTY": "",
    "BYTES": "\udcff\udc80é",
    "TRAILING": "x\n\n",
    "IFS": " \t:",
    "PS4": "$(exit 3)",
    "OPTIND": "nonsense",
}


@pytest.mark.clause("spec-inherit-false")
@pytest.mark.parametrize("with_pre", [False, True], ids=["plain", "sourcing"])
def test_process_gets_only_variables_of_the_spec_and_the_launcher(bench: RunnerBench, with_pre: bool) -> None:
    pre = script(bench.root / "pre.sh", ":") if with_pre else None
    spec = JobSpec(*ENV[:1], ENV[1:], inherit_environment=False, environment=dict(HOSTILE), pre_launch=pre)
    outside = {"OUTSIDE": "x", "PMI_OUTSIDE": "a\nOTHER=1", "LINES_OUTSIDE": "x\nPMI_FAKE=1"}

    ended = bench.run(spec, outside, launch=TWICE, rank_variables=["PMI_*"])

    common = {"JPSI_JOB_ID": bench.job_id, **HOSTILE, "PMI_OUTSIDE": "a\nOTHER=1"}
    assert (ended.code, ended.markers, ended.stderr) == (0, ["exit.run.0"], b"")
    assert environments(ended.stdout) == [{**common, "PMI_RANK": "0"}, {**common, "PMI_RANK": "1"}]


def test_several_processes_need_no_pattern_for_that(bench: RunnerBench) -> None:
    spec = JobSpec(*ENV[:1], ENV[1:], inherit_environment=False, environment={"A": "1"}, resources=THREE)

    ended = bench.run(spec, launch=SINGLE, nodes=[ShellLine("echo n1; echo n1; echo n2")])

    file = f"{bench.folder}/nodes.1"
    files = {"JPSI_NODEFILE": file, "PSIJ_NODEFILE": file}
    assert environments(ended.stdout) == [{"JPSI_JOB_ID": "a1", **files, "A": "1"}]


PRE = """
export NEW='a new
one' CHANGED="it's" EMPTY=
export SPEC=pre PATH="/opt/my bin:$PATH"
unset GONE
NOT_EXPORTED=1
export SAME=outside
cd /
"""


@pytest.mark.clause("pre-launch-exports")
def test_exports_of_pre_launch_reach_the_processes(bench: RunnerBench) -> None:
    """New or changed, compared with before; it goes before what the spec says."""
    pre = script(bench.root / "pre.sh", PRE)
    spec = JobSpec(
        *ENV[:1], ENV[1:], inherit_environment=False, environment={"SPEC": "1", "KEPT": "2"}, pre_launch=pre
    )
    outside = {"CHANGED": "its", "GONE": "x", "SAME": "outside", "EMPTY": "x"}

    ended = bench.run(spec, outside, launch=SINGLE, rank_variables=["PMI_*"])

    assert environments(ended.stdout) == [
        {
            "JPSI_JOB_ID": "a1",
            "SPEC": "pre",
            "KEPT": "2",
            "NEW": "a new\none",
            "CHANGED": "it's",
            "EMPTY": "",
            "PATH": f"/opt/my bin:{PATH}",
        }
    ]


def test_exports_of_the_prologue_reach_the_processes(bench: RunnerBench) -> None:
    spec = JobSpec(*ENV[:1], ENV[1:], inherit_environment=False)

    ended = bench.run(spec, launch=SINGLE, rank_variables=["PMI_*"], prologue=["export A=1", "B=2"])

    assert environments(ended.stdout) == [{"JPSI_JOB_ID": "a1", "A": "1"}]


def test_arguments_refer_to_variables_of_the_process(bench: RunnerBench) -> None:
    pre = script(bench.root / "pre.sh", "export NEW='a b' BOTH=pre\n")
    words = ["<%s>", "${NEW}", "${BOTH}/x", "${SPEC}", "${NEITHER}", "${OUTSIDE}", "$${NEW}"]
    spec = JobSpec(
        "/usr/bin/printf",
        words,
        inherit_environment=False,
        environment={"A": "x", "SPEC": "${A}1", "BOTH": "spec"},
        pre_launch=pre,
    )

    ended = bench.run(spec, {"OUTSIDE": "x"}, launch=SINGLE, rank_variables=["PMI_*"])

    assert ended.stdout == b"<a b><pre/x><x1><${NEITHER}><${OUTSIDE}><${NEW}>"


def test_executable_is_searched_on_the_path_that_pre_launch_sets(bench: RunnerBench) -> None:
    script(bench.root / "bin" / "prog", "#!/bin/sh\nexit 6\n")
    pre = script(bench.root / "pre.sh", f"export PATH={bench.root}/bin:$PATH\n")
    found = JobSpec("prog", inherit_environment=False, pre_launch=pre)
    missing = JobSpec("nowhere", inherit_environment=False, pre_launch=pre)

    assert bench.run(found, launch=SINGLE, rank_variables=["PMI_*"]).markers == ["exit.run.6"]
    again = RunnerBench(bench.root / "again", bench.shell, bench.frame)
    assert again.run(missing, launch=SINGLE, rank_variables=["PMI_*"]).markers == ["exit.executable.127"]


def test_executable_with_an_equals_sign_is_run(bench: RunnerBench) -> None:
    script(bench.root / "bin" / "a=b", "#!/bin/sh\nexit 6\n")
    path: dict[str, str | None] = {"PATH": f"{bench.root}/bin:{PATH}"}

    ended = bench.run(
        JobSpec("a=b", environment=path, inherit_environment=False), launch=SINGLE, rank_variables=["X"]
    )

    assert ended.markers == ["exit.run.6"]


@pytest.mark.parametrize("text", ["set -a", "awk() { exit 3; }", "unset PATH", "IFS=A_"])
def test_a_hostile_pre_launch_gives_processes_no_further_variables(bench: RunnerBench, text: str) -> None:
    pre = script(bench.root / "pre.sh", text)
    spec = JobSpec(*ENV[:1], ENV[1:], inherit_environment=False, pre_launch=pre)

    ended = bench.run(spec, {"OUTSIDE": "x"}, launch=SINGLE, rank_variables=["PMI_*"])

    assert (ended.code, environments(ended.stdout)) == (0, [{"JPSI_JOB_ID": "a1"}])


def process(bench: RunnerBench, environment: Mapping[bytes, bytes], names: str = "") -> dict[str, str]:
    """Return the environment of one process, from the environment in which the launcher starts it."""
    spec = JobSpec(*ENV[:1], ENV[1:], inherit_environment=False, environment={"A": "1"})
    written = bench.write(spec, rank_variables=["PMI_*", "P?[XY]"])
    done = subprocess.run(
        [bench.shell, written, f"--process=,{names},", *ENV],
        env={b"PATH": PATH.encode(), **environment},
        check=True,
        capture_output=True,
    )
    assert done.stderr == b""
    (found,) = environments(done.stdout)
    return found


def test_exported_functions_are_no_variables_and_hide_no_command(bench: RunnerBench) -> None:
    functions = {
        f"BASH_FUNC_{name}%%".encode(): b"() { echo fooled; exit 3; }"
        for name in ("awk", "command", "env", "exec", "eval", "PMI_F", "shift")
    }

    assert process(bench, functions) == {"JPSI_JOB_ID": "a1", "A": "1"}


def test_variables_that_match_a_pattern_are_kept(bench: RunnerBench) -> None:
    assert process(bench, {b"B": b"1", b"BB": b"2", b"C": b"3"}, "BB,C,D") == {
        "JPSI_JOB_ID": "a1",
        "A": "1",
        "BB": "2",
        "C": "3",
    }


def test_names_that_are_no_names_are_left_out(bench: RunnerBench) -> None:
    strange = {b"PMI_A B": b"1", b"PMI_a.b": b"1", b"*": b"1", b"1PMI_X": b"1", b"PMI_\xff": b"1"}

    assert process(bench, {**strange, b"PMI_X": b"2"}) == {"JPSI_JOB_ID": "a1", "A": "1", "PMI_X": "2"}


def test_patterns_are_those_of_fnmatch(bench: RunnerBench) -> None:
    found = process(bench, {b"PMX": b"1", b"PMZ": b"2", b"PMXX": b"3", b"xPMI_": b"4", b"PMI_": b"5"})

    assert found == {"JPSI_JOB_ID": "a1", "A": "1", "PMX": "1", "PMI_": "5"}


def test_environment_may_be_large(bench: RunnerBench) -> None:
    """Many variables, and one as large as the kernel takes."""
    many = {f"PMI_{index}": "x" * 100 for index in range(400)}
    large = {"PMI_LARGE": "y" * 120_000}
    outside = {f"OUTSIDE_{index}": "z" * 1000 for index in range(200)}
    given = {name.encode(): value.encode() for name, value in {**many, **large, **outside}.items()}

    assert process(bench, given) == {"JPSI_JOB_ID": "a1", "A": "1", **many, **large}


def test_environment_that_cannot_be_read_fails_the_process(bench: RunnerBench, tmp_path: Path) -> None:
    """The program must not run without the variables of the launcher."""
    script(tmp_path / "bin" / "awk", "#!/bin/sh\nexit 2\n")
    written = bench.write(JobSpec(*ENV, inherit_environment=False), rank_variables=["PMI_*"])

    done = subprocess.run(
        [bench.shell, written, "--process=", *ENV],
        env={"PATH": f"{tmp_path}/bin:{PATH}"},
        check=False,
        capture_output=True,
    )

    assert (done.returncode, done.stdout) == (125, b"")


@pytest.mark.parametrize("inherit", [True, False])
def test_spec_cannot_change_variables_for_a_launcher(bench: RunnerBench, inherit: bool) -> None:
    """The variable may have been copied from the environment of a surrounding job."""
    copied: dict[str, str | None] = {"JPSI_JOB_ID": "outer", "JPSI_NODEFILE": None, "PSIJ_NODEFILE": "x"}
    spec = shell_job(
        "echo $JPSI_JOB_ID; cat $JPSI_NODEFILE $PSIJ_NODEFILE; echo $1",
        resources=THREE,
        environment={**copied, "COPY": "${JPSI_JOB_ID}"},
        inherit_environment=inherit,
    )
    assert spec.arguments is not None
    spec.arguments.append("${COPY}")

    ended = bench.run(spec, {"JPSI_JOB_ID": "outer"}, launch=SINGLE, nodes=[ShellLine("echo n1")])

    assert ended.stdout == b"a1\nn1\nn1\na1\n"


# ----------------------------------------------------------------------------------------- nodes


def test_nodes_are_in_a_file(bench: RunnerBench) -> None:
    lines = [ShellLine('for node in n1 "n 2"; do'), ShellLine('echo "$node"'), ShellLine("done")]

    ended = bench.run(shell_job('cat "$JPSI_NODEFILE"; cmp "$JPSI_NODEFILE" "$PSIJ_NODEFILE"'), nodes=lines)

    assert (ended.code, ended.stdout) == (0, b"n1\nn 2\n")


def test_nodes_are_read_in_the_environment_of_the_batch_system(bench: RunnerBench) -> None:
    """Before that of the spec, and of pre_launch, and without the job's input."""
    pre = script(bench.root / "pre.sh", "export NODE=wrong PATH=/nonexistent\n")
    (bench.root / "in").write_text("input\n")
    spec = shell_job(
        '/bin/cat "$JPSI_NODEFILE" -',
        environment={"NODE": "wrong", "PATH": "/nonexistent"},
        pre_launch=pre,
        stdin_path=bench.root / "in",
    )

    ended = bench.run(spec, {"NODE": "right"}, nodes=[ShellLine('cat; echo "$NODE"')])

    assert ended.stdout == b"right\ninput\n"


# Texts without nodes.
NO_NODES = ["echo oops >&2; exit 3", ":", "cd /; exec nonexistent", "exit 0"]


@pytest.mark.parametrize("text", NO_NODES)
def test_nodes_that_are_not_known_fail_a_job_of_several_processes(bench: RunnerBench, text: str) -> None:
    """Each of them would start where the script runs."""
    pre = script(bench.root / "pre.sh", f"echo >{bench.proof}")

    ended = bench.run(shell_job(":", pre_launch=pre, resources=TWO), nodes=[ShellLine(text)])

    assert (ended.code, ended.markers) == (125, ["exit.nodes.125"])
    assert not bench.proof.exists()
    assert "oops" not in text or ended.stderr == b"oops\n"


def test_a_file_of_nodes_that_cannot_be_written_fails_a_job_of_several_processes(bench: RunnerBench) -> None:
    (bench.folder / "nodes.1").mkdir(parents=True)

    ended = bench.run(shell_job(":", resources=TWO), nodes=[ShellLine("echo n1")])

    assert (ended.code, ended.markers) == (125, ["exit.nodes.125"])


@pytest.mark.parametrize("patterns", [(), ("PMI_*",)], ids=["single", "launcher"])
@pytest.mark.parametrize("inherits", [True, False], ids=["inherits", "empty"])
@pytest.mark.parametrize("text", NO_NODES)
def test_nodes_that_are_not_known_leave_one_process_without_the_file(
    bench: RunnerBench, text: str, inherits: bool, patterns: Sequence[str]
) -> None:
    """The variables of a surrounding job, which it may inherit, are not its own."""
    around = {"JPSI_NODEFILE": "/of/another", "PSIJ_NODEFILE": "/of/another"}
    spec = shell_job("echo ${JPSI_NODEFILE-none} ${PSIJ_NODEFILE-none}; exit 7", inherit_environment=inherits)

    ended = bench.run(spec, around, nodes=[ShellLine(text)], rank_variables=patterns)

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])
    assert ended.stdout == b"none none\n"
    assert ended.stderr == (b"oops\n" if "oops" in text else ended.stderr)


def test_one_process_runs_where_a_file_of_nodes_cannot_be_written(bench: RunnerBench) -> None:
    (bench.folder / "nodes.1").mkdir(parents=True)

    ended = bench.run(shell_job("echo ${JPSI_NODEFILE-none}; exit 7"), nodes=[ShellLine("echo n1")])

    assert (ended.code, ended.markers) == (7, ["exit.run.7"])
    assert (ended.stdout, ended.stderr) == (b"none\n", b"")


def test_nodes_cannot_do_more_than_fail(bench: RunnerBench) -> None:
    lines = [ShellLine("trap - TERM; set -eu; IFS=x; cd /; unset PATH HOME; exec 3>&1; echo n1")]

    ended = bench.run(shell_job("pwd; exit 7"), nodes=lines)

    assert (ended.code, ended.markers, ended.stdout) == (7, ["exit.run.7"], f"{bench.directory}\n".encode())


# ------------------------------------------------------------------------------- what launchers say


@pytest.mark.parametrize("with_pre", [False, True], ids=["plain", "sourcing"])
@pytest.mark.parametrize(
    ("lines", "marker"),
    [
        ('echo "no mpi here" >"$_jpsi_log"; exit 3', "exit.launch.3"),
        ('echo "no mpi here" >"$_jpsi_log"', "exit.launch.125"),
        ('>"$_jpsi_log"', "exit.launch.125"),
        ('echo _PSI_J_LAUNCHER_DONE >"$_jpsi_log"; exit 3', "exit.run.3"),
        ("printf 'note\\n_PSI_J_LAUNCHER_DONE' >\"$_jpsi_log\"; exit 0", "exit.run.0"),
        ('echo "_PSI_J_LAUNCHER_DONE not" >"$_jpsi_log"; exit 0', "exit.launch.125"),
        ('echo _PSI_J_LAUNCHER_DONE >"$_jpsi_log"; echo "and then" >>"$_jpsi_log"', "exit.launch.125"),
        ("exit 3", "exit.run.3"),
    ],
)
def test_launcher_failure_is_read_from_its_log(
    bench: RunnerBench, lines: str, marker: str, with_pre: bool
) -> None:
    pre = (
        script(bench.root / "pre.sh", "unset _jpsi_folder _jpsi_log PATH; tail() { :; }")
        if with_pre
        else None
    )
    spec = shell_job(":", resources=THREE, pre_launch=pre)

    ended = bench.run(spec, launch=[ShellLine(f"({lines})")])

    assert (ended.markers, ended.code) == ([marker], int(marker.rpartition(".")[2]))


def test_post_launch_does_not_run_after_a_launcher_that_failed(bench: RunnerBench) -> None:
    post = script(bench.root / "post.sh", f"echo >{bench.proof}")

    ended = bench.run(
        shell_job(":", resources=THREE, post_launch=post), launch=[ShellLine('>"$_jpsi_log"; exit 3')]
    )

    assert ended.markers == ["exit.launch.3"]
    assert not bench.proof.exists()


def test_log_of_an_earlier_run_means_nothing(batch: RunnerBench) -> None:
    written = batch.write(
        shell_job(":", resources=THREE),
        launch=[ShellLine(f'[ -e {batch.proof} ] || {{ >{batch.proof}; >"$_jpsi_log"; exit 3; }}')],
    )

    first = batch.start(written, {"JOB_ID": "17"})
    second = batch.start(written, {"JOB_ID": "17"})

    assert (first.code, second.code) == (3, 0)
    assert second.markers == ["1.active", "1.exit.run.0", "exit.launch.3"]


def test_signal_during_pre_launch_reaches_the_job(batch: RunnerBench) -> None:
    """The signal is for the job, which does not exist yet."""
    pre = script(batch.root / "pre.sh", "kill -s TERM $$; i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done")

    ended = batch.run(shell_job("exec sleep 1000", pre_launch=pre))

    assert ended.code == 128 + signal.SIGTERM
    assert "exit.run.143" in ended.markers
    assert "signalled" in ended.markers


def test_launcher_finds_the_path_of_standard_input(bench: RunnerBench) -> None:
    lines = [ShellLine('printf "%s" "$_jpsi_stdin"')]
    pre = script(bench.root / "pre.sh", "cd /; unset _jpsi_stdin")
    script(bench.directory / "in it's", "")

    given = bench.run(shell_job(":", stdin_path=Path("in it's"), pre_launch=pre), launch=lines)

    assert given.stdout == f"{bench.directory}/in it's".encode()


def test_launcher_gets_empty_standard_input(bench: RunnerBench) -> None:
    lines = [ShellLine('printf "%s" "$_jpsi_stdin"')]

    assert bench.run(shell_job(":"), launch=lines).stdout == b"/dev/null"


# ------------------------------------------------------------- launchers that source scripts themselves

GIVEN = [
    ShellLine('printf "%s|" "$_jpsi_pre_launch" "$_jpsi_post_launch" "$_jpsi_stdin" >"$_jpsi_folder"/given'),
    ShellLine('printf "%s|" "$_jpsi_stdout" "$_jpsi_stderr" "$@" >>"$_jpsi_folder"/given; exit 7'),
]


def launcher_arguments(bench: RunnerBench, spec: JobSpec) -> list[str]:
    ended = bench.run(spec, launch=GIVEN, sources_scripts=True)
    assert (ended.code, ended.markers) == (7, ["exit.run.7"])
    return (bench.folder / "given").read_text().split("|")[:5]


def test_launcher_that_sources_scripts_gets_their_paths(bench: RunnerBench) -> None:
    for name in ("pre", "post"):
        script(bench.directory / f"{name} it's", f"echo >{bench.proof}")

    found = launcher_arguments(
        bench,
        JobSpec(
            "/bin/true",
            pre_launch=Path("pre it's"),
            post_launch=Path("~/post it's"),
            stdin_path=Path("-n"),
            stdout_path=Path("/out $x"),
            stderr_path=Path("~user"),
        ),
    )

    assert found == [
        f"{bench.directory}/pre it's",
        f"{bench.home}/post it's",
        f"{bench.directory}/-n",
        "/out $x",
        f"{bench.directory}/~user",
    ]
    assert not bench.proof.exists()
    assert not (bench.folder / "stdout").exists()


def test_launcher_that_sources_scripts_gets_empty_paths_for_missing_ones(bench: RunnerBench) -> None:
    assert launcher_arguments(bench, JobSpec("/bin/true")) == [
        "",
        "",
        "/dev/null",
        f"{bench.folder}/stdout",
        f"{bench.folder}/stderr",
    ]


def test_the_prologue_precedes_a_launcher_that_sources(bench: RunnerBench) -> None:
    ended = bench.run(
        JobSpec("/bin/true"),
        launch=[ShellLine('echo "$A" >"$_jpsi_folder"/given')],
        sources_scripts=True,
        prologue=["export A=1; exec >&- 2>&-"],
    )

    assert (ended.code, (bench.folder / "given").read_text()) == (0, "1\n")


def test_executable_may_be_made_by_the_scripts(bench: RunnerBench) -> None:
    ended = bench.run(JobSpec("nowhere"), launch=[ShellLine("exit 127")], sources_scripts=True)

    assert ended.markers == ["exit.run.127"]


# ------------------------------------------------------------------------------------- dispositions


def ignored(status: bytes) -> list[int]:
    """Return the POSIX signals that a process ignores, from /proc."""
    line = next(it for it in status.decode().splitlines() if it.startswith("SigIgn:"))
    mask = int(line.split()[1], 16)
    return [number for number in range(1, 32) if mask >> (number - 1) & 1]


IGNORING = "trap '' HUP INT QUIT TERM ALRM USR1 USR2 XCPU PIPE CHLD ALRM TSTP TTIN TTOU XFSZ"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("pre_launch", [None, "", "trap - INT TERM PIPE", IGNORING])
def test_job_starts_with_the_default_dispositions(bench: RunnerBench, pre_launch: str | None) -> None:
    pre = None if pre_launch is None else script(bench.root / "pre.sh", pre_launch)
    written = bench.write(JobSpec("/bin/cat", ["/proc/self/status"], pre_launch=pre))

    os.posix_spawn(
        bench.shell,
        [bench.shell, str(written)],
        {"PATH": PATH, "JOB_ID": "17"},
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )
    os.wait()

    assert ignored(bench.read("stdout")) == []
