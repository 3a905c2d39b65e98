"""What a confined process tries when it is probed: one word for each act, in the words of the other probes.

Run only in place of a module, by the probe, under everything that a module runs under. Each act is a single call
of the kernel that would do harm to a canary, and none of them is needed to run a module.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any


def words(world: Mapping[str, Any], own: int) -> dict[str, str]:
    """Every act by its name. `world` has the canaries; `own` is the descriptor that the end is reported on."""
    return {name: _word(act) for name, act in _acts(world, own).items()}


def _acts(world: Mapping[str, Any], own: int) -> dict[str, Callable[[], str]]:
    return {
        "file_read": lambda: _read(world["file"]),
        "file_written": lambda: _written(world["new_file"]),
        "file_described": lambda: _did(os.stat(world["file"])),  # noqa: PTH116
        "folder_listed": lambda: _did(os.listdir(world["folder"])),  # noqa: PTH208
        "tcp": lambda: _connected(socket.AF_INET, ("127.0.0.1", world["tcp"])),
        "unix": lambda: _connected(socket.AF_UNIX, world["unix"]),
        "process_started": _forked,
        "program_started": lambda: _did(os.posix_spawn(world["program"], [world["program"]], {})),
        "process_signaled": lambda: _signaled(os.getppid()),
        "namespace_made": _unshared,
        "secret_variable": lambda: f"value:{os.environ.get(world['secret_name'], '')}",
        "descriptors": lambda: "fds:" + ",".join(map(str, _open_but({own}, world["descriptor"]))),
        **{f"call_{name}": lambda name=name: _called(world["calls"][name]) for name in world["calls"]},  # type: ignore[misc]
        "memory": lambda: _allocated(world["memory_bytes"]),
        "files_opened": lambda: _did([os.eventfd(0) for _ in range(world["open_files"])]),
    }


def _word(act: Callable[[], str]) -> str:
    try:
        return act()
    except OSError as error:
        return f"refused:{errno.errorcode.get(error.errno or 0, 'UNKNOWN')}"
    except MemoryError:
        return "refused:ENOMEM"


def _did(_: object) -> str:
    return "did"


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return f"read:{file.read(64)}"


def _written(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return "did"


def _connected(family: int, address: object) -> str:
    with socket.socket(family) as canary:
        canary.settimeout(5)
        canary.connect(address)  # type: ignore[arg-type]
        return "did"


def _forked() -> str:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "did"


def _signaled(process: int) -> str:
    os.kill(process, 0)
    return "did"


def _unshared() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(ctypes.c_int(0x10000000)) != 0:  # CLONE_NEWUSER
        raise OSError(ctypes.get_errno(), "unshare")
    return "did"


def _called(number: int) -> str:
    """A call by its number with arguments that are wrong for every one: what comes of it tells who refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    wrong = ctypes.c_long(-1)
    if libc.syscall(ctypes.c_long(number), wrong, wrong, wrong, wrong, wrong) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return "did"


def _allocated(size: int) -> str:
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[0] = memory[size - 1] = 1
    return "did"


def _open_but(own: set[int], planted: int) -> list[int]:
    """Open descriptors other than the standard ones and `own`; the planted one may have any number."""
    return [number for number in sorted({*range(3, 4096), planted} - own) if _is_open(number)]


def _is_open(number: int) -> bool:
    """Told by lseek, which knows only one answer for what is closed."""
    try:
        os.lseek(number, 0, os.SEEK_CUR)
    except OSError as error:
        return error.errno != errno.EBADF
    return True
