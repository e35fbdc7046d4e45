"""Jobs on a remote host: the spool there and its mirror on this machine.

It is imported only when a job is remote.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.remote.remote_host import (
        RemoteHost,
    )
    from jpsi_engine.remote.stage_out import (
        StageOutLoop,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "remote_host": "RemoteHost",
            "stage_out": "StageOutLoop",
        },
    )

__all__ = [
    "RemoteHost",
    "StageOutLoop",
]
