"""The `jpsi` command, a command line for the library `jpsi`."""
