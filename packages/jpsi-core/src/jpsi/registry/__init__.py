"""The registry of installed plugins.

It finds plugins by their entry points, chooses among their versions, and imports those from directories of
the plugin path under private names.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.registry import discovery
    from jpsi.registry.candidate import (
        BARS,
        ENGINES,
        EXECUTORS,
        FAKES,
        GROUPS,
        LAUNCHERS,
        OBSERVERS,
        OVERRIDES,
        TRANSPORTS,
        Candidate,
        kind,
    )
    from jpsi.registry.custom_attributes import doubts, systems
    from jpsi.registry.discovery import Plugins, installed
    from jpsi.registry.loading import load_plugin, private_name, removed_on_failure, told
    from jpsi.registry.metadata import canonical
    from jpsi.registry.versions import conflict, is_constraint, missing, verdicts
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "candidate": (
                "Candidate ENGINES EXECUTORS FAKES GROUPS LAUNCHERS OBSERVERS OVERRIDES BARS TRANSPORTS kind"
            ),
            "custom_attributes": "doubts systems",
            "discovery": "Plugins installed",
            "loading": "load_plugin private_name removed_on_failure told",
            "metadata": "canonical",
            "versions": "conflict is_constraint missing verdicts",
            "": "discovery",
        },
    )
