"""The launcher: what the interpreter runs inside the sandbox before, beside and after the program.

Nothing of this is imported by the engine: the system's interpreter compiles it once, and the sandbox is handed
the result. It says that it is ready, waits until it is let go, reads what to run, sets the limits, and starts
the program as its child. When that has ended it reports, over a pipe that the program never had. It keeps to
the syntax of Python 3.9, and to built-in modules: each import would cost a tenth of a start.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import marshal
import posix
import sys
from posix import _exit as leave

MYPY = False
if MYPY:
    from typing import Any

_GONE = 125


def launch(ready: int, go: int, job: int, report: int) -> None:
    """The descriptors are pipes but for `job`, a file that the engine fills before it lets go."""
    import resource

    sys.path[:] = [path for path in sys.path if path]
    alone = posix.getppid() == 1
    gc.freeze()
    posix.write(ready, b"R")
    posix.close(ready)
    if posix.read(go, 1) != b"G":  # the engine is gone
        leave(_GONE)
    posix.close(go)
    with open(job, "rb") as file:
        work = marshal.loads(file.read())  # noqa: S302  (the engine wrote it, nobody else has it)
    _prepare(work)
    for name, bounds in work["limits"]:
        resource.setrlimit(name, bounds)
    child = posix.fork()
    if not child:
        _program(work)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # now only a kill reaches this process
    _, status, usage = posix.wait4(child, 0)
    _tell(report, b"E %d %d\n" % (status, int((usage.ru_utime + usage.ru_stime) * 1000000)))
    if work["sender"]:
        if not alone:  # never kill in a process namespace that is not ours
            leave(_GONE)
        _quiet()
        send = _named(work["sender"], "send")
        send(work["root"], work["most_files"], work["most_bytes"], lambda data: _tell(report, data))
    leave(0)


def _prepare(work: dict[str, Any]) -> None:
    posix.mkdir(work["folder"], 0o700)
    posix.chdir(work["folder"])
    posix.unsetenv("PWD")  # bubblewrap's own
    posix.environ.pop(b"PWD", None)
    if work["sender"]:
        posix.mkdir("artifacts", 0o700)
        work["root"] = posix.open("artifacts", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
    if work["main"]:
        main = posix.open(work["main"], posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o400)
        with open(main, "wb") as file:
            file.write(work["code"])


def _program(work: dict[str, Any]) -> None:
    """Become the program, and never return."""
    if work["close"]:
        posix.closerange(3, 65536)
    if work["command"]:
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # the interpreter ignores them
            _signal.signal(number, _signal.SIG_DFL)
        try:
            posix.execve(work["command"][0], work["command"], posix.environ)
        except OSError as error:
            posix.write(2, b"it cannot be executed: " + posix.strerror(error.errno or 0).encode() + b"\n")
        leave(127)
    code = work["code"]
    names = sys.modules["__main__"].__dict__
    builtins = names["__builtins__"]
    sys.argv[:] = [work["main"]]
    names.clear()
    names.update(__name__="__main__", __file__=work["main"], __builtins__=builtins, __doc__=None)
    names.update(__package__=None, __loader__=None, __spec__=None)
    leave(_finished(_run(code, names), names))


def _run(code: bytes, names: dict[str, Any]) -> int:
    """Run it as `__main__` and say its exit code, as the interpreter would."""
    try:
        exec(compile(code, "main.py", "exec", dont_inherit=True), names)  # noqa: S102
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return int(error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)  # noqa: T201
        return 1
    except BaseException as error:  # noqa: BLE001  (whatever the program raises is its end)
        trace = error.__traceback__
        sys.excepthook(type(error), error.with_traceback(trace.tb_next if trace else None), trace)
        return 1
    return 0


def _finished(code: int, names: dict[str, Any]) -> int:
    """What the interpreter does at its end, without taking itself apart: that would copy every page of a fork."""
    import atexit

    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    if threading is None or threading.active_count() == 1:
        names.clear()
        gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:  # noqa: BLE001  (the program may have put anything there)
            code = 120
    return code


def _quiet() -> None:
    """Kill everything else in this process namespace and wait until it is gone."""
    import time

    try:
        while True:
            posix.kill(-1, 9)
            time.sleep(0.0005)
    except ProcessLookupError:
        return


def _named(code: bytes, name: str) -> Any:
    names: dict[str, Any] = {"__name__": "sandbox"}
    exec(marshal.loads(code), names)  # noqa: S102, S302  (the engine's own)
    return names[name]


def _tell(report: int, data: bytes) -> None:
    while data:
        data = data[posix.write(report, data) :]
