from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi import JobAttributes, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1
from jpsi_cli.jobs.diagnosis import JobFacts, diagnose, may_not_be_found
from jpsi_cli.stored_jobs import Owner
from stored_jobs import THEN, encoded_end, stored_job

SPEC = JobSpec(
    "simulate",
    resources=ResourceSpecV1(memory=4 * 2**30),
    attributes=JobAttributes(duration=timedelta(minutes=10), warn=("USR1", 60)),
)


def failed(
    reason: Reason | None, code: int | None = None, message: str = "it is so", **metadata: Any
) -> JobStatus:
    return JobStatus(JobState.FAILED, reason=reason, exit_code=code, message=message, metadata=metadata)


ENDS = {
    "time": (failed(Reason.TIMEOUT), [], "give it more time than 10m0s"),
    "memory": (failed(Reason.OUT_OF_MEMORY), [], "give it more memory than 4G"),
    "kill": (
        failed(Reason.SIGNAL, 137, signal=9),
        [],
        "the usual cause is too little memory: give it more than 4G, with --memory",
    ),
    "warning": (failed(Reason.SIGNAL, 138, signal=10), [], "jpsi sent it SIGUSR1, as --warn asks"),
    "crash": (failed(Reason.SIGNAL, 139, signal=11), [], "the program used memory that is not its own"),
    "no program": (failed(Reason.EXECUTABLE, 127), [], "name the program by its path"),
    "no program in a script": (
        failed(Reason.EXIT_CODE, 127),
        ["run: 3: gmx: not found"],
        "gmx is not found on the node",
    ),
    "no program in the last line": (
        failed(Reason.EXIT_CODE, 1),
        ["run: 3: gmx: not found"],
        "gmx is not found",
    ),
    "no program before the end": (
        failed(Reason.EXIT_CODE, 3),
        ["run: 3: gmx: not found", "ValueError: bad input"],
        "the program itself returned this: look at its last lines",
    ),
    "no modules": (
        failed(Reason.EXIT_CODE, 127),
        ["run: line 2: module: command not found", "run: line 3: mpicc: command not found"],
        "mpicc is not found",
    ),
    "no modules in the last line": (
        failed(Reason.EXIT_CODE, 127),
        ["run: line 2: module: command not found"],
        "the job's shell does not know module: let jpsi load modules, with --setup module:NAME",
    ),
    "not executable": (failed(Reason.EXIT_CODE, 126), [], "a program in it cannot be executed"),
    "library": (
        failed(Reason.EXIT_CODE, 127),
        ["./a.out: error while loading shared libraries: libmpi.so.40: cannot open shared object file"],
        "the library libmpi.so.40 is not found",
    ),
    "module": (
        failed(Reason.EXIT_CODE, 1),
        ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'numpy'"],
        "Python does not find the module numpy",
    ),
    "file": (
        failed(Reason.EXIT_CODE, 1),
        ["cat: input.txt: No such file or directory"],
        "input.txt does not exist",
    ),
    "Python's file": (
        failed(Reason.EXIT_CODE, 1),
        ["FileNotFoundError: [Errno 2] No such file or directory: 'data.h5'"],
        "data.h5 does not exist",
    ),
    "permission": (
        failed(Reason.EXIT_CODE, 1),
        ["sh: 1: /etc/x: Permission denied"],
        "/etc/x may not be read",
    ),
    "disk": (failed(Reason.EXIT_CODE, 1), ["write error: No space left on device"], "the disk is full"),
    "memory by its words": (failed(Reason.SIGNAL, 134, signal=6), ["std::bad_alloc"], "it ran out of memory"),
    "nothing else": (
        failed(Reason.EXIT_CODE, 3),
        ["oh"],
        "the program itself returned this: look at its last lines",
    ),
    "nothing at all": (failed(Reason.EXIT_CODE, 3), [], "look at its output: jpsi logs JOB"),
    "node": (failed(Reason.NODE_FAIL), [], "submit it again"),
    "lost": (failed(Reason.LOST), [], "its node may have crashed"),
    "dependency": (
        JobStatus(JobState.CANCELED, reason=Reason.DEPENDENCY),
        [],
        "check the job that it waited for",
    ),
}


def test_the_job_of_a_group_leads_to_the_output_of_its_tasks() -> None:
    command = ["-m", "jpsi_jobspec.group_supervisor", "/runs/fit-1/1", "fit"]

    diagnosis = diagnose(JobFacts(status=failed(Reason.EXIT_CODE, 5), spec=JobSpec("python", command)))

    (advice,) = diagnosis.advice
    assert "jpsi workflow logs --stderr FILE TASK shows what it wrote" in advice


OWNED = {
    "time of a task": (
        Owner.WORKFLOW,
        Reason.TIMEOUT,
        "give it more time than 10m0s in FILE, the document of its workflow: jpsi workflow run --failed FILE",
    ),
    "memory of a task": (
        Owner.WORKFLOW,
        Reason.OUT_OF_MEMORY,
        "give it more memory than 4G in FILE, the document of its workflow: jpsi workflow run --failed FILE",
    ),
    "node of a task": (
        Owner.WORKFLOW,
        Reason.NODE_FAIL,
        (
            "the job is not to blame, run it again: jpsi workflow run --failed FILE, the document of its "
            "workflow"
        ),
    ),
    "time of a request": (
        Owner.REQUEST,
        Reason.TIMEOUT,
        (
            "give it more time than 10m0s: jpsi request run --time TIME FILE, the document of its request; "
            "or have it save its state and resume"
        ),
    ),
    "deadline of a task": (
        Owner.WORKFLOW,
        Reason.DEADLINE,
        (
            "run it again with a later deadline, or less time, in FILE, the document of its workflow: "
            "jpsi workflow run --failed FILE"
        ),
    ),
    "setup of a request": (
        Owner.REQUEST,
        Reason.SETUP,
        ("fix what the message names, and run it again: jpsi request run FILE, the document of its request"),
    ),
}


@pytest.mark.parametrize("repeated", ["", "7b3 has repeated it, and completed"], ids=["", "repeated"])
@pytest.mark.parametrize(("owner", "reason", "advice"), OWNED.values(), ids=OWNED)
def test_jobs_of_workflows_and_requests_are_repeated_by_these(
    owner: Owner, reason: Reason, advice: str, repeated: str
) -> None:
    facts = JobFacts(
        status=failed(reason), spec=SPEC, owner=owner, repeated=repeated, is_repeated=bool(repeated)
    )

    diagnosis = diagnose(facts)

    assert diagnosis.advice[0] == advice
    assert not any("resubmit" in it for it in diagnosis.advice)


@pytest.mark.parametrize(
    ("owner", "directory"),
    [
        (None, "--dir"),
        (Owner.WORKFLOW, "the `cwd` of its workflow"),
        (Owner.REQUEST, "the `cwd` of its request"),
    ],
    ids=["job", "task", "request"],
)
def test_paths_are_relative_to_the_directory_that_the_user_can_set(
    owner: Owner | None, directory: str
) -> None:
    errors = ["cat: conf.txt: No such file or directory"]
    facts = JobFacts(status=failed(Reason.EXIT_CODE, 1), spec=SPEC, owner=owner, errors=errors)
    program = attrs.evolve(
        facts,
        spec=attrs.evolve(SPEC, executable="./a"),
        status=failed(Reason.EXECUTABLE, 127, "was not found"),
        errors=(),
        directory=Path("/home/me"),
    )

    assert diagnose(facts).advice[0] == (
        f"conf.txt does not exist on the node: paths are relative to {directory}"
    )
    assert diagnose(program).advice == [f"there is no ./a in /home/me: check the path, and {directory}"]


OWNED_SETTINGS = {
    "killed": (
        failed(Reason.SIGNAL, 137, signal=9),
        [],
        "give it more than 4G, with the memory in the document of its {}",
    ),
    "memory by its words": (
        failed(Reason.EXIT_CODE, 1),
        ["std::bad_alloc"],
        "it ran out of memory: ask for more, with the memory in the document of its {}",
    ),
    "no program": (failed(Reason.EXIT_CODE, 127), [], "check its path, or load its module in its command"),
    "launcher": (
        failed(Reason.LAUNCH),
        [],
        "check the launcher, and what it printed: jpsi logs --stderr JOB",
    ),
    "dependency": (failed(Reason.DEPENDENCY), [], "check the job that it waited for"),
    "queue": (
        JobStatus(JobState.QUEUED, message="the nodes are down"),
        [],
        "meanwhile try another queue: the `queue_name` in the document of its {}",
    ),
    "never": (
        JobStatus(JobState.QUEUED, message="the job asks for more time than its partition allows (X)"),
        [],
        "it never starts like this: lower the `duration` in the document of its {}",
    ),
}


@pytest.mark.parametrize("owner", Owner)
@pytest.mark.parametrize(("status", "errors", "advice"), OWNED_SETTINGS.values(), ids=OWNED_SETTINGS)
def test_advice_names_what_the_document_of_a_job_has(
    status: JobStatus, errors: list[str], advice: str, owner: Owner
) -> None:
    (found,) = diagnose(JobFacts(status=status, spec=SPEC, owner=owner, errors=errors)).advice

    assert found.endswith(advice.format(owner.noun))


def _all_ends() -> Iterator[tuple[JobStatus, Sequence[str]]]:
    yield from ((status, errors) for status, errors, _ in ENDS.values())
    yield from ((failed(reason), ()) for reason in Reason)
    yield from ((failed(Reason.SIGNAL, signal=number), ()) for number in range(1, 32))
    yield from ((JobStatus(JobState.QUEUED, message=message), ()) for message in WAITS)
    yield from (
        (JobStatus(JobState.QUEUED, message=f"more {it} than allowed"), ()) for it in ("memory", "cores")
    )
    yield (failed(Reason.SETUP, message="the job's directory could not be entered: /x"), ())


@pytest.mark.parametrize("owner", Owner)
def test_no_advice_for_the_job_of_a_document_names_an_option_of_submit(owner: Owner) -> None:
    excess = [f"--{it}: it can never start" for it in ("nodes", "cores", "memory", "time")]
    facts = [JobFacts(status=it, spec=SPEC, owner=owner, errors=errors) for it, errors in _all_ends()]
    facts.append(JobFacts(status=JobStatus(JobState.QUEUED), spec=SPEC, owner=owner, excess=excess))

    advice = [it for of in facts for it in diagnose(of).advice]

    # what remains behind commands of their own, or such as `jpsi logs --stderr JOB`
    remaining = [
        re.sub(r"jpsi (workflow|request|logs|ls|wait|release|cancel) [^,;:]*", "", it) for it in advice
    ]
    assert [it for it in remaining if "--" in it or "jpsi re" in it] == []


def test_the_words_of_the_user_are_no_options_of_submit() -> None:
    spec = attrs.evolve(SPEC, executable="prog --time 3")

    advice = diagnose(JobFacts(status=failed(Reason.EXECUTABLE), spec=spec, owner=Owner.REQUEST)).advice

    assert advice[0] == "if that is a line of shell: sh -c 'prog --time 3'"


def test_a_task_that_was_not_submitted_is_submitted_by_its_workflow() -> None:
    facts = JobFacts(status=JobStatus(JobState.NEW), spec=SPEC, owner=Owner.WORKFLOW)

    (advice,) = diagnose(facts).advice
    assert advice.endswith("jpsi cancel JOB; then run it again: jpsi workflow run --failed FILE")


@pytest.mark.parametrize(("status", "errors", "advice"), ENDS.values(), ids=ENDS)
def test_an_end_comes_with_advice(status: JobStatus, errors: list[str], advice: str) -> None:
    diagnosis = diagnose(JobFacts(status=status, spec=SPEC, errors=errors))

    assert advice in diagnosis.advice[0]


OWN_CODE = "the program itself returned this: look at its last lines"


def advice_on(errors: Sequence[str], code: int = 1) -> Sequence[str]:
    return diagnose(JobFacts(status=failed(Reason.EXIT_CODE, code), spec=SPEC, errors=errors)).advice


def test_the_last_matching_line_of_stderr_counts() -> None:
    errors = ["a: No such file or directory", "MemoryError"]

    assert advice_on(errors) == ["it ran out of memory: ask for more, with --memory"]


@pytest.mark.parametrize(
    ("errors", "code", "advice"),
    [
        # `cat optional.cfg || true; echo 'not converged' >&2; exit 4`
        (
            ["cat: optional.cfg: No such file or directory", "not converged"],
            4,
            [OWN_CODE, "perhaps: optional.cfg does not exist on the node: paths are relative to --dir"],
        ),
        # `module load python || true; exit 4`
        (
            ["a.sh: line 2: module: command not found"],
            4,
            [
                (
                    "perhaps: the job's shell does not know module: let jpsi load modules, with --setup "
                    "module:NAME"
                ),
                OWN_CODE,
            ],
        ),
        (
            ["sh: 1: gmx: not found", "bye"],
            4,
            [
                OWN_CODE,
                "perhaps: gmx is not found on the node: check its path, or load its module in --pre-launch",
            ],
        ),
    ],
    ids=["no file", "no modules", "no program"],
)
def test_an_error_that_a_script_may_have_tolerated_is_only_perhaps_its_end(
    errors: list[str], code: int, advice: list[str]
) -> None:
    assert advice_on(errors, code) == advice


LIBRARY = "error while loading shared libraries: libhdf5.so: cannot open shared object file"


@pytest.mark.parametrize(
    ("errors", "code", "advice"),
    [
        (
            [f"./fit: {LIBRARY}", "srun: error: node01: task 0: Exited with exit code 127"],
            127,
            ["the library libhdf5.so is not found on the node: have --pre-launch load its module"],
        ),
        (
            [f"./fit: {LIBRARY}", "so it stopped"],
            127,
            ["the library libhdf5.so is not found on the node: have --pre-launch load its module"],
        ),
        (
            [
                "ModuleNotFoundError: No module named 'scipy'",
                "-" * 50,
                "mpirun: one process failed",
                "",
                "make: *** [fit] Error 1",
            ],
            1,
            ["Python does not find the module scipy: have --pre-launch activate its environment"],
        ),
        # the shell went on after it
        (
            ["MemoryError", "a.sh: line 2: module: command not found", "done"],
            1,
            [OWN_CODE, "perhaps: it ran out of memory: ask for more, with --memory"],
        ),
    ],
    ids=["srun", "loader", "mpirun", "shell"],
)
def test_what_launchers_and_shells_print_does_not_hide_the_cause(
    errors: list[str], code: int, advice: list[str]
) -> None:
    assert advice_on(errors, code) == advice


def test_nothing_on_this_machine_gives_a_job_the_memory_that_it_requests() -> None:
    ends = [
        (failed(Reason.SIGNAL, signal=9), ()),
        (failed(Reason.OUT_OF_MEMORY), ()),
        (failed(Reason.EXIT_CODE, 1), ["MemoryError"]),
    ]

    for status, errors in ends:
        facts = JobFacts(status=status, spec=SPEC, errors=errors, is_given_memory=False)
        (advice,) = diagnose(facts).advice
        assert advice.endswith(
            "its machine had too little memory for it, and --memory has no effect there: have it use less, "
            "or run fewer jobs at a time"
        )


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("cat: /nope/x: No such file or directory", "/nope/x does not exist on the node"),
        ("[Errno 2] No such file or directory: '/nope/x'", "/nope/x does not exist on the node"),
        (
            "cat: a/b: No such file or directory",
            "a/b does not exist on the node: paths are relative to --dir",
        ),
    ],
)
def test_only_relative_paths_depend_on_the_directory(error: str, advice: str) -> None:
    found = diagnose(JobFacts(status=failed(Reason.EXIT_CODE, 1), spec=SPEC, errors=[error])).advice

    assert found[0] == advice


def test_a_line_of_shell_is_no_program() -> None:
    advice = diagnose(JobFacts(status=failed(Reason.EXECUTABLE, 127), spec=JobSpec("echo hi"))).advice

    assert advice[0] == "if that is a line of shell: sh -c 'echo hi'"


@pytest.mark.parametrize(
    ("program", "message", "advice"),
    [
        ("./a", "may not be executed", "let it be executed: chmod +x '/home/my run/a'"),
        ("/opt/a", "may not be executed", "let it be executed: chmod +x /opt/a"),
        ("./a", "was not found", "there is no ./a in /home/my run: check the path, and --dir"),
        ("/opt/a", "was not found", "there is no /opt/a where the job ran"),
        ("${HOME}/a", "was not found", "name the program by its path, or have --pre-launch put it on PATH"),
        ("a", "may not be executed", "name the program by its path, or have --pre-launch put it on PATH"),
    ],
)
def test_a_program_that_is_named_by_its_path_needs_no_path(program: str, message: str, advice: str) -> None:
    status = failed(Reason.EXECUTABLE, message=f"the executable {message}: {program}")

    found = diagnose(JobFacts(status=status, spec=JobSpec(program), directory=Path("/home/my run"))).advice

    assert found[0] == advice


@pytest.mark.parametrize(
    ("reason", "first"),
    [
        (Reason.TIMEOUT, "b1 has repeated it, and completed"),
        (Reason.SETUP, "b1 has repeated it, and completed"),
        (Reason.LOST, "its node may have crashed, or not see the work directory: see jpsi logs JOB"),
    ],
)
def test_what_was_repeated_is_not_to_be_repeated(reason: Reason, first: str) -> None:
    repeated = "b1 has repeated it, and completed"
    facts = JobFacts(status=failed(reason), spec=SPEC, repeated=repeated, is_repeated=True)
    in_part = diagnose(attrs.evolve(facts, is_repeated=False)).advice

    advice = diagnose(facts).advice

    assert (advice[0], advice[-1]) == (first, repeated)
    assert not any("jpsi resubmit" in it for it in advice)
    assert in_part[-1] == repeated
    assert reason is Reason.LOST or "jpsi resubmit" in in_part[0]


@pytest.mark.parametrize(
    ("interpreter", "end"),
    [
        ("/bin/bassh", ""),
        ("/bin/bash\r", " (it has Windows line ends: dos2unix '/home/my run/a.sh')"),
    ],
)
def test_a_script_without_its_interpreter_is_not_called_missing(interpreter: str, end: str) -> None:
    facts = JobFacts(
        status=failed(Reason.EXIT_CODE, 127),
        spec=JobSpec("./a.sh"),
        directory=Path("/home/my run"),
        errors=["run: 3: exec: ./a.sh: not found"],
        missing_interpreter=interpreter,
    )

    assert diagnose(facts).advice == [
        f"./a.sh exists, but its first line names an interpreter that does not: {interpreter!r}{end}"
    ]


@pytest.mark.parametrize(
    ("status", "errors", "expected"),
    [
        (failed(Reason.EXIT_CODE, 127), [], True),
        (failed(Reason.EXIT_CODE, 126), ["./a.sh: /bin/bassh: bad interpreter"], True),
        (failed(Reason.EXECUTABLE), [], True),
        (failed(Reason.LAUNCH, 2), ["slurmstepd: execve(): ./a.sh: No such file or directory"], True),
        # the script itself ran
        (failed(Reason.EXIT_CODE, 127), ["./a.sh: 2: nosuchcmd: not found"], False),
        (failed(Reason.EXIT_CODE, 127), ["./a.sh: line 2: nosuchcmd: command not found", "bye"], False),
        (failed(Reason.EXIT_CODE, 127), ["run: 3: exec: ./a.sh: not found"], True),
        (failed(Reason.EXIT_CODE, 1), ["cat: b: No such file or directory"], False),
        (failed(Reason.TIMEOUT), [], False),
        (JobStatus(JobState.COMPLETED, exit_code=0), [], False),
    ],
)
def test_the_end_tells_if_the_program_may_not_have_been_found(
    status: JobStatus, errors: list[str], expected: bool
) -> None:
    assert may_not_be_found(status, "./a.sh", errors) is expected


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        (
            "the file for standard output could not be opened: o/1.txt",
            "make the directory of that file if there is none: mkdir -p '/home/my run/o'",
        ),
        (
            "the file for standard error could not be opened: /x/1.txt",
            "make the directory of that file if there is none: mkdir -p /x",
        ),
        (
            "the job's directory could not be entered: /x",
            "if there is no such directory, make it, or submit the job with --create-dir",
        ),
    ],
)
def test_a_missing_directory_comes_with_the_way_to_make_it(message: str, advice: str) -> None:
    status = failed(Reason.SETUP, message=message)

    found = diagnose(JobFacts(status=status, spec=SPEC, directory=Path("/home/my run"))).advice

    assert found == [advice, "fix what the message names, and submit it again: jpsi resubmit JOB"]


WAITS = {
    "the nodes are in use (Resources)": "nothing is wrong; ask for less",
    "jobs of higher priority come first (Priority)": "nothing is wrong",
    "the job is held (JobHeldUser)": "jpsi release JOB",
    "the job is held by an administrator (JobHeldAdmin)": "ask yours, or as root: jpsi release JOB",
    "the job is held, or waits for other jobs": "if it waits for no other job, let it start: ",
    "the job waits for a job that it depends on (Dependency)": "starts after the job that it waits for",
    "a job that this one depends on has ended so that this one never starts (X)": "never starts: cancel it",
    "the job asks for more time than its partition allows (X)": "never starts like this: lower --time",
    "the job requests more nodes than its partition allows or has up (X)": "ask for less",
    "a limit of the quality of service is reached (QOSMaxJobsPerUserLimit)": "wait until other jobs of yours",
    "as many elements of the array run as may at a time (JobArrayTaskLimit)": (
        "it starts when another element has ended: the %N of its array limits how many run at a time"
    ),
    "The job array has reached its running element limit": "it starts when another element has ended",
    "the account is invalid (InvalidAccount)": "name another project",
    "its reservation has not begun (Reservation)": "or submit the job without --reservation",
    "a licence is not free (Licenses)": "when a licence is free",
    "a node that the job needs is not available (ReqNodeNotAvail)": "try another queue",
}


@pytest.mark.parametrize(("message", "advice"), WAITS.items(), ids=WAITS)
def test_a_pending_reason_comes_with_advice(message: str, advice: str) -> None:
    status = JobStatus(JobState.QUEUED, message=message)

    diagnosis = diagnose(JobFacts(status=status, spec=SPEC, elapsed=timedelta(seconds=65)))

    assert diagnosis.sentence == f"it waits, for 1m5s now: {message}"
    assert advice in diagnosis.advice[0]


def test_a_job_that_no_queue_can_start_is_explained_with_the_numbers() -> None:
    status = JobStatus(JobState.QUEUED, message="the nodes are in use (Resources)")

    assert diagnose(JobFacts(status=status, spec=SPEC, excess=["--nodes: it can never start"])).advice == [
        "--nodes: it can never start"
    ]


@pytest.mark.parametrize(
    "status",
    [
        JobStatus(JobState.QUEUED, message="it waits for a job that it depends on (Dependency)"),
        JobStatus(JobState.CANCELED, reason=Reason.DEPENDENCY),
    ],
)
def test_the_jobs_that_a_job_depends_on_are_named_with_their_ends(status: JobStatus) -> None:
    sentence = "it depends on the job 0 (prep), which is FAILED with exit code 7"

    assert diagnose(JobFacts(status=status, spec=SPEC, dependencies=[sentence])).advice[1:] == [sentence]


def test_position_and_start_estimate_are_reported() -> None:
    status = JobStatus(JobState.QUEUED)

    diagnosis = diagnose(JobFacts(status=status, spec=SPEC, position=3, start_estimate="2026-01-01 12:00"))

    assert diagnosis.sentence == (
        "it waits: the batch system does not say why; 3 jobs are before it; "
        "it is expected to start at 2026-01-01 12:00"
    )
    assert diagnosis.advice == []


@pytest.mark.parametrize(
    ("remark", "advice"),
    [
        ("its files may be late", ["query the batch system: jpsi ls --refresh"]),
        ("unknown: jpsi ls --refresh", []),
    ],
)
def test_the_command_that_asks_the_batch_system_is_named_once(remark: str, advice: list[str]) -> None:
    diagnosis = diagnose(JobFacts(status=JobStatus(JobState.ACTIVE), spec=SPEC, remark=remark))

    assert list(diagnosis.advice) == advice


@pytest.mark.parametrize(
    ("state", "remark", "sentence"),
    [
        (
            JobState.ACTIVE,
            None,
            "it began to run 1m5s ago; now slurm does not mention it, and it has left no exit code",
        ),
        (
            JobState.QUEUED,
            "its cancellation was requested",
            (
                "it was submitted 1m5s ago; now slurm does not mention it, and it has left no exit code; "
                "its cancellation was requested"
            ),
        ),
    ],
    ids=lambda it: it if isinstance(it, JobState) else "",
)
def test_a_missing_job_comes_with_advice(state: JobState, remark: str | None, sentence: str) -> None:
    diagnosis = diagnose(
        JobFacts(
            status=JobStatus(state),
            spec=SPEC,
            job="a1",
            remark=remark,
            missing_in="slurm",
            elapsed=timedelta(seconds=65),
        )
    )

    assert diagnosis.sentence == sentence
    assert diagnosis.advice == ["find out how it ended, which takes a minute or two: jpsi wait a1"]


def test_success_needs_no_advice() -> None:
    diagnosis = diagnose(
        JobFacts(status=JobStatus(JobState.COMPLETED, exit_code=0), spec=SPEC, errors=["warning: not found"])
    )

    assert (diagnosis.sentence, diagnosis.advice) == ("it completed, with exit code 0", [])


STATUSES = st.builds(
    JobStatus,
    st.sampled_from(JobState),
    exit_code=st.none() | st.integers(0, 255),
    message=st.none() | st.text(),
    reason=st.none() | st.sampled_from(Reason),
    metadata=st.just({}) | st.builds(lambda number: {"signal": number}, st.integers(-1, 200)),
)


@given(STATUSES, st.none() | st.text(min_size=1), st.lists(st.text()))
def test_every_set_of_facts_has_a_sentence(status: JobStatus, remark: str | None, errors: list[str]) -> None:
    diagnosis = diagnose(JobFacts(status=status, spec=JobSpec("x"), remark=remark, errors=errors))

    assert diagnosis.sentence
    assert all(diagnosis.advice)
    assert not any("{" in advice and "}" in advice for advice in diagnosis.advice if not errors)


def test_advised_commands_name_the_job_and_only_it() -> None:
    lost = JobFacts(status=failed(Reason.LOST), spec=SPEC, job="6e0c2f51")
    facts = JobFacts(
        status=failed(Reason.EXIT_CODE, 1),
        spec=SPEC,
        job="6e0c2f51",
        errors=["cat: JOB.txt: No such file or directory"],
    )

    assert any(advice.endswith("jpsi logs 6e0c2f51") for advice in diagnose(lost).advice)
    assert diagnose(facts).advice[0].startswith("JOB.txt does not exist")


@pytest.mark.parametrize(
    ("stop", "is_own"),
    [
        (None, False),
        ({"why": "cancel", "time": 50}, True),
        ({"why": "cancel", "time": 60.5}, True),
        ({"why": "cancel", "time": 65}, False),
        ({"why": "cancel", "time": 50, "late": True}, False),
        ({"why": "timeout", "time": 50}, False),
    ],
    ids=["none", "before", "by another clock", "after", "after its end", "at its time limit"],
)
def test_a_job_is_cancelled_by_jpsi_if_that_was_requested_before_its_end(
    stop: dict[str, Any] | None, is_own: bool
) -> None:
    if stop is not None:
        stop = {**stop, "time": (THEN + timedelta(seconds=stop["time"])).isoformat()}
    job = stored_job("a1", final=encoded_end(JobState.CANCELED, 60), stop=stop)

    assert job.was_cancelled_by_jpsi is is_own


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (None, "it was cancelled, after 1m26s"),
        ("the job was cancelled", "it was cancelled, after 1m26s"),
        ("the job was cancelled by root", "it was cancelled, after 1m26s: by root"),
        ("the queue was removed", "it was cancelled, after 1m26s: the queue was removed"),
    ],
)
def test_cancellation_is_mentioned_once(message: str | None, sentence: str) -> None:
    status = JobStatus(JobState.CANCELED, reason=Reason.CANCELLED, message=message)
    facts = JobFacts(status=status, spec=JobSpec(), elapsed=timedelta(seconds=86))
    own = attrs.evolve(facts, was_cancelled_by_jpsi=True)

    assert diagnose(facts).sentence == sentence
    assert diagnose(own).sentence == sentence.replace("it was cancelled", "jpsi cancelled it")


@pytest.mark.parametrize(("times", "words"), [(1, "again once since"), (3, "again 3 times since")])
def test_reruns_by_the_batch_system_are_reported(times: int, words: str) -> None:
    diagnosis = diagnose(JobFacts(status=JobStatus(JobState.COMPLETED, exit_code=0), spec=SPEC, reruns=times))

    assert words in diagnosis.advice[-1]


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.ACTIVE, JobState.QUEUED])
def test_a_damaged_job_comes_without_advice_to_resubmit(state: JobState) -> None:
    diagnosis = diagnose(
        JobFacts(status=JobStatus(state), spec=SPEC, remark="damaged: x", damage="damaged: x")
    )

    assert "damaged: x" in (diagnosis.sentence, *diagnosis.advice)
    assert not any("submit" in it for it in diagnosis.advice)
