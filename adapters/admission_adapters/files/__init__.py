"""File executors: stage source bundles, read skill files, store artifacts."""
