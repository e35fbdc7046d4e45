"""Jobs as processes of this machine: started, watched until they end, and limited by slots."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.local.batch_programs import (
        BatchProgram,
        ProgramLostError,
        RunningProgram,
        find_batch_program,
    )
    from jpsi_engine.local.local_engine import LocalEngine
    from jpsi_engine.local.starter import Starter
else:
    # A node that starts programs for a batch system runs no job of its own.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".batch_programs": "BatchProgram ProgramLostError RunningProgram find_batch_program",
            ".local_engine": "LocalEngine",
            ".starter": "Starter",
        },
    )
