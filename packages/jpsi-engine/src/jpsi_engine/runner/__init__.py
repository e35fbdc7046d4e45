"""The runner: renders the POSIX shell script that carries out one attempt of a job."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.runner import staging
    from jpsi_engine.runner.arrays import ElementFrame, element_blocks, render_array_runner
    from jpsi_engine.runner.claim_and_markers import BatchFrame, Frame, ProcessFrame
    from jpsi_engine.runner.failure_details import MAX_DETAIL_BYTES, add_failure_details
    from jpsi_engine.runner.output_paths import resolve_streams
    from jpsi_engine.runner.prechecks import job_shell, local_problems
    from jpsi_engine.runner.requeue import RERUN, RequeueRules
    from jpsi_engine.runner.script import launcher_log, render_runner
    from jpsi_engine.runner.script_input import Run
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".arrays": "ElementFrame element_blocks render_array_runner",
            ".failure_details": "MAX_DETAIL_BYTES add_failure_details",
            ".claim_and_markers": "BatchFrame Frame ProcessFrame",
            ".output_paths": "resolve_streams",
            ".prechecks": "job_shell local_problems",
            ".requeue": "RERUN RequeueRules",
            ".script_input": "Run",
            ".script": "launcher_log render_runner",
            ".": "staging",
        },
    )
