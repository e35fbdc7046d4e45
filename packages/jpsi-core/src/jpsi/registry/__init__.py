"""The registry of installed plugins.

It finds plugins by their entry points, chooses among their versions, and imports those from directories of
the plugin path under private names.
"""

from jpsi.registry.candidate import (
    BARS,
    CONTAINERS,
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
from jpsi.registry.discovery import Plugins, installed
from jpsi.registry.loading import describe_error, load_plugin, private_name, removed_on_failure
from jpsi.registry.metadata import canonical, install_command
from jpsi.registry.versions import conflict, is_constraint, known_plugins, verdicts
