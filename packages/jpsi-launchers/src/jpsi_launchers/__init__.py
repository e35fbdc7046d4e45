"""Launchers for jpsi, each a module of hooks that turn a spec into lines of shell. Nothing here acts."""
