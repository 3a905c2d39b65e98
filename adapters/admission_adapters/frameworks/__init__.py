"""The gate in the frameworks of agents, one module each. Read `gate` first."""
