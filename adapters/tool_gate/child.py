"""The process of one tool: reads the job, calls the function, tells its side effects and its end.

Started by `in_process` as a script; it ends with whoever started it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Any


def main() -> None:
    """Do the job that stands in standard input; the channel is the descriptor that the first argument names."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
    job = json.loads(sys.stdin.buffer.read())
    sys.path[:] = job["path"]

    from adapters.tool_gate.effects import Effects
    from adapters.tool_gate.outcome import Outcome
    from adapters.tool_gate.thread import attempt

    def tell(what: str, value: Any) -> None:
        channel.sendall(json.dumps({what: value}).encode("ascii") + b"\n")

    effects = Effects(lambda effect: tell("effect", effect))
    try:
        tool: Any = importlib.import_module(job["module"])
        for part in job["name"].split("."):
            tool = getattr(tool, part)
    except BaseException as error:  # noqa: BLE001  (importing runs the module)
        outcome = Outcome.failed(error)
    else:
        outcome = attempt(tool, job["arguments"], job["seconds"], job["most"], effects)
    with suppress(Exception):
        sys.stdout.flush()
    effects.close()  # nobody listens after the end: what would be reported then must not happen
    tell("end", outcome.plain())
    os._exit(0)  # whatever threads the tool has left


def _end_with(channel: socket.socket) -> None:
    """Nothing is ever sent here: what can be read is the end of whoever started this."""
    channel.recv(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
