"""The runner: renders the POSIX shell script that carries out one attempt of a job."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.runner import arrays, staging
    from jpsi_engine.runner.arrays import *
    from jpsi_engine.runner.claim_and_markers import *
    from jpsi_engine.runner.containers import *
    from jpsi_engine.runner.failure_details import *
    from jpsi_engine.runner.output_paths import *
    from jpsi_engine.runner.own_variables import *
    from jpsi_engine.runner.prechecks import *
    from jpsi_engine.runner.requeue import *
    from jpsi_engine.runner.script import *
    from jpsi_engine.runner.script_input import *
    from jpsi_engine.runner.walltime_warning import *
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".arrays": "ElementForm ElementFrame element_blocks element_text render_array_runner",
            ".containers": "container_commands container_problems",
            ".failure_details": "LOGGED_PHASES MAX_DETAIL_BYTES add_failure_details",
            ".claim_and_markers": "BatchFrame Frame ProcessFrame",
            ".output_paths": "resolve_streams",
            ".own_variables": "JOB_ID NODEFILES OWN_VARIABLES",
            ".prechecks": "job_shell local_problems",
            ".requeue": "RERUN RequeueRules",
            ".script_input": "Run",
            ".walltime_warning": "WalltimeWarning warning_problems",
            ".script": "launcher_log render_runner run_line",
            ".": "arrays staging",
        },
    )
