"""The SSH transport of jpsi.

The transport `ssh` runs commands on a remote host through the OpenSSH client.
"""
