"""Runs a filter as the kernel would: classic BPF over `struct seccomp_data`, with the kernel's own checks."""

from __future__ import annotations

import struct

_MOST = 4096
_LOAD, _RET = 0x20, 0x06
_AND = 0x54
_JUMPS = {0x15, 0x35, 0x25, 0x45}


def instructions(code: bytes) -> list[tuple[int, int, int, int]]:
    return [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]


def checked(code: bytes) -> list[tuple[int, int, int, int]]:
    """The instructions of a filter that the kernel would take: known codes, jumps that stay inside, a last return."""
    lines = instructions(code)
    assert len(code) % 8 == 0
    assert 0 < len(lines) <= _MOST
    for at, (kind, true, false, value) in enumerate(lines):
        assert kind in {_LOAD, _RET, _AND, 0x05} | _JUMPS
        if kind in _JUMPS:
            assert at + 1 + max(true, false) < len(lines)
        if kind == 0x05:
            assert at + 1 + value < len(lines)
        if kind == _LOAD:
            assert value % 4 == 0
            assert value < 64
    assert lines[-1][0] == _RET
    return lines


def answer(code: bytes, arch: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the filter gives for one call."""
    words = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, arch, 0, *words)
    lines, at, accumulator = instructions(code), 0, 0
    while True:
        kind, true, false, value = lines[at]
        at += 1
        if kind == _RET:
            return value
        if kind == _LOAD:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif kind == _AND:
            accumulator &= value
        elif kind == 0x05:
            at += value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x25: accumulator > value,
                0x45: bool(accumulator & value),
            }[kind]
            at += true if holds else false
