"""The record: one line per decision, hash-chained over its exact bytes, on disk before the answer is returned."""
