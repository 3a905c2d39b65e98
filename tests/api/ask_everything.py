"""Asks every operation of a generated client once. Runs in the environment of the client and imports nothing of ours.

    python ask_everything.py FOLDER ADDRESS < {operation: body}

`client` is the generated package in FOLDER. Prints {operation: [status, class of the answer, `outcome` if it has one]}.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import typing
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def main(folder: str, address: str) -> None:
    """Ask with the bodies on standard input."""
    sys.path.insert(0, folder)
    bodies = json.load(sys.stdin)
    client = importlib.import_module("client").Client(
        base_url=address, timeout=60.0, raise_on_unexpected_status=True, httpx_args={"trust_env": False}
    )
    answers = {}
    for module in _modules("client"):
        if hasattr(module, "sync_detailed"):
            name = module.__name__.rpartition(".")[2]
            reply = module.sync_detailed(client=client, **_arguments(module, bodies.get(name)))
            outcome = getattr(reply.parsed, "outcome", None)
            answers[name] = [reply.status_code, type(reply.parsed).__name__, str(outcome) if outcome else None]
    json.dump(answers, sys.stdout)


def _modules(package: str) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        yield importlib.import_module(found.name)


def _arguments(module: ModuleType, body: Any) -> dict[str, Any]:
    """The body in its class, and an id for each part of the path."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(module._get_kwargs).parameters.items():
        if name == "body":
            classes = (parameter.annotation, *typing.get_args(parameter.annotation))
            found[name] = next(one for one in classes if hasattr(one, "from_dict")).from_dict(body)
        elif parameter.default is inspect.Parameter.empty:
            found[name] = uuid.uuid4() if parameter.annotation is uuid.UUID else uuid.uuid4().hex
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
