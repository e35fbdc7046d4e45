"""The command group `jpsi request`: one command for each use case, as a plugin of jpsi-cli."""
