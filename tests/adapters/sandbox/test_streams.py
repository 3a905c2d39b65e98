"""Output is counted and cut while it streams, input is there whether or not it is read."""

from __future__ import annotations

import resource

import pytest

from admission_adapters.sandbox.model import Status
from admission_adapters.sandbox.run.process import run_once
from tests.adapters.sandbox.programs import bounds, program, ran
from tests.facilities import needs

pytestmark = needs("bubblewrap")


# covers: C35 C85
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_cap_is_exact(stream: str) -> None:
    code = "import sys; sys.{}.write('x' * {})"
    full, more = ran(code.format(stream, 4096)), ran(code.format(stream, 4097))
    assert (full.status, full.limit, getattr(full, f"{stream}_bytes")) == (Status.OK, None, 4096)
    assert (more.status, more.limit) == (Status.OUTPUT_LIMIT, stream)
    assert getattr(more, f"{stream}_bytes") == 4097
    assert getattr(more, stream) == b"x" * 4096


# covers: C35
def test_stdout_is_named_if_both_streams_exceed_their_limits() -> None:
    ended = ran("import os; os.write(1, b'o' * 4097); os.write(2, b'e' * 4097); os._exit(3)")
    assert (ended.stdout_bytes, ended.limit) == (4097, "stdout")


# covers: C35
@pytest.mark.parametrize(
    "code",
    [
        "print('o' * 5000); sys.stderr.write('e' * 5000); time.sleep(600)",
        "atexit.register(time.sleep, 600); sys.stdout.write('o' * 5000); sys.exit('e' * 5000)",
        "atexit.register(time.sleep, 600); sys.stdout.write('o' * 5000); raise ValueError('e' * 5000)",
    ],
)
def test_the_stream_that_is_over_its_limit_first_is_named(code: str) -> None:
    """It does not depend on when the program would empty its buffers: it never comes to its end."""
    ended = ran(f"import atexit, sys, time; {code}")
    assert (ended.status, ended.limit, ended.stdout_bytes) == (Status.OUTPUT_LIMIT, "stdout", 4097)


# covers: C61.1-2
@pytest.mark.parametrize("stream", [1, 2])
@pytest.mark.parametrize("piece", ["b'x' * (1 << 20)", "b'x\\n'"])
def test_endless_output_is_ended_at_once_in_little_memory(stream: int, piece: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = ran(f"import os\npiece = {piece}\nfor _ in range(1 << 30): os.write({stream}, piece)")
    assert ended.status is Status.OUTPUT_LIMIT
    assert ended.limit == ("stdout", "stderr")[stream - 1]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


# covers: C61
def test_without_the_output_cap_excess_output_does_not_end_the_run() -> None:
    ended = run_once(program("print('x' * (1 << 20))"), bounds(), None, frozenset({"output_cap"}))
    assert (ended.status, len(ended.stdout), ended.stdout_bytes) == (Status.OK, 4096, 4097)


def test_output_of_children_counts_too() -> None:
    code = """
import os
for _ in range(3):
    if not os.fork(): os._exit(os.write(1, b"x" * 2000) and 0)
for _ in range(3): os.wait()
"""
    ended = ran(code)
    assert (ended.status, ended.limit) == (Status.OUTPUT_LIMIT, "stdout")


def test_input_that_is_not_read_stops_nothing() -> None:
    large = b"x" * (8 << 20)
    assert ran("print(1)", stdin=large).stdout == b"1\n"
    assert ran("import os; os.close(0); print(2)", stdin=large).stdout == b"2\n"
    assert ran("import sys; print(len(sys.stdin.read()))", stdin=large).stdout == b"8388608\n"
    assert ran("import sys; print(repr(sys.stdin.read()))", stdin=b"").stdout == b"''\n"


def test_input_cannot_be_changed() -> None:
    code = """
import os
for what in (lambda: os.write(0, b"x"), lambda: os.ftruncate(0, 0), lambda: os.ftruncate(0, 99)):
    try:
        what()
    except OSError as error:
        print(error.errno)
"""
    assert ran(code, stdin=b"given").stdout == b"1\n1\n1\n"


def test_closed_streams_do_not_disturb_a_run() -> None:
    assert ran("import os; os.close(1); os.close(2)").status is Status.OK
    ended = ran("import os, time; os.close(1); os.close(2); time.sleep(60)", within=bounds(wall_seconds=0.3))
    assert ended.status is Status.TIMEOUT_WALL


def test_output_written_before_a_kill_is_kept() -> None:
    ended = ran("import os; os.write(1, b'last words'); os.kill(os.getpid(), 9)")
    assert (ended.status, ended.signal, ended.stdout) == (Status.SIGNAL, 9, b"last words")
