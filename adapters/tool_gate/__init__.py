"""The parts of the gate in `adapters.tools`: read `path` first."""
