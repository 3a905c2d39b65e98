"""The launcher: runs inside the sandbox before, beside and after the program.

The engine does not import it: the system's interpreter compiles it once, and the sandbox receives
the result. It reports that it is ready, waits for the go signal, reads its job, sets the limits, and starts
the program as its child. When that has ended it reports, over a pipe that the program never had. It keeps to
the syntax of Python 3.9, and to built-in modules: each import would cost a tenth of a start. It imports nothing
from `__future__`, which the program's own text would inherit.
"""

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


def launch(ready: int, go: int, job: int, report: int, egress: int = -1, listener: "Any" = None) -> None:
    """The descriptors are pipes but for `job`, a file that the engine fills before it lets go.

    Over the socket `egress` the engine gets what listens on the address `listener`.
    """
    import resource

    sys.path[:] = [path for path in sys.path if path]
    alone = 1 in (posix.getppid(), posix.getpid())
    gc.freeze()
    if listener:
        _hand_out(egress, listener)
    posix.write(ready, b"R")
    posix.close(ready)
    if posix.read(go, 1) != b"G":  # the engine is gone
        leave(_GONE)
    work = marshal.loads(_content(job))  # noqa: S302  (only the engine writes to it)
    if not work["relay"]:
        posix.close(go)
    _prepare(work)
    for name, bounds in work["limits"]:
        resource.setrlimit(name, bounds)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())  # only a kill reaches this process
    child = posix.fork()
    if not child:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        _program(work)
    if work["relay"]:
        status, usage = _named(work["relay"], "carry")(child, go, lambda data: _report(report, data))
    else:
        _, status, usage = posix.wait4(child, 0)
    if work["sender"]:
        if not alone:  # never kill in a process namespace that is not ours
            leave(_GONE)
        _quiet()  # before the first report: then no other process is left that could stop this one halfway
    _report(report, b"E %d %d\n" % (status, int((usage.ru_utime + usage.ru_stime) * 1000000)))
    if work["sender"]:
        send = _named(work["sender"], "send")
        send(work["root"], work["most_files"], work["most_bytes"], lambda data: _report(report, data))
    leave(0)


def _hand_out(egress: int, address: "Any") -> None:
    """Send a listener of this network namespace to the engine; nothing of it stays open here."""
    import _socket

    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    way = _socket.socket(fileno=egress)
    rights = listener.fileno().to_bytes(4, sys.byteorder)
    way.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    way.close()
    listener.close()


def _prepare(work: "dict[str, Any]") -> None:
    posix.mkdir(work["folder"], 0o700)
    posix.chdir(work["folder"])
    posix.unsetenv("PWD")  # bubblewrap's own
    posix.environ.pop(b"PWD", None)
    if work["sender"]:
        posix.mkdir("artifacts", 0o700)
        work["root"] = posix.open("artifacts", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
    if work["main"]:
        _file(work["main"], work["source"])
    if work["prelude"]:
        _file(*work["prelude"])
    for path, content in work["files"]:
        if content is None:
            posix.mkdir(path, 0o700)
        else:
            _file(path, content)


def _file(path: str, content: bytes) -> None:
    file = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o400)
    _report(file, content)
    posix.close(file)


def _program(work: "dict[str, Any]") -> None:
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
    source = str(work["source"], "utf-8")
    names = sys.modules["__main__"].__dict__
    builtins = names["__builtins__"]
    builtins.exit = builtins.quit = sys.exit  # as `site` has them, which is not loaded
    sys.argv[:] = [work["main"]]
    names.clear()
    names.update(__name__="__main__", __file__=work["main"], __builtins__=builtins, __doc__=None)
    names.update(__package__=None, __loader__=None, __spec__=None)
    output: Any = sys.stdout
    output.reconfigure(line_buffering=True)  # which of two streams is over its limit first is up to the program
    leave(_finished(_run(source, names), names))


def _run(source: str, names: "dict[str, Any]") -> int:
    """Run it as `__main__` and return its exit code, as the interpreter would.

    The text is not compiled first: `compile` makes all types of syntax trees, for an eighth of a start. It is
    text and not bytes, so that no line of it can state another encoding than the one it was scanned in.
    """
    try:
        exec(source, names)  # noqa: S102
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            code = error.code or 0
            return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF  # as C expects it
        _flush()
        print(error.code, file=sys.stderr)  # noqa: T201
        return 1
    except BaseException as error:  # noqa: BLE001  (whatever the program raises is its end)
        trace = error.__traceback__
        _flush()
        _explained(error.with_traceback(trace.tb_next if trace else None), source)
        return 1
    return 0


def _flush() -> None:
    """Write what the program has written: what is said of its end comes after it."""
    try:
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  (the program may have put anything there)
        return


def _explained(error: BaseException, source: str) -> None:
    """Print the traceback with the lines of the program, which has no file name while it runs."""
    try:
        import linecache
        import traceback

        lines = [line + "\n" for line in source.split("\n")]
        linecache.cache["<string>"] = (len(source), None, lines, "<string>")
        traces = [traceback.TracebackException.from_exception(error)]
        for trace in traces:
            traces += [more for more in (trace.__cause__, trace.__context__) if more is not None]
            if getattr(trace, "filename", None) == "<string>":
                trace.filename = "main.py"
            for frame in trace.stack:
                if frame.filename == "<string>":
                    frame.filename = "main.py"
        sys.stderr.write("".join(traces[0].format()))
    except BaseException:  # noqa: BLE001  (no memory left, no descriptor, a class that cannot be shown)
        sys.excepthook(type(error), error, error.__traceback__)


def _finished(code: int, names: "dict[str, Any]") -> int:
    """What the interpreter does at its end, without taking itself apart: that would copy every page of a fork."""
    import atexit

    threading: Any = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()  # noqa: SLF001  (waits for threads that are no daemons)
    atexit._run_exitfuncs()  # noqa: SLF001  (no other name does this)
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
    """Kill everything else in this process namespace and wait until it is gone.

    Where this is the first process, orphans become its children: a dead one can be signalled until it is waited for.
    """
    import time

    while True:
        try:
            posix.kill(-1, 9)
        except ProcessLookupError:
            return
        try:
            while posix.waitpid(-1, posix.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.0005)


def _named(code: bytes, name: str) -> "Any":
    names: dict[str, Any] = {"__name__": "sandbox"}
    exec(marshal.loads(code), names)  # noqa: S102, S302  (the engine's own)
    return names[name]


def _content(file: int) -> bytes:
    """All of it; closed then."""
    content = b""
    while piece := posix.read(file, 1 << 24):
        content += piece
    posix.close(file)
    return content


def _report(report: int, data: bytes) -> None:
    while data:
        data = data[posix.write(report, data) :]
