"""The key of the remote model is in one header and found nowhere else; `engine model ask` as a user has it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import ssl
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from typer import BadParameter

from admission_adapters.llm_provider import VARIABLES
from engine.cli.code.commands import repair_variables, repairing
from engine.code.repair import Rejection
from tests.command import Command, Run, lines
from tests.conftest import ROOT
from tests.llm.server import HOST, KEY, SAID, ModelServer, completion, failed, model_serving, values, variables

RESOLVES = f"""
import socket
real = socket.getaddrinfo
def found(host, *arguments, **more):
    return real("127.0.0.1" if host == "{HOST}" else host, *arguments, **more)
socket.getaddrinfo = found
"""


@dataclass(slots=True)
class Setup:
    """A command under a policy that admits the server, on a machine where its name leads to loopback."""

    command: Command
    server: ModelServer
    folder: Path
    more: dict[str, str] = field(default_factory=dict)

    def ask(
        self, *arguments: str | Path, env: dict[str, str], stdin: str = "canary-prompt", prefix: Sequence[str] = ()
    ) -> Run:
        path = f"{self.folder}:{ROOT}:{ROOT}/adapters"
        own = [part for one in values(self.server.server.port, **self.more) for part in ("--values", one)]
        trusted = ("--ca-file", self.server.authority.path)
        return self.command(
            "model",
            "ask",
            "-",
            *trusted,
            *own,
            *arguments,
            stdin=stdin,
            env={"PYTHONPATH": path, **env},
            prefix=prefix,
        )


@pytest.fixture
def setup(command: Command, tmp_path: Path) -> Iterator[Setup]:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(RESOLVES, encoding="utf-8")
    with model_serving(tmp_path) as server:
        yield Setup(command, server, folder)


def holders(key: str) -> dict[int, str]:
    """Every other process in whose environment or arguments the key is, with its arguments."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            told = [(entry / name).read_bytes() for name in ("environ", "cmdline")]
        except OSError:
            continue
        if any(key.encode() in one for one in told):
            found[int(entry.name)] = told[1].decode("utf-8", "replace")
    return found


def files_with(key: str, folder: Path) -> list[Path]:
    """The files that contain it; other tests make and remove some in the same cache."""
    found = []
    for at, _, names in os.walk(folder):
        for path in (Path(at, name) for name in names):
            with suppress(FileNotFoundError):
                found += [path] * (key.encode() in path.read_bytes())
    return found


# covers: A04.1, A63.1, A66, A68.1-2
@pytest.mark.parametrize("by_file", [True, False], ids=["by file", "by variable"])
def test_the_key_is_in_one_header_and_nowhere_else(*, by_file: bool, setup: Setup, tmp_path: Path) -> None:
    during: list[dict[int, str]] = []
    key = f"{KEY}-{uuid4().hex}"  # other tests run at the same time

    def script(stream: ssl.SSLSocket, _: threading.Event) -> None:
        during.append(holders(key))
        stream.sendall(completion())

    setup.server.answers(failed("429 Too Many Requests", body=f"bad key {key}".encode()), script)
    setup.more["llm.retry.first_wait_ms"] = "1"
    stated = variables(setup.server, AGENT_DATA_API_KEY=key)
    file = tmp_path / "elsewhere" / ".env"
    file.parent.mkdir()
    if by_file:
        file.write_text("".join(f"{name}={text}\n" for name, text in stated.items()), encoding="utf-8")
    arguments = ("--env-file", file) if by_file else ()
    done = setup.ask(*arguments, env={} if by_file else stated, prefix=("env",))  # a process with this environment
    assert (done.code, done.stdout) == (0, f"{SAID}\n"), done.stderr
    assert done.stderr == "engine: 12 + 30 tokens, 0.0000528 USD, 1 retry\n"
    (held,) = during
    assert len(held) == (0 if by_file else 1), held  # the user gave it to the one process of the command itself
    assert all("model\0ask" in told for told in held.values())
    assert [request.count(key.encode()) for request in setup.server.requests] == [1, 1]
    file.unlink(missing_ok=True)
    assert files_with(key, tmp_path) == []
    assert files_with(key, setup.command.cache) == []
    recorded = json.dumps(lines(setup.command.state))
    assert "canary-prompt" not in recorded
    assert "throttled" in recorded


# covers: A63.1, A66.6, A68.1
def test_the_text_of_the_key_is_a_secret_wherever_it_comes_from(command: Command) -> None:
    key = uuid4().hex  # ids have this form, too
    call = json.dumps({"name": "files_write", "arguments": {"path": "/work/a", "text": f"use {key} there"}})
    told = ("tools", "call", "-i", "-", "--tool-policy", "assistant", "--profile", "coding", "--cwd", "/work")
    control = command(*told, stdin=call)
    assert "secret_in_arguments" not in control.stdout
    assert files_with(key, command.state) != []
    shutil.rmtree(command.state)
    refused = command(*told, "--principal", key, stdin=call, env={"AGENT_DATA_API_KEY": key})
    assert "secret_in_arguments" in refused.stdout
    assert key not in refused.stdout + refused.stderr
    assert files_with(key, command.state) == []


# covers: A04.1, C32.1
def test_a_repair_program_gets_ordinary_variables_and_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, KEY)
        with pytest.raises(BadParameter, match="variable of the remote model"):
            repair_variables([name])
    monkeypatch.setenv("MY_TOKEN", "secret")
    monkeypatch.setenv("NAMED", "here")
    given = repair_variables(["NAMED"])
    look = "import json, os; print(json.dumps(dict(os.environ)))"
    repair = repairing(shlex.join([sys.executable, "-c", look]), 20.0, threading.Event(), given)
    found = repair(Rejection(1, "code_timeout", "execute", [], {}))
    assert (found["NAMED"], found["PATH"]) == ("here", os.environ["PATH"])
    assert "MY_TOKEN" not in found
    assert not found.keys() & set(VARIABLES)
    with pytest.raises(BadParameter, match="NOWHERE is not set"):
        repair_variables(["NOWHERE"])


def test_a_file_of_variables_that_can_be_read_once_is_read_once(setup: Setup, tmp_path: Path) -> None:
    file = tmp_path / "pipe"
    os.mkfifo(file)
    stated = "".join(f"{name}={text}\n" for name, text in variables(setup.server).items())
    writer = threading.Thread(target=file.write_text, args=(stated,), daemon=True)
    writer.start()
    setup.server.answers(completion())
    done = setup.ask("--env-file", file, env={})
    assert (done.code, done.stdout) == (0, f"{SAID}\n"), done.stderr
    writer.join()


# covers: A04.2
def test_an_mcp_server_gets_no_variable_of_the_remote_model(command: Command) -> None:
    told = ("mcp", "proxy", "time", "--url", "https://mcp.example.com/mcp", "--secret", "X_KEY=AGENT_DATA_API_KEY")
    done = command(*told, env={"AGENT_DATA_API_KEY": KEY})
    assert (done.code, done.stdout) == (2, "")
    assert "`AGENT_DATA_API_KEY` is a variable of the remote model" in done.stderr


def test_as_shipped_no_provider_is_admitted_and_the_refusal_says_how_to_allow_one(command: Command) -> None:
    done = command("model", "ask", "-", stdin="hello", env={"OPENAI_API_KEY": KEY})
    assert done.code == 1
    assert "provider_not_admitted" in done.stdout
    assert "openai: {host: api.openai.com, port: 443" in " ".join(done.stdout.split())
    assert files_with(KEY, command.home) == []
    document = command("model", "ask", "-", "--format", "json", stdin="hello")
    assert document.code == 1
    assert (document.json["text"], document.json["error"]) == (None, "model_variable_missing")


def test_an_error_of_the_provider_is_one_word(setup: Setup) -> None:
    setup.server.answers(failed("401 Unauthorized", body=KEY.encode()))
    done = setup.ask(env=variables(setup.server))
    assert (done.code, done.stdout.splitlines()) == (
        1,
        ["no answer: key_refused (docs/remote-model.md)", "fix: check the key and what your account may ask"],
    )
    assert KEY not in done.stderr
