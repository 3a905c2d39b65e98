"""Facts that gather computes from untrusted input, one kind of input per file. Nothing is judged here."""
