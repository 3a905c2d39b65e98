"""Tools: the gate between an agent and its tools. Read `gate`, then `path`."""
