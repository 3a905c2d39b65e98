"""Runs `engine …` in this process and writes down what it reaches: connections, programs, files, variables.

    python watched.py REPORT ARGUMENTS…

One JSON line for each connection, look-up of a host, program and opened file (audit events of Python), and for each
environment variable that is read by name.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

EVENTS = {
    "socket.connect": lambda args: str(args[1]),
    "socket.getaddrinfo": lambda args: str(args[0]),
    "socket.bind": lambda args: str(args[1]),
    "subprocess.Popen": lambda args: str(args[0]),
    "os.system": lambda args: str(args[0]),
    "os.exec": lambda args: str(args[0]),
    "webbrowser.open": lambda args: str(args[0]),
    "open": lambda args: str(args[0]),
    "os.listdir": lambda args: str(args[0]),
    "os.scandir": lambda args: str(args[0]),
}


class Variables:
    """The environment, which writes down each variable that is asked for by name."""

    def __init__(self, own: Any, write: Any) -> None:
        self._own, self._write = own, write

    def __getitem__(self, name: str) -> str:
        self._write("variable", name)
        value: str = self._own[name]
        return value

    def get(self, name: str, default: Any = None) -> Any:
        self._write("variable", name)
        return self._own.get(name, default)

    def __contains__(self, name: object) -> bool:
        self._write("variable", name)
        return name in self._own

    def __iter__(self) -> Iterator[str]:
        self._write("variable", "*")
        return iter(self._own)

    def __getattr__(self, name: str) -> Any:
        if name in {"items", "values", "copy"}:
            self._write("variable", "*")
        return getattr(self._own, name)


def main() -> None:
    report = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(kind: str, value: object) -> None:
        os.write(report, json.dumps([kind, str(value)]).encode("ascii") + b"\n")

    def seen(event: str, args: tuple[Any, ...]) -> None:
        if event in EVENTS:
            write(event, EVENTS[event](args))

    from engine.cli import main as run

    sys.argv = ["engine", *sys.argv[2:]]
    sys.addaudithook(seen)
    os.environ = Variables(os.environ, write)  # type: ignore[assignment]  # noqa: B003
    run()


if __name__ == "__main__":
    main()
