"""Tools that run in a process of their own: functions of a module, as they have to be."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from contextvars import copy_context
from typing import Any, NoReturn

from admission_adapters.tools.gate import ToolValidationError, record_side_effect


def environment(name: str) -> dict[str, Any]:
    """What the process sees."""
    return {"value": os.environ.get(name), "pid": os.getpid(), "group": os.getpgid(0)}


def shout(text: str) -> str:
    """Print, and give text."""
    print(text)  # noqa: T201  (it prints)
    print(text, file=sys.stderr)  # noqa: T201
    return text.upper()


def hang(duration: float) -> None:
    """Report, start another process, and hang."""
    record_side_effect("execute", id="sleeper", target="sleep")
    process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({duration})"])
    record_side_effect("execute", id=f"pid-{process.pid}")
    time.sleep(duration)


def leave_a_thread(size: int) -> str:
    """End with a result of this size, while a thread goes on and reports."""

    def body() -> None:
        for number in range(900):
            record_side_effect("write", id=f"n{number}")
            going.set()

    going = threading.Event()
    threading.Thread(target=copy_context().run, args=(body,), daemon=True).start()
    going.wait(20)
    return "x" * size


def invalid(value: str) -> NoReturn:
    """Refuse the arguments."""
    raise ToolValidationError("wrong", "the value is wrong", {"argument": "value", "length": len(value)})


def leave(code: int) -> NoReturn:
    """End the process without a word, while one that it started goes on."""
    record_side_effect("write", id="before")
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    os._exit(code)


def quit_loudly() -> NoReturn:
    """End the process as programs do."""
    sys.exit("enough")


def large(size: int) -> str:
    """A result of this size."""
    return "x" * size


def scribble() -> str:
    """Write into every descriptor there is."""
    for descriptor in range(3, 4096):
        try:
            os.write(descriptor, b"scribble\n")
        except OSError:
            continue
    return "done"


def flood(size: int) -> str:
    """Write so much into whatever socket there is that means nothing as JSON."""
    for descriptor in range(3, 4096):
        try:
            kind = os.fstat(descriptor).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(kind):
            sent = 0
            while sent < size:
                sent += os.write(descriptor, b" " * (size - sent))
    return "done"


def find(search: str) -> str:
    """Look a variable of the environment up."""
    record_side_effect("read", id="environment")
    return os.environ.get(search, "")
