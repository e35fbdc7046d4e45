"""Builds an executor from its layers of hooks: core defaults, the backend, overrides of site and user."""

from jpsi.layers.listing import Plugin, plugins
from jpsi.layers.resolve import Assembly, assemble, container_runtime
from jpsi.layers.stack import ENGINE, engine_hooks, launcher_of, name_and_constraint, open_transport
