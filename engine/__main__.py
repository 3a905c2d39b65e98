"""`python -m engine` is the command `engine`."""

from engine.cli import main

main()
