"""The program of `engine code run --repair`: it reads a rejection as JSON and prints the next action.

It is a program of whoever runs the command: an ordinary child with the environment of the command, started
from an argument list without a shell. What it prints is an action like any other, and decided on.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from engine.errors import GatherError
from engine.files import load
from engine.settings import ReadLimits

if TYPE_CHECKING:
    from engine.code.repair import Rejection, Repair


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
            done = subprocess.run(argv, input=sent, stdout=subprocess.PIPE, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as error:
            raise _broken(f"it took more than {seconds:g} seconds", "give it more with --repair-seconds") from error
        except (OSError, ValueError) as error:
            raise _broken("it cannot be run", "check the path and that it is executable") from error
        if done.returncode != 0:
            raise _broken(f"it ended with {done.returncode}", "see what it said on standard error")
        if not done.stdout.strip():
            return None
        return load(done.stdout, "the action of the repair program", ReadLimits()).value

    return repair


def _broken(what: str, remedy: str) -> GatherError:
    return GatherError(f"the repair program gave no action: {what}", remedy=remedy)
