"""The second probe program: exceeds the limits that end a program, one limit per run.

The real launcher runs it unchanged, and so does a plain subprocess, so it imports no other module of the project.
Standard input is one JSON object: `act`, and what that act needs. Each act ends by itself well past the limit.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BLOCK = b"x" * 65536
SECONDS = 30  # that a daemon outlives its program without a sandbox


def named(token: str) -> None:
    """Give this process a name by which it is found from outside (PR_SET_NAME, 15 characters)."""
    ctypes.CDLL(None).prctl(ctypes.c_int(15), ctypes.c_char_p(token.encode()), *[ctypes.c_ulong(0)] * 3)


def daemons(token: str, count: int) -> None:
    """Leave processes with sessions of their own, that mind no signal which can be minded."""
    for _ in range(count):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        os.setsid()
        if os.fork():
            os._exit(0)
        ignore_signals()
        named(token)
        os.closerange(0, 3)
        time.sleep(SECONDS)
        os._exit(0)


def ignore_signals() -> None:
    """Ignore all signals that request an end."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def write(stream: int, size: int) -> None:
    """Write without a newline."""
    while size > 0:
        size -= os.write(stream, BLOCK)


def burn(seconds: float) -> None:
    """Use CPU time in a child, and report when it is done."""
    ignore_signals()
    while time.process_time() < seconds:
        pass


@contextmanager
def allocated(each: int, children: int) -> Iterator[None]:
    """Have `each` bytes in use in each of `children` processes. Raises MemoryError."""
    reader, writer = os.pipe()
    ready_reader, ready_writer = os.pipe()
    for _ in range(children):
        if os.fork() == 0:
            os.close(writer)
            memory = bytearray(each)
            memory[::4096] = b"x" * len(memory[::4096])
            os.write(ready_writer, b"x")
            os.read(reader, 1)
            os._exit(0)
    os.close(ready_writer)
    done = 0
    while done < children and os.read(ready_reader, 1):
        done += 1
    if done < children:
        raise MemoryError
    yield
    os.close(writer)


def make_files(count: int) -> None:
    """Create empty files with long names, which use kernel memory only."""
    os.write(1, b"flood")
    for number in range(count):
        os.close(os.open(f"{number:0>240}", os.O_WRONLY | os.O_CREAT, 0o600))


def main() -> None:
    """Perform the requested act and print its result."""
    ask = json.loads(sys.stdin.read())
    act = ask["act"]
    if act == "sleep":
        ignore_signals()
        daemons(ask["token"], ask["count"])
        named(ask["main"])
        time.sleep(ask["seconds"])
    elif act == "stdout":
        write(1, ask["bytes"])
    elif act == "stderr":
        write(2, ask["bytes"])
    elif act == "cpu":
        burn(ask["seconds"])
    elif act == "memory_tree":
        with allocated(ask["bytes"], ask["count"]):
            pass
    elif act == "inode_flood":
        with allocated(ask["bytes"], 2):
            make_files(ask["count"])
    sys.stdout.write("did")


if __name__ == "__main__":
    main()
