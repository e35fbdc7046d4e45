"""Builds an executor from its layers of hooks.

Core defaults, the backend, and overrides of site and user, behind one caller of hooks.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.layers.listing import (
        Plugin,
        plugins,
    )
    from jpsi.layers.resolve import (
        Assembly,
        assemble,
    )
    from jpsi.layers.stack import (
        ENGINE,
        engine_hooks,
        launcher_hooks,
        launcher_of,
        name_and_constraint,
        open_transport,
    )
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "listing": "Plugin plugins",
            "resolve": "Assembly assemble",
            "stack": "ENGINE engine_hooks launcher_hooks launcher_of name_and_constraint open_transport",
        },
    )

__all__ = [
    "ENGINE",
    "Assembly",
    "Plugin",
    "assemble",
    "engine_hooks",
    "launcher_hooks",
    "launcher_of",
    "name_and_constraint",
    "open_transport",
    "plugins",
]
