"""Transports for tests: to a fake batch system, to a pretended remote host, and to recordings."""
