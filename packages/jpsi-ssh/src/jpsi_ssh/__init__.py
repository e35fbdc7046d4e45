"""SSH for jpsi: the transport `ssh`, which runs commands on another machine through the OpenSSH client."""
