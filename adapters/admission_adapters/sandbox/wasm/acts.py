"""The acts that a confined process attempts during a probe; one word for each result, as in the other probes.

Run only in place of a module, by the probe, under everything that a module runs under. None of them is needed to
run a module, and each begins with a call of the kernel that would do harm to a canary.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Mapping
from typing import Any

from admission_adapters.sandbox.probe import acts
from admission_adapters.sandbox.probe.acts import Act


def words(world: Mapping[str, Any], own: int) -> dict[str, str]:
    """Every act by its name. `world` has the canaries; `own` is the descriptor that the end is reported on."""
    acts.CALLS.update(world["calls"])
    return {name: acts.word_of(act) for name, act in _acts(world, own).items()}


def _acts(world: Mapping[str, Any], own: int) -> dict[str, Act]:
    stream = socket.SOCK_STREAM
    return {
        "file_read": lambda: acts.read(world["file"]),
        "file_written": lambda: acts.written(world["new_file"], keep=True),
        "file_described": lambda: acts.did(os.stat, world["file"]),
        "folder_listed": lambda: acts.did(os.listdir, world["folder"]),
        "tcp": lambda: acts.sent(socket.AF_INET, stream, ("127.0.0.1", world["tcp"]), b"wasm"),
        "unix": lambda: acts.sent(socket.AF_UNIX, stream, world["unix"], b"wasm"),
        "process_started": lambda: acts.born(os.fork()),
        "program_started": lambda: acts.did(os.posix_spawn, world["program"], [world["program"]], {}),
        "process_signaled": lambda: acts.did(os.kill, os.getppid(), 0),
        "namespace_made": lambda: acts.new_namespaces(acts.NEW_USER),
        "secret_variable": lambda: f"value:{os.environ.get(world['secret_name'], '')}",
        "descriptors": lambda: "fds:" + ",".join(map(str, _open_but(own, world["descriptor"]))),
        **{f"call_{name}": lambda name=name: _called(name) for name in world["calls"]},  # type: ignore[misc]
        "memory": lambda: acts.allocated(world["memory_bytes"]),
        "files_opened": lambda: acts.did(list, map(os.eventfd, [0] * world["open_files"])),
    }


def _called(name: str) -> str:
    """A system call with arguments that are always wrong: the errno shows what refused it."""
    return acts.did(acts.raw, name, *[ctypes.c_long(-1)] * 5)


def _open_but(own: int, planted: int) -> list[int]:
    """Open descriptors other than the standard ones and `own`; the planted one may have any number."""
    return [number for number in acts.open_descriptors(planted) if number != own]
