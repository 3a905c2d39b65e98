"""Runs a tool in its own process; at the timeout the process and its descendants are killed.

This is not a sandbox: the process has all rights of this one, and processes in a new session escape
the kill.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from admission_adapters.lines import Lines
from admission_adapters.llm_provider import without_variables
from admission_adapters.tools.effects import Effects, ToolStoppedError, record_reported
from admission_adapters.tools.outcome import Failure, Outcome
from engine.errors import WorkError
from engine.model import StopSignal

_CHILD = Path(__file__).with_name("child.py")
_PIECE = 1 << 16
_ESCAPED = 6  # bytes that JSON makes of one: `\u0000`
_BESIDES = 1 << 20  # bytes of side effects and of an error


def in_process(
    tool: Callable[..., Any],
    arguments: Mapping[str, Any],
    seconds: float,
    most: int,
    effects: Effects,
    environment: Mapping[str, str],
    stop: StopSignal,
) -> Outcome:
    """Call the tool there and return its outcome, cut to `most` bytes. Side effects arrive as they happen.

    `environment` is the environment of the process, which gets no variable of the remote model. Raises WorkError
    `engine.tool_not_importable` for a tool that cannot be imported as a function of a module.
    """
    deadline = time.monotonic() + seconds
    module, name = _import_name(tool)
    job = {"path": sys.path, "module": module, "name": name, "arguments": arguments, "most": most, "seconds": seconds}
    here, there = socket.socketpair()
    with here:
        with there, os.fdopen(os.memfd_create("tool"), "w+b") as job_file:
            job_file.write(json.dumps(job).encode("ascii"))
            job_file.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-I", str(_CHILD), str(there.fileno())],
                stdin=job_file,
                pass_fds=(there.fileno(),),
                env=without_variables(environment),
                start_new_session=True,
            )

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        stop.then(kill)
        try:
            return _outcome_of(_messages(here, deadline, _ESCAPED * most + _BESIDES), process, effects)
        except TimeoutError:
            return Outcome.too_late()
        except Exception as error:  # noqa: BLE001  (it has begun: any error ends it)
            return Outcome.failed(error)
        finally:
            stop.forget(kill)
            kill()
            process.wait()


def _outcome_of(messages: Iterator[Any], process: subprocess.Popen[bytes], effects: Effects) -> Outcome:
    """The outcome that the process reports; side effects until then are recorded."""
    try:
        for message in messages:
            if "effect" not in message:
                return Outcome.read(message["end"])
            record_reported(effects, message["effect"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return _broken("the process of the tool did not report its outcome properly")
    except ToolStoppedError as error:
        return Outcome.failed(error)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return _broken(f"the process of the tool ended by itself: {process.returncode}")


def _broken(message: str) -> Outcome:
    return Outcome(failure=Failure("other", "ToolProcessError", message=message))


def _messages(channel: socket.socket, deadline: float, most: int) -> Iterator[Any]:
    """The messages of the process, line by line, until it ends. Raises TimeoutError; ValueError past `most` bytes."""
    lines, read = Lines(), 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)
        try:
            piece = channel.recv(_PIECE)
        except ConnectionError:
            return
        if not piece:
            return
        read += len(piece)
        if read > most:
            raise ValueError("too much")
        for line in lines.feed(piece):
            yield json.loads(line)


def _import_name(tool: Callable[..., Any]) -> tuple[str, str]:
    """The module and name by which a new process finds exactly this function."""
    module, name = str(getattr(tool, "__module__", "")), str(getattr(tool, "__qualname__", ""))
    found: Any = None
    if module != "__main__":
        with suppress(Exception):
            found = sys.modules[module]  # the tool came from there: nothing is imported for a name that it states
            for part in name.split("."):
                found = getattr(found, part)
    if found is not tool:
        raise WorkError(
            "a tool that runs in its own process must be a function of an importable module",
            remedy="move it to the top of a module, or register it without its own process",
            code="engine.tool_not_importable",
        )
    return module, name
