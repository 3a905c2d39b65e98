"""The WebAssembly modules of the probe, in the text format: each attempts one act and prints the result.

A module ends with the number of WASI's error for what was refused, with 0 and on standard output for what was not.
"""

from __future__ import annotations

_IMPORTS = {
    "fd_read": "i32 i32 i32 i32",
    "fd_write": "i32 i32 i32 i32",
    "path_open": "i32 i32 i32 i32 i32 i64 i64 i32 i32",
    "environ_sizes_get": "i32 i32",
    "environ_get": "i32 i32",
    "poll_oneoff": "i32 i32 i32 i32",
    "random_get": "i32 i32",
    "sock_connect": "i32 i32 i32",
}
_READ, _WRITE, _CREATE = 2, 64, 1  # rights and open flags of WASI
_PAGE = 65536


def echo() -> str:
    """Print standard input."""
    return _module(["fd_read", "fd_write"], f"{_vector(4096)} {_take(0)} {_print()}")


def read(path: str) -> str:
    """Print the start of a file in the first folder."""
    opened = _open(path, 0, _READ)
    body = f"{opened} {_vector(64)} {_take('(i32.load (i32.const 16))')} {_print()}"
    return _module(["path_open", "fd_read", "fd_write", "proc_exit"], body, path)


def write(path: str) -> str:
    """Make a file in the first folder."""
    return _module(["path_open", "proc_exit"], _open(path, _CREATE, _WRITE), path)


def environment() -> str:
    """Print every environment variable."""
    body = f"""(drop (call $environ_sizes_get (i32.const 16) (i32.const 20)))
      (drop (call $environ_get (i32.const 2048) (i32.const 8192)))
      (i32.store (i32.const 0) (i32.const 8192)) (i32.store (i32.const 4) (i32.load (i32.const 20))) {_print()}"""
    return _module(["environ_sizes_get", "environ_get", "fd_write"], body)


def connect() -> str:
    """Import a function that WASI has only with sockets."""
    return _module(["sock_connect"], "(drop (call $sock_connect (i32.const 3) (i32.const 0) (i32.const 0)))")


def grow(size: int) -> str:
    """Take so many bytes of memory, and use the last one; ends with 48 (ENOMEM) when there are not as many."""
    body = f"""(if (i32.eq (memory.grow (i32.const {size // _PAGE})) (i32.const -1))
        (then (call $proc_exit (i32.const 48)) unreachable))
      (i32.store8 (i32.const {size}) (i32.const 1))"""
    return _module(["proc_exit"], body)


def spin(turns: int) -> str:
    """Count to so many."""
    return _module(
        [],
        f"""(local $turn i64) (loop $again (local.set $turn (i64.add (local.get $turn) (i64.const 1)))
      (br_if $again (i64.lt_u (local.get $turn) (i64.const {turns}))))""",
    )


def sleep(seconds: float) -> str:
    """Wait for so long."""
    body = f"""(i32.store8 (i32.const 8) (i32.const 0)) (i32.store (i32.const 16) (i32.const 1))
      (i64.store (i32.const 24) (i64.const {int(seconds * 1e9)}))
      (drop (call $poll_oneoff (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))"""
    return _module(["poll_oneoff"], body)


def flood(stream: int, size: int) -> str:
    """Write so many bytes without a newline."""
    body = f"""(local $left i32) (local.set $left (i32.const {size})) {_vector(4096)}
      (loop $again (drop (call $fd_write (i32.const {stream}) (i32.const 0) (i32.const 1) (i32.const 8)))
        (br_if $again (i32.gt_s (local.tee $left (i32.sub (local.get $left) (i32.const 4096))) (i32.const 0))))"""
    return _module(["fd_write"], body)


def draw(count: int) -> str:
    """Print random bytes."""
    body = f"(drop (call $random_get (i32.const 1024) (i32.const {count}))) {_vector(count)} {_print()}"
    return _module(["random_get", "fd_write"], body)


def _module(names: list[str], body: str, path: str = "") -> str:
    imports = " ".join(_import(name) for name in names)
    data = f'(data (i32.const 256) "{path}")'
    return f'(module {imports} (memory (export "memory") 1) {data} (func (export "_start") {body}))'


def _import(name: str) -> str:
    sort = f"(param {_IMPORTS[name]}) (result i32)" if name in _IMPORTS else "(param i32)"
    return f'(import "wasi_snapshot_preview1" "{name}" (func ${name} {sort}))'


def _open(path: str, flags: int, rights: int) -> str:
    """Open a path below the first folder; the error, if any, ends the module."""
    return f"""(i32.store (i32.const 20) (call $path_open (i32.const 3) (i32.const 0) (i32.const 256)
      (i32.const {len(path)}) (i32.const {flags}) (i64.const {rights}) (i64.const 0) (i32.const 0) (i32.const 16)))
      (if (i32.load (i32.const 20)) (then (call $proc_exit (i32.load (i32.const 20)))))"""


def _vector(size: int) -> str:
    return f"(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const {size}))"


def _take(descriptor: int | str) -> str:
    """Read once, and let the vector be as long as what came."""
    number = descriptor if isinstance(descriptor, str) else f"(i32.const {descriptor})"
    return f"""(drop (call $fd_read {number} (i32.const 0) (i32.const 1) (i32.const 8)))
      (i32.store (i32.const 4) (i32.load (i32.const 8)))"""


def _print() -> str:
    return "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))"
