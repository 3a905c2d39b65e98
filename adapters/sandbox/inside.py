"""The launcher: what the interpreter runs inside the sandbox before, beside and after the program.

Its text is handed to `python3 -c`, followed by a call of `launch`; nothing here is imported by the engine.
It says that it is ready, waits until it is let go, reads what to run, sets the limits, and starts the
program as its child. When that has ended it reports, over a pipe that the program never had. It uses built-in
modules as far as it can and the syntax of Python 3.9: it is the system's interpreter that reads it.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys

MYPY = False
if MYPY:
    from typing import Any


def launch(ready: int, go: int, job: int, report: int) -> None:
    """The four descriptors are pipes but for `job`, a file that the engine fills before it lets go."""
    sys.path[:] = [path for path in sys.path if path]
    alone = os.getppid() == 1
    os.write(ready, b"R")
    os.close(ready)
    if os.read(go, 1) != b"G":  # the engine is gone
        os._exit(125)
    os.close(go)
    with os.fdopen(job, "rb") as file:
        work = marshal.loads(file.read())  # noqa: S302  (the engine wrote it, nobody else has it)
    _prepare(work)
    for name, bounds in work["limits"]:
        resource.setrlimit(name, bounds)
    child = os.fork()
    if not child:
        _program(work)
        return
    _keep_signals_out()
    _, status, usage = os.wait4(child, 0)
    micros = int((usage.ru_utime + usage.ru_stime) * 1000000)
    _tell(report, b"E %d %d\n" % (status, micros))
    if work["artifacts"]:
        if not alone:
            os._exit(125)
        _quiet()
        globals()["send"](work, lambda data: _tell(report, data))
    os._exit(0)


def _prepare(work: dict[str, Any]) -> None:
    os.mkdir(work["folder"], 0o700)
    os.chdir(work["folder"])
    if work["artifacts"]:
        os.mkdir("artifacts", 0o700)
        work["root"] = os.open("artifacts", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    if work["main"]:
        main = os.open(work["main"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(main, "wb") as file:
            file.write(work["code"])


def _program(work: dict[str, Any]) -> None:
    """Become the program; for Python that is this very process, in a namespace as if it had begun with it."""
    if work["close"]:
        os.closerange(3, 65536)
    os.environ.pop("PWD", None)  # bubblewrap's own
    if work["command"]:
        import _signal  # type: ignore[import-not-found]

        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # the interpreter ignores them
            _signal.signal(number, _signal.SIG_DFL)
        try:
            os.execve(work["command"][0], work["command"], dict(os.environ))
        except OSError as error:
            os.write(2, b"it cannot be executed: %s\n" % os.strerror(error.errno or 0).encode())
            os._exit(127)
    system, code = sys, work["code"]
    names = system.modules["__main__"].__dict__
    builtins = names["__builtins__"]
    system.argv[:] = [work["main"]]
    names.clear()
    names.update(__name__="__main__", __file__=work["main"], __builtins__=builtins, __doc__=None, __package__=None)
    names.update(__loader__=None, __spec__=None)
    work.clear()
    try:
        exec(compile(code, "main.py", "exec", dont_inherit=True), names)  # noqa: S102
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        error = error.with_traceback(trace.tb_next if trace else None)
        system.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None


def _keep_signals_out() -> None:
    """Only a kill reaches this process from now on, and that is seen by the engine."""
    import _signal

    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())


def _quiet() -> None:
    """Kill everything else in this process namespace and wait until it is gone."""
    import time

    try:
        while True:
            os.kill(-1, 9)
            time.sleep(0.001)
    except ProcessLookupError:
        return


def _tell(report: int, data: bytes) -> None:
    while data:
        data = data[os.write(report, data) :]
