"""The process of a WebAssembly module: drops its privileges, then compiles and runs the module.

It is started by path with an empty environment, so it imports the standard library and wasmtime only, and for the
probe its acts. Its arguments are the place of wasmtime and four descriptors, as of every launcher: it reports on the
first when ready, waits on the second, reads the job from the third, and reports on the fourth how the module ended.
The module can reach none of them. It is a single process, so that killing it ends
everything.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_ROOM = 96 << 20
"""Address space for compiled code, stacks and tables, in bytes; the linear memory has its own bound."""

_TABLE_ELEMENTS = 100_000  # of 8 bytes each
_STACK = 512 << 10  # of the module, in bytes; wasmtime's own default
_TICK = 0.02  # seconds between two looks at the processor time
_GRACE = 0.1  # seconds of it by which the runtime is to come before the kernel
_PROCESS_TIME = 2  # CLOCK_PROCESS_CPUTIME_ID
_SAID = 2000  # characters of the runtime's message about a module

_FAILED, _TRAPPED = 1, 134
"""Exit codes of a module that cannot be run, and of one that trapped; the latter as in wasmtime's own command."""

_DESCRIPTORS = 1 << 16  # more than a process of the engine gets
_ARENAS = -8  # M_ARENA_MAX of mallopt: a heap of 64 MiB for each thread would use up the room
_NAMESPACES = 0x7E020000 & ~0x20000000
"""All flags of clone(2) except that of processes, which would apply to children only, and there are none."""

_DROP, _CAPABILITIES, _CAPABILITY_VERSION = 24, 64, 0x20080522  # PR_CAPBSET_DROP; capabilities(7)
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER, _END_WITH_PARENT = 38, 22, 2, 1
_WASI = "wasi_snapshot_preview1"
_FAULT = 21  # EFAULT of WASI

Job = Mapping[str, Any]


class End(NamedTuple):
    """How the module ended, as a wait status: an exit code or a signal; and the message of the runtime."""

    status: int
    said: str = ""


def main() -> None:
    """Become ready, run the job, report how it ended, and end without any farewell of the interpreter."""
    sys.path.append(sys.argv[1])
    ready, go, job_file, report = (int(argument) for argument in sys.argv[2:6])
    parent = os.getppid()
    import wasmtime

    os.write(ready, b"R")
    os.close(ready)
    if os.read(go, 1) != b"G":  # the engine is gone
        os._exit(125)
    os.close(go)
    with os.fdopen(job_file, "rb") as file:
        job: Job = json.loads(file.read())
    began = time.process_time()
    acts = _probe_acts(job["sources"]) if job["acts"] else None
    engine = wasmtime.Engine(_config(wasmtime, job))
    if "close_fds" not in job["without"]:
        os.closerange(3, report)
        os.closerange(report + 1, _DESCRIPTORS)
    confine(job, parent)
    if acts is not None:
        os.write(1, json.dumps(acts(job["acts"], report)).encode())
        end = End(0)
    else:
        end = _run(wasmtime, engine, job, began + job["cpu_seconds"])
    if end.said:
        os.write(2, end.said[:_SAID].encode("utf-8", "replace") + b"\n")
    os.write(report, b"E %d %d\n" % (end.status, int((time.process_time() - began) * 1_000_000)))
    os._exit(0)


def _probe_acts(sources: str) -> Callable[[Mapping[str, Any], int], dict[str, str]]:
    """What the probe does in the place of a module, from the folder of our own sources."""
    sys.path.append(sources)
    from admission_adapters.sandbox.wasm.acts import words

    return words


def confine(job: Job, parent: int) -> None:
    """Drop everything that neither compiling nor running needs, and die with the parent.

    Raises OSError, which ends the process unreported.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mallopt(_ARENAS, 1)
    if "new_session" not in job["without"]:
        os.setsid()
    for name, value in _rlimits(job).items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), value)
    if "rlimit_cpu" not in job["without"]:
        _count_time(libc, job["cpu_seconds"] + _GRACE)
    if job["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[job["uid"]] * 3)
        os.setresuid(*[job["uid"]] * 3)
    if "namespaces" not in job["without"]:
        _done(libc.unshare(ctypes.c_int(_NAMESPACES)))
        for capability in range(_CAPABILITIES):  # over the new user namespace; newer ones than the kernel's are none
            libc.prctl(ctypes.c_int(_DROP), ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3)
        _done(libc.capset(struct.pack("=2I", _CAPABILITY_VERSION, 0), struct.pack("=6I", *[0] * 6)))
    # After all that the kernel forgets it for, which is every change of who this is.
    _done(libc.prctl(ctypes.c_int(_END_WITH_PARENT), ctypes.c_ulong(signal.SIGKILL), *[ctypes.c_ulong(0)] * 3))
    if os.getppid() != parent:  # it has already ended
        os._exit(125)
    _done(libc.prctl(ctypes.c_int(_NO_NEW_PRIVILEGES), ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3))
    program = bytes.fromhex(job["filter"])
    if program:
        lines = ctypes.create_string_buffer(program, len(program))
        header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(lines)))
        _done(libc.prctl(ctypes.c_int(_SET_SECCOMP), ctypes.c_ulong(_FILTER), header))


def _count_time(libc: Any, seconds: float) -> None:
    """Have the kernel end this process by SIGXCPU once it has used so much more: exactly, where RLIMIT_CPU rounds."""
    timer = ctypes.c_void_p()
    event = ctypes.create_string_buffer(struct.pack("=Qii", 0, signal.SIGXCPU, 0), 64)
    _done(libc.timer_create(ctypes.c_int(_PROCESS_TIME), event, ctypes.byref(timer)))
    seconds_part, part = divmod(int(seconds * 1e9), 10**9)
    _done(libc.timer_settime(timer, ctypes.c_int(0), struct.pack("=4q", 0, 0, seconds_part, part), None))


def _done(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _rlimits(job: Job) -> dict[str, tuple[int, int]]:
    """The limits of the kernel by name; address space and processor time count from what is used already."""
    limits = {"CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "FSIZE": 0, "NOFILE": job["open_files"]}
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (pathlib costs a start)
        used = int(file.read().split()[0]) * resource.getpagesize()
    limits["AS"] = used + _ROOM + job["memory_bytes"]
    both = {name: (value, value) for name, value in limits.items()}
    seconds = int(time.process_time()) + job["cpu_seconds"] + 1  # the epoch is to come first
    both["CPU"] = (seconds, seconds + 1)
    return {name: value for name, value in both.items() if f"rlimit_{name.lower()}" not in job["without"]}


def _config(wasmtime: Any, job: Job) -> Any:
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.parallel_compilation = False
    config.wasm_threads = False
    config.shared_memory = False
    config.memory_init_cow = False  # needs its own file
    config.max_wasm_stack = _STACK
    config.memory_reservation = job["memory_bytes"]  # grows in place; address space is bounded
    config.memory_guard_size = 0
    config.memory_reservation_for_growth = 0
    return config


def _run(wasmtime: Any, engine: Any, job: Job, until: float) -> End:
    """Compile, link and run, until so much processor time is used."""
    try:
        start, store = _linked(wasmtime, engine, job)
        if "epoch" not in job["without"]:
            _watch(engine, until)
        start(store)
    except wasmtime.ExitTrap as ended:
        return End((ended.code & 0xFF) << 8)
    except wasmtime.Trap as trap:
        if trap.trap_code is wasmtime.TrapCode.INTERRUPT:
            return End(int(signal.SIGXCPU))
        return End(_TRAPPED << 8, f"trap: {trap.message.strip().splitlines()[-1].strip()}")
    except (wasmtime.WasmtimeError, MemoryError, TypeError) as error:
        return _refused(error)
    return End(0)


def _linked(wasmtime: Any, engine: Any, job: Job) -> tuple[Callable[[Any], None], Any]:
    code = wasmtime.wat2wasm(job["module"])
    module = wasmtime.Module(engine, code)
    linker, store = wasmtime.Linker(engine), _store(wasmtime, engine, job)
    linker.define_wasi()
    linker.allow_shadowing = True
    number = wasmtime.ValType.i32()
    sort = wasmtime.FuncType([number, number], [number])
    linker.define_func(_WASI, "random_get", sort, _random(job["seed"]), access_caller=True)
    start = linker.instantiate(store, module).exports(store).get("_start")
    if not isinstance(start, wasmtime.Func):
        raise TypeError("the module exports no function `_start`")
    return start, store


def _refused(error: Exception) -> End:
    """A module that cannot be run, or not with so little memory."""
    message = (str(error).splitlines() or ["out of memory"])[0]
    word = "MemoryError: " if isinstance(error, MemoryError) or "exceeds memory limits" in message else ""
    return End(_FAILED << 8, word + message)


def _store(wasmtime: Any, engine: Any, job: Job) -> Any:
    """What the module sees: three streams, its name and its environment; no folder, no socket."""
    store, wasi = wasmtime.Store(engine), wasmtime.WasiConfig()
    if "limiter" not in job["without"]:
        store.set_limits(job["memory_bytes"], _TABLE_ELEMENTS, instances=1, tables=4, memories=1)
    store.set_epoch_deadline(1)
    wasi.argv = ["main"]
    wasi.env = list(job["environment"].items())
    if job["preopened"] is not None:
        wasi.preopen_dir(job["preopened"], "/")
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    store.set_wasi(wasi)
    return store


def _random(seed: int) -> Callable[[Any, int, int], int]:
    """`random_get` from the seed: two runs see the same bytes (A86)."""
    drawn = 0

    def random_get(caller: Any, address: int, length: int) -> int:
        nonlocal drawn
        memory = caller["memory"]
        address, length = address & 0xFFFFFFFF, length & 0xFFFFFFFF
        if address + length > memory.data_len(caller):
            return _FAULT
        for offset in range(0, length, 1 << 16):
            block = hashlib.shake_256(b"%d/%d" % (seed, drawn)).digest(min(1 << 16, length - offset))
            memory.write(caller, block, address + offset)
            drawn += 1
        return 0

    return random_get


def _watch(engine: Any, until: float) -> None:
    """End the module when its processor time is used up; the kernel's own limit comes a little later."""

    def tick() -> None:
        while time.process_time() < until:
            time.sleep(_TICK)
        engine.increment_epoch()

    threading.Thread(target=tick, daemon=True).start()


if __name__ == "__main__":
    main()
