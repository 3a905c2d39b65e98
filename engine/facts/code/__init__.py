"""Facts about generated code: the proposed action, a static scan of its text, its output, its sandbox."""
