"""The compiled launcher and its job: the limits, the folder and the program."""

from __future__ import annotations

import re
import resource
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from admission_adapters.sandbox.bubblewrap.arguments import NODE, PYTHON, WORK, identity, interpreter, is_word
from admission_adapters.sandbox.model import FOLDER_PREFIX, LISTENER, Bounds, NotStartedError, Program
from engine.errors import WorkError

RELAY = f"{WORK}/relay"
"""Where a program leaves requests for its relay."""

_FOLDER = re.compile(FOLDER_PREFIX + "[0-9A-Za-z]{1,64}")

MAIN = {"python": "main.py", "javascript": "main.js"}
"""The file name of the code, by language."""

_PRELUDE = (
    f"{WORK}/input.js",
    b"""const { readFileSync } = require('fs');
Object.defineProperty(globalThis, 'input', { value: () => readFileSync(0, 'utf8') });
""",
)
"""What JavaScript finds before its first line: `input()`, all of standard input as text. Node has no such word."""

_COMPILE = """import marshal, sys
sys.stdout.buffer.write(marshal.dumps(compile(sys.stdin.buffer.read(), "<launcher>", "exec")))"""
_COMPILE_SECONDS = 20.0
_CODE_BYTES = 1 << 20

_BESIDE = 2
"""Processes that count and are not the program's: the first one of the sandbox and the launcher."""


def code() -> bytes:
    """The launcher as the system's interpreter compiled it. Raises NotStartedError when it could not."""
    return _compiled("inside.py", identity(PYTHON))


def command(launcher: int, ready: int, go: int, job: int, report: int, egress: int = -1) -> list[str]:
    """How the interpreter is started: it reads the launcher from its descriptor, and nothing from a disk."""
    load = f"import marshal,posix;n={{}};exec(marshal.loads(posix.read({launcher},{_CODE_BYTES})),n)"
    way_out = "" if egress < 0 else f",{egress},{LISTENER!r}"
    return [*interpreter(), "-c", f"{load};n['launch']({ready},{go},{job},{report}{way_out})"]


def work(program: Program, bounds: Bounds, without: frozenset[str]) -> dict[str, Any]:
    """The job that the launcher receives with the go signal. Raises WorkError for a program without a JSON form."""
    return {
        "folder": f"{WORK}/{_plain(program.folder)}",
        "main": "" if program.command else _main(program.language),
        "source": encoded(program.code),
        "prelude": _PRELUDE if _is_javascript(program) else (),
        "command": list(_command(program, bounds)),
        "limits": [(number, limit) for name, number, limit in _limits(bounds) if name not in without],
        "files": _files(program),
        "relay": _compiled("inside_relay.py", identity(PYTHON)) if program.relay is not None else b"",
        "close": "close_fds" not in without,
        "sender": _compiled("inside_artifacts.py", identity(PYTHON)) if bounds.artifact_files > 0 else b"",
        "most_files": bounds.artifact_files,
        "most_bytes": bounds.artifact_bytes,
    }


def _files(program: Program) -> list[tuple[str, bytes | None]]:
    """Folders (None), each after the one that has it, then files."""
    folders = set() if program.relay is None else {RELAY}
    for path in program.files:
        start = f"{WORK}/" if path.startswith(f"{WORK}/") else ""
        words = path.removeprefix(start).split("/")
        if not is_word(path) or {*words} & {"", ".", ".."}:
            raise WorkError("a file for a program has an invalid path", remedy=f"use a plain path, or one below {WORK}")
        folders |= {start + "/".join(words[:count]) for count in range(1, len(words))}
    return [*((folder, None) for folder in sorted(folders)), *program.files.items()]


def _limits(bounds: Bounds) -> list[tuple[str, int, tuple[int, int]]]:
    seconds, processes = bounds.cpu_seconds, bounds.processes + _BESIDE
    return [
        ("rlimit_cpu", resource.RLIMIT_CPU, (seconds, seconds + 1)),
        ("rlimit_nproc", resource.RLIMIT_NPROC, (processes, processes)),
        ("rlimit_nofile", resource.RLIMIT_NOFILE, (bounds.open_files, bounds.open_files)),
        ("rlimit_fsize", resource.RLIMIT_FSIZE, (bounds.file_bytes, bounds.file_bytes)),
        ("rlimit_core", resource.RLIMIT_CORE, (0, 0)),
        ("rlimit_memlock", resource.RLIMIT_MEMLOCK, (0, 0)),
        ("rlimit_msgqueue", resource.RLIMIT_MSGQUEUE, (0, 0)),
        ("rlimit_as", resource.RLIMIT_AS, (bounds.memory_bytes, bounds.memory_bytes)),
    ]


def _command(program: Program, bounds: Bounds) -> tuple[str, ...]:
    if program.command:
        if not program.command[0].startswith("/") or not all(is_word(word) for word in program.command):
            raise WorkError(
                "the command is not a valid argument list",
                remedy="start it with an absolute path, and remove null bytes and lone surrogates",
            )
        return program.command
    if not _is_javascript(program):
        return ()
    heap = max(16, bounds.memory_bytes // (4 << 20))  # MiB: a quarter, the rest is code, stacks and reservations
    options = ("--jitless", "--no-expose-wasm", f"--max-old-space-size={heap}", "--require", _PRELUDE[0])
    return (NODE, *options, MAIN[program.language])


def _is_javascript(program: Program) -> bool:
    return not program.command and program.language == "javascript"


def _main(language: str) -> str:
    if language not in MAIN:
        raise WorkError(f"no sandbox runs the language `{language[:40]}`", remedy=f"write it in {' or '.join(MAIN)}")
    return MAIN[language]


def encoded(code: str) -> bytes:
    """The text of a program. Raises WorkError for one that has no UTF-8."""
    try:
        return code.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WorkError("the code cannot be encoded as UTF-8", remedy="remove lone surrogates") from error


def _plain(folder: str) -> str:
    if not _FOLDER.fullmatch(folder):
        raise WorkError(
            "the name of the working folder is not valid",
            remedy=f"use `{FOLDER_PREFIX}` followed by letters and digits",
        )
    return folder


@cache
def _compiled(name: str, _interpreter: str) -> bytes:
    """A file of ours in the interpreter's own bytecode: reading its text at every start costs a tenth of one."""
    try:
        source = Path(__file__).with_name(name).read_bytes()
        done = subprocess.run(
            [PYTHON, "-I", "-S", "-c", _COMPILE],
            input=source,
            env={},
            cwd="/",
            capture_output=True,
            timeout=_COMPILE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotStartedError(f"the launcher cannot be compiled: {type(error).__name__}") from error
    return done.stdout
