"""Environments: databases built of admitted material, their tools, and what undoes the effects of these."""
