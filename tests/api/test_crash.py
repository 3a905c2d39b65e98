"""A fault of ours: the caller learns that there was one and nothing else, the log has the stack (D44)."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

from engine.api.app import App
from engine.api.connection import Connection
from engine.api.identity import Failures, Identity
from engine.api.limits import ApiLimits
from engine.api.messages import Access, Exchange, Operation
from engine.api.metrics import Metrics
from engine.api.oplog import OperationalLog
from engine.api.origin import Site
from engine.api.peers import network_peer
from engine.engine import AsyncEngine
from engine.model import Gate
from engine.settings import Settings

SECRET = "sk-proj-Zt4Qm81LwXk2Vb7Nc3Ys9Hd5"  # noqa: S105  (a planted one)


async def _broken(_api: App, _exchange: Exchange) -> NoReturn:
    raise RuntimeError(f"secret {SECRET} in /srv/private/path")


def test_a_crash_in_a_handler_is_a_problem_without_details(settings: Settings, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    log, limits = OperationalLog(descriptor=descriptor), ApiLimits()

    async def ask() -> bytes:
        api = App(
            engine=AsyncEngine(settings),
            limits=limits,
            identity=Identity(None, Mock(any_issued=lambda: False), Failures(limits, time.monotonic)),
            metrics=Metrics(),
            log=log,
            gate=Gate(),
            site=Site(),
            routes={"/broken": {"GET": Operation("broken", _broken, Access.OPEN)}},
            uploads=tmp_path / "uploads",
        )
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(api, loop, network_peer, set()), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET /broken HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        server.close()
        return answer

    answer = asyncio.run(ask())
    log.close()
    os.close(descriptor)
    document = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (document["status"], document["code"], document["decision"]) == (500, "engine.internal", None)
    for private in (SECRET, "/srv/private", "Traceback", "test_crash.py", "RuntimeError"):
        assert private.encode() not in answer
    (crash, request) = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert "test_crash.py" in crash["stack"]
    assert SECRET not in crash["stack"]
    assert (request["status"], request["codes"]) == (500, ["engine.internal"])
