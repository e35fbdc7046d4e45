"""The plugins that come with the engine.

The executor `local` and the launcher `single`; they use `jpsi.plugin` alone.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.builtin import remote_process_output
else:
    # Processes of this machine do not need it.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(__name__, {".": "remote_process_output"})
