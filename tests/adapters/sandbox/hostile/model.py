"""What a hostile program of our own is, what it is told, and how it tells what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from textwrap import dedent, indent
from typing import Any

OK = frozenset({"ok"})
KILLED = frozenset({"forbidden_syscall"})
FAILED = frozenset({"runtime_error"})
SIGNALED = frozenset({"signal"})
TIME = frozenset({"timeout_wall", "timeout_cpu"})
WALL = frozenset({"timeout_wall"})
CPU = frozenset({"timeout_cpu"})
OUTPUT = frozenset({"output_limit"})
MEMORY = frozenset({"runtime_error", "oom"})
"""A Python without memory ends by itself; where the whole tree has a control group the kernel may be first."""


class Control(Enum):
    """What the same program does as a plain subprocess of the same unprivileged user."""

    HARM = "harm"  # it says HARM, or a canary was touched
    LIVES = "lives"  # the kernel refuses that user too, but the program goes on: in the sandbox it may not
    SAME = "same"  # nothing is refused there or here: the verdict is what is tried
    NONE = "none"  # no user without privileges can do it anyhow, or it cannot be tried without harm


@dataclass(frozen=True, slots=True)
class Hostile:
    """One program: `status` holds every right verdict, `says` what its output has to contain in the sandbox.

    Where it states nothing it has to say that it was held, unless it is stopped before. `bounds` changes the
    limits of its run; `inside` and `outside` are what it is told beside the addresses of the canaries, in the
    sandbox and as positive control (where nothing may be endless).
    `output` is the exact standard output, `stdout` and `stderr` how much of each is kept.
    """

    name: str
    code: str
    status: frozenset[str] = OK
    control: Control = Control.HARM
    says: str | None = None
    language: str = "python"
    bounds: Mapping[str, Any] = field(default_factory=dict)
    inside: Mapping[str, Any] = field(default_factory=dict)
    outside: Mapping[str, Any] = field(default_factory=dict)
    output: bytes | None = None
    limit: str | None = None
    exit_code: int | None = None
    artifacts: tuple[str, ...] | None = None

    @property
    def said(self) -> str:
        """What its output has to contain in the sandbox."""
        return ("held" if self.status == OK else "") if self.says is None else self.says

    @property
    def text(self) -> str:
        """The program as it is run: what all of them share, then its own."""
        return (_PYTHON if self.language == "python" else _JAVASCRIPT) + dedent(self.code)


def family(prefix: str, programs: Iterable[Hostile]) -> tuple[Hostile, ...]:
    """Programs under one name; each name once."""
    found = tuple(programs)
    assert len({one.name for one in found}) == len(found), prefix
    return found


def lines(*parts: str) -> str:
    """One program of several parts."""
    return "\n".join(dedent(part) for part in parts)


def attempt(code: str, after: str) -> str:
    """`code` with every refusal caught and told as held; `after` where nothing was refused."""
    caught = "(OSError, ImportError, MemoryError, RuntimeError, ValueError, subprocess.CalledProcessError)"
    body = indent(dedent(code), "    ")
    return f"import subprocess\ntry:\n{body}\nexcept {caught} as error:\n    held(error)\nelse:\n    {after}\n"


_PYTHON = """\
import json, os, sys
told = json.load(sys.stdin)
def harm(*what):
    print("HARM", *what, flush=True)
def held(*why):
    print("held", *why, flush=True)
def tried(act, *arguments):
    try:
        found = act(*arguments)
    except (OSError, ImportError, MemoryError, RuntimeError) as error:
        held(type(error).__name__, getattr(error, "errno", ""))
    else:
        harm(repr(found)[:300])
def call(number, *arguments):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found = libc.syscall(ctypes.c_long(number), *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return found
"""

_JAVASCRIPT = """\
const fs = require('fs');
const told = JSON.parse(fs.readFileSync(0, 'utf8'));
const harm = (...what) => console.log('HARM', ...what);
const held = (...why) => console.log('held', ...why);
const tried = (act) => { try { harm(String(act()).slice(0, 300)); } catch (error) { held(error.code || error.name); } };
"""
