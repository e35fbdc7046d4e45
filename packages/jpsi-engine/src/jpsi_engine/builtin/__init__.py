"""The plugins that come with the engine.

The executor `local` and the launcher `single`; they use `jpsi.plugin` alone.
"""
