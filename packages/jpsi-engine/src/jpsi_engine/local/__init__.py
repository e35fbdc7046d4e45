"""Jobs as processes of this machine: started, watched until they end, and limited by slots."""

from jpsi_engine.local.local_engine import LocalEngine
