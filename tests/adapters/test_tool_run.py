"""Tools as they really are: whatever one does, its call has an end, in time, with its side effects."""

from __future__ import annotations

import ast
import asyncio
import functools
import runpy
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

import pytest
from pydantic import BaseModel

from admission_adapters.tools.effects import (
    MOST_EFFECTS,
    Effects,
    ToolStoppedError,
    record_reported,
    record_side_effect,
    recording,
)
from admission_adapters.tools.outcome import LOOKED_AT, Failure, Outcome, ResultText, ToolValidationError, cut
from admission_adapters.tools.process import _CHILD, _messages, in_process
from admission_adapters.tools.registering import refusal
from admission_adapters.tools.result import returned
from admission_adapters.tools.thread import attempt, in_thread
from engine.documents.canonical import digest
from engine.errors import WorkError
from engine.model import Level, StopSignal
from engine.model import Outcome as PolicyOutcome
from tests.adapters import isolated_tools
from tests.adapters.gates import deep, raising
from tests.expect import refused, there
from tests.processes import children, gone

MOST = 1_000
SOON = (0.2, 2.0, 20.0)
"""Seconds, tried one after another: within them a tool has begun, and has not ended."""


def call(tool: Callable[..., Any], seconds: float = 20.0, **arguments: Any) -> tuple[Outcome, list[dict[str, str]]]:
    effects, stop = Effects(), StopSignal()
    outcome = in_thread(tool, arguments, seconds, MOST, effects, stop)
    assert not stop.awaited
    return outcome, effects.close()


def apart(tool: Callable[..., Any], seconds: float = 20.0, **arguments: Any) -> tuple[Outcome, list[dict[str, str]]]:
    effects, stop = Effects(), StopSignal()
    outcome = in_process(tool, arguments, seconds, MOST, effects, {"KNOWN": "yes"}, stop)
    assert not stop.awaited
    return outcome, effects.close()


class Hostile(str):
    """Text that nobody can read as usual."""

    __slots__ = ()

    def __str__(self) -> NoReturn:
        raise SystemExit

    def encode(self, *_: Any) -> NoReturn:
        raise SystemExit


class UnreadableError(Exception):
    def __str__(self) -> NoReturn:
        raise KeyboardInterrupt


def own_reference() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


ENDS: dict[str, tuple[Callable[[], Any], str]] = {
    "an error": (raising(ValueError("x")), "ValueError"),
    "an exit": (raising(SystemExit(3)), "SystemExit"),
    "an interrupt": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    "the end of a generator": (raising(GeneratorExit()), "GeneratorExit"),
    "a cancellation": (raising(asyncio.CancelledError()), "CancelledError"),
    "a timeout of its own": (raising(TimeoutError()), "TimeoutError"),
    "the end of an iteration": (raising(StopIteration()), "StopIteration"),
    "an error without text": (raising(UnreadableError()), "UnreadableError"),
    "an error with an odd name": (raising(type("Odd\nName", (Exception,), {})()), "Error"),
}
"""What tools raise instead of a result, and how it is named."""


# covers: B38.1
@pytest.mark.parametrize("what", ENDS)
def test_an_exception_in_a_tool_is_a_failure(what: str) -> None:
    tool, class_ = ENDS[what]
    outcome, _ = call(tool)
    failure = there(outcome.failure)
    assert (outcome.result_text, failure.kind, failure.class_) == (None, "other", class_)


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    at: datetime


class Row(NamedTuple):
    name: str
    price: Decimal


class Order(BaseModel):
    id: UUID
    tags: set[str] = set()


def words() -> Iterator[str]:
    yield from ("a", "b")


async def numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


async def endless() -> AsyncIterator[int]:
    while True:
        yield 1


UNSUPPORTED: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (object, "a value of type `object`"),
    "a class": (lambda: int, "a value of type `type`"),
    "bytes in a list": (lambda: [b"x"], "a value of type `bytes`"),
    "no number": (lambda: float("nan"), "NaN"),
    "no end": (lambda: [float("inf")], "NaN"),
    "a hundred thousand levels": (lambda: deep(100_000), "deeper than 64 levels"),
    "itself": (own_reference, "deeper than 64 levels"),
    "a list without an end": (lambda: iter(int, 1), "more than 100000 values"),
    "a stream without an end": (endless, "more than 100000 values"),
    "a list as a key": (lambda: {(1, 2): 3}, "a key of type `tuple`"),
    "a truth value as a key": (lambda: {True: 1}, "a key of type `bool`"),
    "a class of data": (lambda: Point, "a value of type `type`"),
    "a class of models": (lambda: Order, "a value of type `ModelMetaclass`"),
    "fields of no tuple": (ast.Pass, "a value of type `Pass`"),
}
"""Values that have no form as text, and what the error says of them."""


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_an_unsupported_result_type_is_a_failure_with_advice(what: str) -> None:
    tool, told = UNSUPPORTED[what]
    outcome, _ = call(tool)
    failure = there(outcome.failure)
    assert (outcome.result_text, failure.kind, failure.code) == (None, "validation", "result_unsupported")
    assert told in there(failure.message)
    assert "its developer has to" in there(failure.message)


FORMS: dict[str, tuple[Callable[[], Any], str]] = {
    "a time": (lambda: datetime(2026, 11, 24, 9, 30, tzinfo=UTC), "2026-11-24T09:30:00+00:00"),
    "a day": (lambda: {"day": date(2026, 11, 24)}, '{"day": "2026-11-24"}'),
    "a duration": (lambda: timedelta(minutes=1.5), "90.0"),
    "an amount": (lambda: [Decimal("1.10")], '["1.10"]'),
    "a path": (lambda: PurePosixPath("/a/b"), "/a/b"),
    "a member": (lambda: {Colour.RED: Colour.RED}, '{"red": "red"}'),
    "a dataclass": (lambda: Point(1, datetime(2026, 1, 1, tzinfo=UTC)), '{"x": 1, "at": "2026-01-01T00:00:00+00:00"}'),
    "a named tuple": (lambda: Row("nut", Decimal(2)), '{"name": "nut", "price": "2"}'),
    "a model": (lambda: Order(id=UUID(int=1)), '{"id": "00000000-0000-0000-0000-000000000001", "tags": []}'),
    "a set": (lambda: {1}, "[1]"),
    "a tuple": (lambda: (1, "a"), '[1, "a"]'),
    "a stream of text": (words, "ab"),
    "an empty stream": (lambda: iter(()), "[]"),
    "a generator": (lambda: (n for n in (1, 2)), "[1, 2]"),
    "an asynchronous stream": (numbers, "[1, 2]"),
}
"""What tools return, and its form."""


@pytest.mark.parametrize("what", FORMS)
def test_each_result_type_has_one_text_form(what: str) -> None:
    tool, text = FORMS[what]
    outcome, _ = call(tool)
    assert there(outcome.result_text).text == text


GIVEN: dict[str, tuple[Any, str, str]] = {
    "text": ("text", "text", "text"),
    "no text": ("", "text", ""),
    "text that cannot be read": (Hostile("quiet"), "text", "quiet"),
    "half of a pair": ("half \ud800", "text", "half ?"),
    "nothing": (None, "json", "null"),
    "values": ({"a": [1, "é"]}, "json", '{"a": [1, "é"]}'),
    "bytes": (b"\xff\x00", "binary", ""),
    "an array of bytes": (bytearray(b"x"), "binary", ""),
    "a view of bytes": (memoryview(b"x"), "binary", ""),
}
"""What tools give, of what kind it is, and its text."""


@pytest.mark.parametrize("what", GIVEN)
def test_each_return_value_has_its_kind_and_text(what: str) -> None:
    value, media, text = GIVEN[what]
    found = there(call(lambda: value)[0].result_text)
    assert (found.media, found.text) == (media, text)


# covers: B28
def test_a_hundred_megabytes_are_measured_and_cut() -> None:
    found = there(call(lambda: "x" * 100_000_000)[0].result_text)
    assert (found.bytes, len(found.text)) == (100_000_000, MOST + LOOKED_AT)


# covers: B28.3
def test_a_cut_leaves_whole_characters() -> None:
    data = "aé€😀".encode()
    assert [cut(data, most) for most in range(len(data) + 2)] == (
        ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€😀", "aé€😀"]
    )


def test_printed_output_is_not_part_of_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    outcome, _ = call(isolated_tools.shout, text="hello")
    assert (outcome.result_text and outcome.result_text.text) == "HELLO"
    assert capsys.readouterr() == ("hello\n", "hello\n")


def test_a_tool_process_returns_its_result_despite_its_prints(capfd: pytest.CaptureFixture[str]) -> None:
    outcome, _ = apart(isolated_tools.shout, text="hello")
    assert capfd.readouterr() == ("hello\n", "hello\n")
    assert (outcome.result_text and outcome.result_text.text) == "HELLO"


# covers: B32
def test_a_validation_error_keeps_class_code_and_details() -> None:
    class OwnError(ToolValidationError):
        pass

    error = OwnError("wrong", "it is wrong", {"argument": "a", "most": 7, "seen": [1]})
    outcome, _ = call(raising(error))
    assert outcome.failure == Failure(
        "validation", "OwnError", "wrong", "it is wrong", {"argument": "a", "most": "7", "seen": "[1]"}
    )


# covers: B32
def test_long_and_many_details_are_cut() -> None:
    details = {"seen": "b" * 5_000, "": "unnamed", "k" * 65: "long", "k" * 64: "kept", **{str(n): n for n in range(40)}}
    outcome, _ = call(raising(ToolValidationError("wrong", "it is wrong", details)))
    cut = there(outcome.failure).details
    assert (len(cut), len(cut["seen"]), cut["-"], cut["…"]) == (32, 4_000 - 1_024, "unnamed", "long")
    assert cut["k" * 64] == "kept"


def test_an_invalid_validation_error_is_sanitized_or_treated_as_other() -> None:
    odd, late = ToolValidationError("Not A Code", "m"), ToolValidationError("wrong", "m", {"x": object()})
    odd_outcome, late_outcome = call(raising(odd))[0], call(raising(late))[0]
    assert odd_outcome.failure == Failure("validation", "ToolValidationError", None, "m")
    late_failure = there(late_outcome.failure)
    assert (late_failure.kind, late_failure.class_) == ("other", "TypeError")
    odd.code = None  # type: ignore[assignment]
    assert Failure.of(odd).kind == "other"


@pytest.mark.parametrize("arguments", [{}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "not an identifier": 3}])
def test_arguments_that_do_not_fit_start_nothing(arguments: dict[str, Any]) -> None:
    ran: list[int] = []

    def tool(a: int, b: int) -> None:
        ran.append(a + b)

    failure = there(call(tool, **arguments)[0].failure)
    assert (failure.kind, failure.code, ran) == ("validation", "arguments_do_not_fit", [])
    assert call(tool, a=1, b=2)[0].failure is None  # the control
    assert ran == [3]


def test_built_in_functions_can_be_tools() -> None:
    assert call(functools.partial(max, 3, 5))[0].result_text == ResultText.of(5, MOST)


def test_async_tools_run_and_are_cancelled_in_time() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def quick(text: str) -> str:
        await asyncio.sleep(0)
        record_side_effect("read", id="one")
        await asyncio.to_thread(record_side_effect, "read", id="two")
        return text

    async def slow() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()

    outcome, effects = call(quick, text="hello")
    assert (there(outcome.result_text).text, [one["id"] for one in effects]) == ("hello", ["one", "two"])
    for seconds in SOON:
        assert call(slow, seconds=seconds)[0].late
        if begun.is_set():
            break
    assert cancelled.wait(60)
    assert attempt(slow, {}, 0.01, MOST, Effects()).late

    async def own_timeout() -> None:
        await asyncio.wait_for(asyncio.sleep(600), 0.01)

    own, _ = call(own_timeout)
    assert (own.late, own.failure and own.failure.class_) == (False, "TimeoutError")


def test_a_hanging_tool_times_out_and_records_no_further_effects() -> None:
    go_on, stopped = threading.Event(), threading.Event()

    def tool() -> None:
        record_side_effect("write", id="first", target="a file")
        go_on.wait(600)
        try:
            record_side_effect("write", id="second")
        except ToolStoppedError:
            stopped.set()
            raise

    for seconds in SOON:
        outcome, effects = call(tool, seconds=seconds)
        if effects:
            break
    assert (outcome.late, outcome.failure and outcome.failure.class_) == (True, "ToolTimeoutError")
    go_on.set()
    assert stopped.wait(60)
    assert effects == [{"id": "first", "class": "write", "target_digest": digest(b"a file")}]


# covers: A99.1
def test_side_effects_of_a_call_that_failed_are_all_there() -> None:
    def tool() -> NoReturn:
        record_side_effect("write", id="one", target="secret target")
        record_side_effect("network", id="one")
        record_side_effect("Odd Class", id="odd\nid")
        raise SystemExit

    outcome, effects = call(tool)
    assert outcome.failure is not None
    assert effects == [
        {"id": "one", "class": "write", "target_digest": digest(b"secret target")},
        {"id": "one.1", "class": "network"},
        {"id": "effect-2", "class": "unknown"},
    ]


def test_a_call_has_no_more_side_effects_than_can_be_recorded() -> None:
    done: list[int] = []

    def tool() -> None:
        for number in range(MOST_EFFECTS + 5):
            record_side_effect("write", id=f"n{number}")
            done.append(number)

    outcome, effects = call(tool)
    assert (len(effects), len(done)) == (MOST_EFFECTS, MOST_EFFECTS)
    assert there(outcome.failure).class_ == "ToolStoppedError"


def test_recording_a_side_effect_without_a_permit_is_refused() -> None:
    with recording(Effects()):
        record_side_effect("write", id="one")
    with refused(WorkError, "engine.permit_missing"):
        record_side_effect("write", id="one")


# In a process of its own


def test_a_process_has_its_own_group_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "quokka")
    for name, value in (("KNOWN", '"yes"'), ("SECRET_OF_THE_HOST", "null")):
        text = there(apart(isolated_tools.environment, name=name)[0].result_text).text
        assert f'"value": {value}' in text
        assert f'"pid": {threading.get_native_id()}' not in text


@pytest.mark.full
def test_a_process_that_hangs_is_killed_with_what_it_started() -> None:
    outcome, effects = apart(isolated_tools.hang, seconds=6.0, duration=60.0)
    assert (outcome.late, [one["class"] for one in effects]) == (True, ["execute", "execute"])
    assert gone(int(effects[1]["id"].removeprefix("pid-")))


def test_a_tool_process_ends_with_its_engine() -> None:
    text = f"""
import sys
sys.path[:] = {sys.path!r}
from admission_adapters.tools.effects import Effects
from admission_adapters.tools.process import in_process
from engine.model import StopSignal
from tests.adapters import isolated_tools

effects = Effects(lambda effect: print(effect["id"], flush=True))
in_process(isolated_tools.hang, {{"duration": 600.0}}, 600.0, 100, effects, {{}}, StopSignal())
"""
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as engine:
        started = [there(engine.stdout).readline().strip() for _ in range(2)]
        (tool,) = children(engine.pid)
        engine.kill()
    assert gone(tool)
    assert gone(int(started[1].removeprefix("pid-")))


def test_every_end_of_a_tool_process_is_reported() -> None:
    wrong, _ = apart(isolated_tools.invalid, value="abc")
    assert wrong.failure == Failure(
        "validation", "ToolValidationError", "wrong", "the value is wrong", {"argument": "value", "length": "3"}
    )
    left, effects = apart(isolated_tools.leave, code=0)
    assert left.failure == Failure("other", "ToolProcessError", message="the process of the tool ended by itself: 0")
    assert effects == [{"id": "before", "class": "write"}]
    loud, _ = apart(isolated_tools.quit_loudly)
    assert (loud.failure and loud.failure.class_) == "SystemExit"
    big, _ = apart(isolated_tools.large, size=5_000_000)
    assert (there(big.result_text).bytes, len(there(big.result_text).text)) == (5_000_000, MOST + LOOKED_AT)
    scribbled, _ = apart(isolated_tools.scribble)
    assert scribbled.failure is None or scribbled.failure.class_ == "ToolProcessError"


def test_a_process_without_remaining_time_times_out() -> None:
    outcome, _ = apart(isolated_tools.shout, seconds=0.0, text="hello")
    assert (outcome.late, outcome.failure and outcome.failure.class_) == (True, "ToolTimeoutError")


def test_a_process_with_oversized_output_is_a_failure() -> None:
    outcome, _ = apart(isolated_tools.flood, size=2 << 20)
    assert (outcome.failure and outcome.failure.class_) == "ToolProcessError"
    assert apart(isolated_tools.flood, size=1 << 10)[0].result_text == ResultText.of("done", MOST)  # the control


def test_the_output_limit_of_a_tool_process_is_exact() -> None:
    for most in (3, 2):
        here, there = socket.socketpair()
        with here:
            there.sendall(b"{}\n")
            there.close()
            if most == 3:
                assert list(_messages(here, time.monotonic() + 20, most)) == [{}]
                continue
            with pytest.raises(ValueError, match="too much"):
                list(_messages(here, time.monotonic() + 20, most))


def test_the_script_of_a_process_runs_when_it_is_started_and_not_when_it_is_read() -> None:
    runpy.run_path(str(_CHILD), run_name="read")
    assert apart(isolated_tools.shout, text="hello")[0].result_text == ResultText.of("HELLO", MOST)


def test_an_outcome_has_either_a_result_or_a_failure() -> None:
    given, failure = Outcome(result_text=ResultText.of("text", 9)), Outcome.failed(OSError("no"))
    for outcome in (given, failure, Outcome.too_late()):
        assert Outcome.read(outcome.plain()) == outcome
    for both in ({**given.plain(), "failure": failure.plain()["failure"]}, {**given.plain(), "result_text": None}):
        with pytest.raises(ValueError, match="neither or both"):
            Outcome.read(both)


@pytest.mark.parametrize(
    ("outcome", "decided"), [(Outcome(), SimpleNamespace()), (Outcome(result_text=ResultText.of("text", 9)), None)]
)
def test_a_missing_or_undecided_result_is_not_returned(outcome: Outcome, decided: Any) -> None:
    grant: Any = SimpleNamespace(prompt_bytes=9)
    with refused(WorkError, "engine.limit_unenforceable"):
        returned(outcome, grant, decided, "d1")


def test_a_refused_tool_reports_the_code_of_the_decisive_finding() -> None:
    findings = [SimpleNamespace(level=Level.WARN, code="first"), SimpleNamespace(level=Level.DENY, code="second")]
    for finding in findings:
        finding.requirement = "It holds"
    decision = SimpleNamespace(outcome=PolicyOutcome.DENY, findings=findings)
    answer: Any = SimpleNamespace(fault=None, decision=decision)
    error = refusal(answer)
    assert isinstance(error, ToolValidationError)
    assert error.code == "second"


def test_only_an_importable_function_runs_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in (lambda: 1, functools.partial(isolated_tools.shout, "x")):
        with refused(WorkError, "engine.tool_not_importable"):
            apart(tool)

    def own() -> None: ...

    own.__module__, own.__qualname__ = "__main__", "own"
    monkeypatch.setattr(sys.modules["__main__"], "own", own, raising=False)  # another program's main is another one
    with refused(WorkError, "engine.tool_not_importable"):
        apart(own)


def test_a_thread_reporting_at_exit_does_not_corrupt_the_result() -> None:
    for _ in range(3):
        outcome = in_process(
            isolated_tools.leave_a_thread, {"size": 5_000_000}, 20.0, 5_000_000, Effects(), {}, StopSignal()
        )
        assert (outcome.result_text and outcome.result_text.bytes) == 5_000_000


def test_a_program_exits_without_waiting_for_leftover_tool_threads() -> None:
    text = """
import asyncio, threading, time
from admission_adapters.tools.effects import Effects
from admission_adapters.tools.thread import in_thread
from engine.model import StopSignal

async def tool():
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 600) for _ in range(40)))

print(in_thread(tool, {}, 0.1, 100, Effects(), StopSignal()).late)
while (threads := sum(one.name == "tool-thread" for one in threading.enumerate())) < 32:
    time.sleep(0.01)
print(threads)
"""
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, timeout=60, check=True, text=True)
    assert ended.stdout == "True\n32\n"


def test_threads_of_an_async_tool_return_raise_and_terminate() -> None:
    def broken() -> NoReturn:
        raise OSError

    async def tool() -> list[Any]:
        free, ran = threading.Event(), list[int]()
        waiting = [asyncio.create_task(asyncio.to_thread(free.wait, 20)) for _ in range(32)]
        late = asyncio.create_task(asyncio.to_thread(ran.append, 1))
        await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        free.set()  # only now a thread could take it
        await asyncio.gather(*waiting)
        numbers = await asyncio.gather(*(asyncio.to_thread(abs, one) for one in range(100)))
        with pytest.raises(OSError):  # noqa: PT011
            await asyncio.to_thread(broken)
        assert ran == []
        return list(numbers)

    outcome, _ = call(tool)
    assert (outcome.result_text and outcome.result_text.text) == str(list(range(100)))
    for thread in threading.enumerate():
        if thread.name == "tool-thread":
            thread.join(20)
            assert not thread.is_alive()


def test_side_effects_with_equal_or_invalid_ids_are_all_recorded() -> None:
    def tool() -> None:
        for id_ in ("a", "a.2", "a", "effect-4", "no name"):
            record_side_effect("destructive" if id_ == "a.2" else "read", id=id_)

    _, effects = call(tool)
    assert [one["class"] for one in effects] == ["read", "destructive", "read", "read", "read"]
    assert len({one["id"] for one in effects}) == len(effects)


def test_side_effects_that_a_process_reports_are_recorded_in_one_form() -> None:
    effects, known = Effects(), {"id": "a", "class": "read", "target_digest": digest(b"b")}
    for stated in ("c", {"id": 1, "class": 2, "target_digest": "d"}, {**known, "more": "e"}):
        record_reported(effects, stated)
    assert effects.close() == [{"id": f"effect-{number}", "class": "unknown"} for number in (0, 1)] + [known]


def test_a_module_name_stated_by_a_tool_is_not_imported() -> None:
    def tool() -> None: ...

    tool.__module__ = "antigravity"
    with refused(WorkError, "engine.tool_not_importable"):
        apart(tool)
    assert "antigravity" not in sys.modules
