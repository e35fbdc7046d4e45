"""The words and codes by which the exit marker says in which phase a job ended."""

#: The job ran, or did not get that far.
RAN = "run"
LAUNCH = "launch"
POST_LAUNCH = "post_launch"
PRE_LAUNCH = "pre_launch"
PROLOGUE = "prologue"
DIRECTORY = "directory"
STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"
#: There is no executable.
EXECUTABLE = "executable"
#: The kernel does not take the arguments and the environment.
ARGUMENTS = "arguments"
#: The environment cannot be made.
ENVIRONMENT = "environment"
#: The nodes of the processes are not known.
NODES = "nodes"
#: The runner could not start; it leaves nothing else.
SHELL = "shell"
#: Phases of staging: they stand in a status as well.
STAGE_IN, STAGE_OUT, CLEANUP = "stage_in", "stage_out", "cleanup"
#: Stands between the phase in which a job ended and what failed after that.
ALSO = "-"

#: The exit code of a job that could not be set up (as env(1), nohup(1) and timeout(1) do).
SETUP_CODE = 125
#: The exit codes of a shell that cannot execute a file, or does not find it (POSIX XCU 2.8.2).
NOT_EXECUTABLE_CODE, NOT_FOUND_CODE = 126, 127

#: Why jpsi itself ends a job, as it stands in the spool.
CANCEL, TIMEOUT = "cancel", "timeout"
