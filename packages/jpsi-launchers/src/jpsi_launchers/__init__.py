"""The launchers of jpsi, one module of hooks each, which render a spec into shell lines. They run nothing.

`ScriptLauncher` makes a launcher of a script, for other distributions.
"""

from .script_launcher import ScriptLauncher
