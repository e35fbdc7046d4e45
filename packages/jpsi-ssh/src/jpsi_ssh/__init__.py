"""SSH for jpsi.

The transport `ssh`, which runs commands on another machine through the OpenSSH client.
"""
