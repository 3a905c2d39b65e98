"""Facts of a release: what reports say, what changed in a repository, how much code has docstrings."""
