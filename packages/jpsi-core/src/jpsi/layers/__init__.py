"""Builds an executor from its layers of hooks.

Core defaults, the backend, and overrides of site and user, behind one caller of hooks.
"""

from jpsi.layers.listing import Plugin, plugins
from jpsi.layers.resolve import Assembly, assemble
from jpsi.layers.stack import ENGINE, engine_hooks, launcher_of, name_and_constraint, open_transport
