"""Facts about tools: calls and their arguments, definitions, commands, MCP servers."""
