"""Floor 0: values and the rules on them, from the standard library and attrs alone."""
