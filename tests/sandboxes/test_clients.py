"""Ordinary clients in the sandbox: curl, git, pip and npm against a local TLS server that policy names."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.settings import Settings
from engine.shell import ShellRun
from tests.adapters.gates import AGENT
from tests.facilities import needs
from tests.sources.https import HOST, Authority
from tests.sources.world import REACHABLE, authority

__all__ = ["authority"]

pytestmark = needs("bubblewrap")


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder; what has no ending is JSON."""

    protocol_version = "HTTP/1.1"

    def guess_type(self, path: Any) -> str:
        """The type of a file."""
        return super().guess_type(path) if "." in Path(path).name else "application/json"

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Print nothing."""


@dataclass(frozen=True, slots=True)
class Site:
    """A TLS server of the files in a folder, and an engine whose policy admits it."""

    folder: Path
    url: str
    engine: Engine

    def ran(self, text: str) -> ShellRun:
        return self.engine.run_shell(text, hosts=(HOST,), context=AGENT)

    def put(self, path: str, data: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)


@pytest.fixture(scope="module")
def site(module_settings: Settings, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    server.socket = authority.context().wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    values = (
        f"networks.ports=[443, {port}]",
        f"networks.tunnels.hosts=[{HOST}]",
        REACHABLE,
    )
    try:
        with Engine(replace(module_settings, ca_file=authority.path), values=values) as engine:
            assert engine.services is not None
            context = replace(engine.services.gather_context, addresses=lambda _: ("127.0.0.1",))
            engine.services = replace(engine.services, gather_context=context)
            yield Site(folder, f"https://{HOST}:{port}", engine)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def output(run: ShellRun) -> str:
    assert run.ended is not None, run.answer
    assert run.ended.exit_code == 0, run
    assert {one.outcome for one in run.connections} == {"closed"}
    return run.ended.stdout.decode()


@pytest.mark.full
@needs("curl")
def test_curl_downloads_a_file(site: Site) -> None:
    site.put("notes.txt", b"x" * 3_000_000)
    assert output(site.ran(f"curl -sSf {site.url}/notes.txt -o notes.txt && wc -c < notes.txt")) == "3000000\n"


@pytest.mark.full
@needs("git")
def test_git_clones_a_repository(site: Site, tmp_path: Path) -> None:
    work, bare = tmp_path / "work", site.folder / "tiny.git"
    for words in (
        f"init -q {work}",
        f"-C {work} -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m one",
        f"clone -q --bare {work} {bare}",
        f"-C {bare} update-server-info",
    ):
        subprocess.run(["/usr/bin/git", *words.split()], check=True)
    assert output(site.ran(f"git clone -q {site.url}/tiny.git && git -C tiny log --format=%s")) == "one\n"


def wheel() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("tiny/__init__.py", "one = 1\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return out.getvalue()


@pytest.mark.full
@needs("system_pip")
def test_pip_installs_a_package(site: Site) -> None:
    data, name = wheel(), "tiny-1.0-py3-none-any.whl"
    site.put(f"simple/tiny/{name}", data)
    link = f'<a href="{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
    site.put("simple/tiny/index.html", f"<!DOCTYPE html><html><body>{link}</body></html>".encode())
    run = site.ran(
        f"python3 -m pip install -q --target packages --index-url {site.url}/simple/ tiny"
        " && PYTHONPATH=packages python3 -c 'import tiny; print(tiny.one)'"
    )
    assert output(run) == "1\n"


@pytest.mark.full
@needs("npm")
def test_npm_installs_a_package(site: Site) -> None:
    out = io.BytesIO()
    manifest = {"name": "tiny", "version": "1.0.0", "main": "index.js"}
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in (("package.json", json.dumps(manifest)), ("index.js", "module.exports = 1\n")):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    data = out.getvalue()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    dist = {"tarball": f"{site.url}/tiny-1.0.0.tgz", "integrity": integrity}
    row = {**manifest, "dist": dist}
    site.put("tiny-1.0.0.tgz", data)
    site.put(
        "tiny", json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": row}}).encode()
    )
    run = site.ran(
        f"npm install --silent --no-audit --no-fund --registry {site.url}/ tiny && node -p 'require(\"tiny\")'"
    )
    assert output(run) == "1\n"
