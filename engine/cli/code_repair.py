"""The program of `engine code run --repair`: it reads a rejection as JSON and prints the next action.

It is a program of whoever runs the command: an ordinary child with the environment of the command, started
from an argument list without a shell. What it prints is an action like any other, and decided on.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

from engine.errors import GatherError
from engine.files import load
from engine.settings import ReadLimits

if TYPE_CHECKING:
    from engine.code.repair import Rejection, Repair

_MOST = ReadLimits().document_bytes
"""Bytes that a program may print; no action is larger."""

_LOOK_SECONDS = 0.02
"""How often to look whether it has ended."""


def repairing(command: str, seconds: float, cancel: threading.Event) -> Repair:
    """Asks the program for each next action. Raises GatherError where the command cannot be split or run."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise _broken("its command cannot be split into words", "close every quote") from error
    if not argv:
        raise _broken("its command is empty", "name a program")

    def repair(rejection: Rejection) -> Any:
        if cancel.is_set():
            return None
        sent = json.dumps(rejection.document(), ensure_ascii=False).encode("utf-8", "replace")
        try:
            printed = _asked(argv, sent, seconds, cancel)
        except subprocess.TimeoutExpired as error:
            raise _broken(f"it took more than {seconds:g} seconds", "give it more with --repair-seconds") from error
        except (OSError, ValueError) as error:
            raise _broken("it cannot be run", "check the path and that it is executable") from error
        return load(printed, "the action of the repair program", ReadLimits()).value if printed.strip() else None

    return repair


def _asked(argv: list[str], sent: bytes, seconds: float, cancel: threading.Event) -> bytes:
    """What a program printed, nothing after Ctrl-C; it is killed then, when it is late, and when it prints too much.

    Raises GatherError where it failed, subprocess.TimeoutExpired, OSError, ValueError.
    """
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as printed:
        told.write(sent)
        told.seek(0)
        with subprocess.Popen(argv, stdin=told, stdout=printed) as child:
            try:
                while child.poll() is None and not cancel.is_set() and os.fstat(printed.fileno()).st_size <= _MOST:
                    if time.monotonic() > end:
                        raise subprocess.TimeoutExpired(argv, seconds)
                    cancel.wait(_LOOK_SECONDS)
            finally:
                child.kill()
        printed.seek(0)
        said = b"" if cancel.is_set() else printed.read(_MOST + 1)
    if len(said) > _MOST:
        raise _broken(f"it printed more than {_MOST} bytes", "let it print one action and nothing else")
    if child.returncode != 0 and not cancel.is_set():
        raise _broken(f"it ended with {child.returncode}", "see what it said on standard error")
    return said


def _broken(what: str, remedy: str) -> GatherError:
    return GatherError(f"the repair program gave no action: {what}", remedy=remedy)
