"""Episodes: actors that take turns, each turn decided on before and after, from a file to scores.

    start ─> turn ─(actor)─> proposal ─> transcript ─> turn ─> … ─> end

The rules compute tokens, penalties and the end from the history; the code here keeps the history and applies what was
decided. A killed episode is read back from its record.
"""
