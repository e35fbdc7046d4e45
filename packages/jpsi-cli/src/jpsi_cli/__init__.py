"""The `jpsi` command; what it does is in `jpsi`."""
