"""Agent runners: calling a runner, reading its answer, resolving its host, delivering the MCP servers of a run."""
