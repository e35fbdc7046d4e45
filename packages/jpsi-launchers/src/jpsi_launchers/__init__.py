"""The launchers of jpsi, one module of hooks each, which render a spec into shell lines. They run nothing."""
