"""`jpsi request`: one command for each use case."""
