"""What looks like a stack trace, and the ordinary messages that do not."""

from __future__ import annotations

import pytest

from engine.facts.text.traces import has_trace

PYTHON = 'Traceback (most recent call last):\n  File "tool.py", line 3, in run\nValueError: x'
JAVASCRIPT = "TypeError: x is undefined\n    at run (tool.js:3:7)\n    at async main (tool.js:9:1)"
TRACES = [
    PYTHON,
    PYTHON.replace("\n", "\\n"),
    PYTHON.replace("\n", "\r"),
    'File "tool.py", line 3',
    JAVASCRIPT,
    JAVASCRIPT.replace("\n", " "),
    "Error: x\n    at tool.js:3:7",
    "Error: x\n    at Array.map (<anonymous>)",
    "java.lang.IllegalStateException: x\n\tat com.example.Tool.run(Tool.java:12)",
    "x\n\tat com.example.Tool.run(Unknown Source)",
    "x\\n\\tat com.example.Tool.run(Unknown Source)",
    "panic: x\n\ngoroutine 1 [running]:\nmain.main()",
    "System.Exception: x\n   at Tool.Run(String a) in C.cs:line 7",
    "tool.rb:3:in `run': x (RuntimeError)\n\tfrom tool.rb:9:in `<main>'",
    "tool.rb:3:in 'run'",
    "Stack trace:\n#0 tool.php(12): run()",
    "thread 'main' panicked at tool.rs:3:5",
    "stack backtrace:\n   0: run",
    "\uff34raceback (most recent call last):",
]
WORDS = [
    "",
    "the text is longer than 1000 characters",
    "the amount must be:\n  - at least 1\n  - at most 1000",
    "at least one of:\nat home (ask first)\nat work",
    "unexpected token at line 3 column 5",
    "unexpected token\nat position (3:5)",
    "meet at 10:30:00",
    "the file is not from 2026, line 3 says so",
    "invalid value at key (config.yaml:3)",
    "give the name of a thread, such as 'main'",
    "#1 name (of a person): is missing",
    'File "notes" is too long',
]


# covers: B30.1
@pytest.mark.parametrize("text", TRACES)
def test_a_stack_trace_is_found(text: str) -> None:
    assert has_trace(text)


# covers: B30.3
@pytest.mark.parametrize("text", WORDS)
def test_ordinary_messages_are_not_stack_traces(text: str) -> None:
    assert not has_trace(text)
