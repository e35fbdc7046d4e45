"""Floor 1: what a plugin may say."""
