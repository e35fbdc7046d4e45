"""The plugins that come with the core; they use door 2 like any plugin."""
