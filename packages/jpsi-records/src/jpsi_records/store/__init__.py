"""The records on disk: a database, which holds every request and execution."""
