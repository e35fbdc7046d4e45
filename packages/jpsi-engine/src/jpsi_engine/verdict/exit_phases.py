"""Defines the phases and exit codes in the name of an exit marker, which say how far a job got.

The runner's script writes them, and the verdicts read them. They are part of the spool's format, so jobs of
an older version of jpsi may have left them.
"""

#: The default phase: the executable ran, or the run ended before that in no other phase.
RAN = "run"
LAUNCH = "launch"
POST_LAUNCH = "post_launch"
PRE_LAUNCH = "pre_launch"
PROLOGUE = "prologue"
ENVIRONMENT_SETUP = "environment_setup"
DIRECTORY = "directory"
STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"
#: The executable was not found, or may not be executed.
EXECUTABLE = "executable"
#: No runtime that could run the job in its container was found.
CONTAINER = "container"
#: The arguments and the environment are larger than the kernel accepts.
ARGUMENTS = "arguments"
#: The runner could not make the environment.
ENVIRONMENT = "environment"
#: The runner could not find out the names of the job's nodes.
NODES = "nodes"
#: The runner could not start, as its shell cannot be executed; it leaves no other file.
SHELL = "shell"
#: The phases of staging, which are also keys in a status's metadata.
STAGE_IN, STAGE_OUT, CLEANUP = "stage_in", "stage_out", "cleanup"
#: The word after the phase of a job of which the kernel has killed a process for its memory.
MEMORY_KILL = "oom"
#: The separator between the phase in which a job ended and the phase that failed after it.
ALSO = "-"

#: The exit code of a job that could not be set up (as env(1), nohup(1) and timeout(1) do).
SETUP_CODE = 125
#: The exit codes of a shell that cannot execute a file, or does not find it (POSIX XCU 2.8.2).
NOT_EXECUTABLE_CODE, NOT_FOUND_CODE = 126, 127

#: The reasons why jpsi itself ends a job, as they are written to the spool.
CANCEL, TIMEOUT = "cancel", "timeout"
