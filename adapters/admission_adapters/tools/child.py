"""The process of one tool: reads the job, calls the function, reports side effects and the outcome.

Started by `in_process` as a script; it ends with its parent.
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
    """Do the job on standard input; the first argument is the descriptor of the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
    job = json.loads(sys.stdin.buffer.read())
    sys.path[:] = job["path"]

    from admission_adapters.tools.effects import Effects
    from admission_adapters.tools.outcome import Outcome
    from admission_adapters.tools.thread import attempt

    def report(kind: str, value: Any) -> None:
        channel.sendall(json.dumps({kind: value}).encode("ascii") + b"\n")

    effects = Effects(lambda effect: report("effect", effect))
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
    effects.close()  # no one listens after the end: an effect that is reported then must not happen
    report("end", outcome.plain())
    os._exit(0)  # whatever threads the tool has left


def _end_with(channel: socket.socket) -> None:
    """Nothing is ever sent here: the channel becomes readable when the parent ends."""
    channel.recv(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
