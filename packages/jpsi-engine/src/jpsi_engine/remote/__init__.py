"""Jobs on a remote host: the spool there and its mirror on this machine.

It is imported only when a job is remote.
"""

from jpsi_engine.remote.remote_host import RemoteHost
