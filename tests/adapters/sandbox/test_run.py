"""A program in a sandbox: what it gets, what it does not see, and how its end is told."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from typing import Any

import pytest

from admission_adapters.sandbox.bubblewrap.backend import Bubblewrap
from admission_adapters.sandbox.model import Status
from admission_adapters.sandbox.run.process import run_once
from engine.errors import WorkError
from tests.adapters.sandbox.programs import BOUNDS, bounds, program, ran
from tests.facilities import needs
from tests.processes import leaks

pytestmark = needs("bubblewrap")


# covers: C30.2
def test_code_runs_in_its_own_folder_with_the_payload_on_standard_input() -> None:
    code = "import json, os, sys; print(json.dumps([json.load(sys.stdin), os.getcwd(), os.listdir()]))"
    payload = {"rows": ["é", 1], "n": 3}
    folder = "code_exec_agent_00ff"
    ended = ran(code, stdin=json.dumps(payload).encode(), folder=folder)
    assert ended.status is Status.OK
    assert json.loads(ended.stdout) == [payload, f"/work/{folder}", ["main.py"]]
    assert (ended.exit_code, ended.signal, ended.limit, ended.stderr) == (0, None, None, b"")
    assert ended.stdout_bytes == len(ended.stdout)
    assert 0 < ended.wall_seconds < BOUNDS.wall_seconds
    assert ended.cpu_seconds is not None


# covers: C30 C84
def test_the_script_is_read_only_in_a_fresh_private_folder() -> None:
    code = """
import os
try:
    open("main.py", "w")
except PermissionError:
    print("read-only")
print(open("main.py").read()[:10].strip(), oct(os.stat(".").st_mode & 0o777), os.path.exists("before"))
open("before", "w").write("x")
"""
    for _ in range(2):
        assert ran(code, folder="code_exec_agent_aa").stdout == b"read-only\nimport os 0o700 False\n"


# covers: C30
def test_binary_output_is_returned_unchanged() -> None:
    ended = ran(r"import sys; sys.stdout.buffer.write(b'\xff\x00\xfe'); sys.stderr.buffer.write(b'\x80')")
    assert (ended.stdout, ended.stderr, ended.status) == (b"\xff\x00\xfe", b"\x80", Status.OK)


# covers: C31 H01.1-2
def test_the_environment_is_what_was_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_TEST_SECRET", "canary-0451")
    ended = ran(
        "import json, os; print(json.dumps(dict(os.environ)))", environment={"STATED": "é", "HOME": "/work/tmp"}
    )
    assert json.loads(ended.stdout) == {
        "STATED": "é",
        "LANG": "C.UTF-8",
        "PATH": "/usr/bin:/alternatives",
        "HOME": "/work/tmp",
    }
    child = [f"{os.path.realpath('/usr/bin/python3')}", "-c", "import os; print('ENGINE_TEST_SECRET' in os.environ)"]
    assert subprocess.run(child, capture_output=True, check=True).stdout == b"True\n"  # control: a plain child has it


# covers: C31
def test_python_ignores_user_packages_and_writes_no_bytecode() -> None:
    code = "import os, sys; print(os.environ['PYTHONNOUSERSITE'], os.environ['PYTHONDONTWRITEBYTECODE'], sys.flags)"
    said = ran(code).stdout.decode()
    assert said.startswith("1 1 ")
    assert "no_site=1" in said
    assert "no_user_site=1" in said
    assert "dont_write_bytecode=1" in said


# covers: H01.3
def test_local_site_and_user_modules_cannot_be_imported() -> None:
    code = """
import os, sys
open("beside.py", "w").write("found = 1")
os.makedirs(os.path.expanduser("~/.local/lib/python3.11/site-packages"))
print(sorted(path for path in sys.path if not path.startswith("/usr/lib/python3")), "site" in sys.modules)
print([path for path in sys.path if "packages" in path])
try:
    import beside
except ImportError as error:
    print(error)
"""
    assert ran(code).stdout == b"[] False\n[]\nNo module named 'beside'\n"


# covers: A86.1 H01.4
def test_the_seed_of_hashes_takes_effect() -> None:
    code = "print(hash('a'), hash('b'))"
    first, again, other = (ran(code, environment={"PYTHONHASHSEED": seed}).stdout for seed in ("7", "7", "8"))
    assert first == again != other


def test_a_program_runs_as_the_main_module() -> None:
    code = """
import pickle, sys
class Thing: pass
assert pickle.loads(pickle.dumps(Thing())).__class__ is Thing
assert sys.modules["__main__"].Thing is Thing and __name__ == "__main__"
print(sys.argv, __file__, sorted(name for name in globals() if not name.startswith("__")))
"""
    assert ran(code).stdout == b"['main.py'] main.py ['Thing', 'pickle', 'sys']\n"


# covers: C36
@pytest.mark.parametrize(
    ("code", "exit_code", "said"),
    [
        ("raise SystemExit(3)", 3, b""),
        ("import sys; sys.exit('no')", 1, b"no\n"),
        ("import os; os._exit(152)", 152, b""),
        ("import os; os._exit(159)", 159, b""),
        ("import os; os._exit(125)", 125, b""),
        ("raise SystemExit(-1)", 255, b""),
        ("raise SystemExit(2**70)", 255, b""),
        ("import sys; sys.stdout.close(); sys.exit(4)", 4, b""),
    ],
)
def test_a_nonzero_exit_is_a_runtime_error_with_its_code(code: str, exit_code: int, said: bytes) -> None:
    ended = ran(code)
    assert (ended.status, ended.exit_code, ended.signal) == (Status.RUNTIME_ERROR, exit_code, None)
    assert (ended.stderr, ended.limit) == (said, None)


def test_a_traceback_shows_only_the_lines_of_the_program() -> None:
    ended = ran("def half(x):\n    return 1 / x\n\nhalf(0)\n")
    assert (ended.status, ended.exit_code) == (Status.RUNTIME_ERROR, 1)
    lines = ended.stderr.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1:3] == ['  File "main.py", line 4, in <module>', "    half(0)"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "launcher" not in ended.stderr.decode()
    assert ran("x = (").stderr.startswith(b'  File "main.py", line 1\n    x = (')


# covers: H18
@pytest.mark.parametrize("code", ["\ud800", "x = 1\n\ud800"])
def test_code_that_cannot_be_encoded_as_utf_8_is_refused(code: str) -> None:
    with pytest.raises(WorkError, match="cannot be encoded as UTF-8"):
        ran(code)


# covers: H18
def test_pathological_code_ends_as_a_runtime_error_of_the_program() -> None:
    deep = "(" * 5000 + ")" * 5000
    for code in ("a\0b", deep, "-" * 100_000 + "1", "x" * 300_000):
        assert ran(code, within=bounds(stderr_bytes=1 << 20)).status is Status.RUNTIME_ERROR
    assert ran("# -*- coding: utf-7 -*-\nprint('+AGE-')").stdout == b"+AGE-\n"  # the text that was scanned, no other
    assert ran("").status is Status.OK


def test_threads_and_exit_handlers_run_at_interpreter_shutdown() -> None:
    code = """
import atexit, threading
kept = open("kept", "w"); kept.write("flushed")
class Last:
    def __del__(self): print("deleted", open("kept").read() if False else "")
last = Last()
def late():
    threading.main_thread().join(); print("thread")
threading.Thread(target=late).start()
atexit.register(print, "atexit")
print("main")
"""
    assert ran(code).stdout == b"main\nthread\natexit\ndeleted \n"


# covers: B11
def test_a_command_is_executed_without_a_shell() -> None:
    ended = ran("", language="", command=("/usr/bin/printf", "%s|", "a; echo b", "$HOME", "`id`", "*"))
    assert (ended.status, ended.stdout) == (Status.OK, b"a; echo b|$HOME|`id`|*|")
    absent = ran("", language="", command=("/usr/bin/no-such-program",))
    assert (absent.status, absent.exit_code) == (Status.RUNTIME_ERROR, 127)


@pytest.mark.parametrize(
    "fields",
    [
        {"language": "cobol"},
        {"folder": "elsewhere"},
        {"folder": "code_exec_agent_../x"},
        {"folder": "code_exec_agent_"},
        {"environment": {"A=B": "c"}},
        {"environment": {"A": "b\0c"}},
        {"environment": {"A": "\ud800"}},
        {"command": ("/usr/bin/true", "a\0b")},
        {"command": ("/usr/bin/true", "\ud800")},
        {"command": ("true",)},
    ],
)
def test_an_invalid_program_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(WorkError):
        ran("print(1)", **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"disk_bytes": 0},
        {"memory_bytes": -1},
        {"wall_seconds": float("nan")},
        {"wall_seconds": float("inf")},
        {"processes": 0},
        {"file_bytes": 1 << 64},
        {"artifact_files": -1},
        {"artifact_files": 1, "open_files": 8},
    ],
)
def test_an_invalid_limit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(WorkError, match="a limit is not valid"):
        ran("print(1)", within=bounds(**fields))


def test_many_at_once_from_threads_that_end() -> None:
    ends: list[bytes] = []

    def one(number: int) -> None:
        ends.append(ran(f"print({number})").stdout)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends, key=int) == [f"{number}\n".encode() for number in range(12)]


def test_a_run_leaks_no_descriptor_or_process() -> None:
    assert not leaks(lambda: ran("print(1)"))
    assert not leaks(lambda: ran("raise SystemExit(1)", within=bounds(artifact_files=1, artifact_bytes=1)))


def test_the_public_class_cannot_omit_protections() -> None:
    with pytest.raises(TypeError):
        Bubblewrap().run(program("1"), BOUNDS, None, without=frozenset({"seccomp"}))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unknown protections"):
        run_once(program("1"), BOUNDS, None, frozenset({"secomp"}))
