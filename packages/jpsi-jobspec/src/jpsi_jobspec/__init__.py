"""Workflows in YAML, as JobSpec NG defines them, on every batch system."""
