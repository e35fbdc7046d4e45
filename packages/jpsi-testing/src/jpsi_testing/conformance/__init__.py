"""The conformance tests of backends and launchers: one module for each group of clauses."""
