"""The code gateway: one run of generated code, from its action to an answer. Read gateway.py first."""
