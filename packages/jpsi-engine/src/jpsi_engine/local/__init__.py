"""Jobs as processes of this machine: started, watched until they end, and limited by slots."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.local.local_engine import (
        LocalEngine,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "local_engine": "LocalEngine",
        },
    )

__all__ = [
    "LocalEngine",
]
