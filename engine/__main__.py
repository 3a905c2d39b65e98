"""`python -m engine` is the command `engine`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while it is imported ends it as it does later."""
    try:
        from engine.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
