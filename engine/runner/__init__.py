"""The reference runner: one run of an agent from its request to its result, each step decided on."""
