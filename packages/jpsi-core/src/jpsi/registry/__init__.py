"""Floor 2: finding plugins and assembling what they say."""
