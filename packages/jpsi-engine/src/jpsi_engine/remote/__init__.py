"""Jobs on a remote host: the spool there and its mirror here. Loaded only when a job is remote."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.remote.remote_host import (
        MirroredSide,
    )
    from jpsi_engine.remote.stage_out import (
        Bringing,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "remote_host": "MirroredSide",
            "stage_out": "Bringing",
        },
    )

__all__ = [
    "Bringing",
    "MirroredSide",
]
