"""What of this machine a hostile program could harm, in a harmless copy: files, sockets, variables, a process."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from admission_adapters.sandbox.probe.canaries import as_user
from admission_adapters.sandbox.run.user import sandbox_user
from tests.adapters.sandbox.hostile.files import SECRETS
from tests.processes import alive

PYTHON = "/usr/bin/python3"
_VICTIM = """\
import ctypes, sys, time
text = ctypes.create_string_buffer(sys.argv[1].encode())
print(ctypes.addressof(text), flush=True)
while True:
    time.sleep(60)
"""


class Host:
    """One host in canaries. `told` is what programs are told, `state` changes when a canary was touched."""

    def __init__(self, stack: ExitStack) -> None:
        self.mark = f"canary-{secrets.token_hex(12)}"
        self.user = sandbox_user()
        home, scratch = (Path(tempfile.mkdtemp(prefix="hostile-", dir=place)) for place in ("/var/tmp", "/tmp"))  # noqa: S108
        for folder in (home, scratch):
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o777)
        self.home, self.scratch = home / "home", scratch
        self._shared = Path("/dev/shm") / scratch.name  # noqa: S108  (a canary)
        stack.callback(self._shared.unlink, missing_ok=True)
        self._sockets: list[socket.socket] = []
        self.told: dict[str, Any] = {"mark": self.mark, "engine": os.getpid()}
        self._plant()
        self._listen(stack)
        self._victim = self._start_victim(stack)
        self._leave_open(stack)

    def state(self) -> str:
        """A digest of all canaries and of what of the machine itself could be changed."""
        digest = hashlib.sha256(repr((os.uname().nodename, self._victim.poll(), alive(self._victim.pid))).encode())
        digest.update(Path("/proc/sys/kernel/core_pattern").read_bytes())
        for folder in (self.home, self.scratch):
            for path in sorted(folder.rglob("*")):
                found = path.lstat()
                digest.update(repr((str(path), found.st_mode, found.st_mtime_ns, found.st_nlink)).encode())
                digest.update(path.read_bytes() if path.is_file() else b"")
        digest.update(Path(self.told["shm"]).read_bytes())
        return digest.hexdigest()

    def reached(self) -> int:
        """How many connections and datagrams have come since this was asked last."""
        count = 0
        for one in self._sockets:
            with suppress(BlockingIOError):
                while True:
                    if one.type == socket.SOCK_STREAM:
                        one.accept()[0].close()
                    else:
                        one.recv(1)
                    count += 1
        return count

    def variables(self) -> dict[str, str]:
        """Variables in the environment of the process that starts programs: a secret, and paths to other code."""
        return {
            "HOSTILE_CANARY": self.mark,
            "PYTHONPATH": str(self.scratch / "modules"),
            "PYTHONSTARTUP": str(self.scratch / "modules" / "planted_on_python_path.py"),
            "HOME": str(self.home),
        }

    def _plant(self) -> None:
        text = f"{self.mark}\n"
        for name in SECRETS:
            _write(self.home / name, text)
        for name in ("loose", "owned", "authorized_keys", "open", "shm"):
            _write(self.scratch / name, text)
        _write(self.scratch / "stolen.py", f"SECRET = {self.mark!r}\n")
        shared = self._shared
        _write(shared, text)
        with sqlite3.connect(self.scratch / "data.sqlite") as data:
            data.execute("create table t as select ? as secret", (self.mark,))
        data.close()
        site = self.home / ".local" / "lib" / _version() / "site-packages"
        _write(site / "usercustomize.py", "")
        _write(site / "planted_user_package.py", "")
        _write(site / "planted.pth", "import sys; sys.planted_by_path_file = 1\n")
        _write(self.scratch / "modules" / "sitecustomize.py", "SECRET = 1\n")
        _write(self.scratch / "modules" / "planted_on_python_path.py", "")
        self.told |= {
            "home": str(self.home),
            "scratch": str(self.scratch),
            "loose": str(self.scratch / "loose"),
            "owned": str(self.scratch / "owned"),
            "keys": str(self.scratch / "authorized_keys"),
            "module": str(self.scratch / "stolen.py"),
            "database": str(self.scratch / "data.sqlite"),
            "shm": str(shared),
        }
        for path in (*self.home.parent.rglob("*"), *self.scratch.rglob("*"), self.home.parent, self.scratch, shared):
            os.chown(path, self.user.uid, self.user.gid)

    def _listen(self, stack: ExitStack) -> None:
        unix, datagrams = str(self.scratch / "listening"), str(self.scratch / "datagrams")
        abstract = f"hostile-{secrets.token_hex(8)}"
        for name, kind, family, address in (
            ("tcp", socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", 0)),
            ("tcp6", socket.SOCK_STREAM, socket.AF_INET6, ("::1", 0)),
            ("udp", socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", 0)),
            ("unix", socket.SOCK_STREAM, socket.AF_UNIX, unix),
            ("unix_datagram", socket.SOCK_DGRAM, socket.AF_UNIX, datagrams),
            ("abstract", socket.SOCK_STREAM, socket.AF_UNIX, f"\0{abstract}"),
        ):
            one = stack.enter_context(socket.socket(family, kind))
            one.bind(address)
            if kind == socket.SOCK_STREAM:
                one.listen(16)
            one.settimeout(0)
            self._sockets.append(one)
            self.told[name] = one.getsockname()[1] if isinstance(address, tuple) else address.lstrip("\0")
        for path in (unix, datagrams):
            Path(path).chmod(0o777)

    def _start_victim(self, stack: ExitStack) -> subprocess.Popen[bytes]:
        command = [PYTHON, "-I", "-S", "-c", _VICTIM, self.mark]
        process = subprocess.Popen(
            command,
            env={"HOSTILE_CANARY": self.mark},
            stdout=subprocess.PIPE,
            start_new_session=True,
            **as_user(self.user.other),
        )
        assert process.stdout is not None
        self.told |= {"victim": process.pid, "victim_group": process.pid, "address": int(process.stdout.readline())}
        stack.callback(process.stdout.close)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def _leave_open(self, stack: ExitStack) -> None:
        """Descriptors that a careless start of a process would pass on."""
        for path, flags, places in (
            (self.scratch / "open", os.O_RDWR, (10, 100, 200, 900)),
            (self.home / ".ssh", os.O_RDONLY, (10, 900)),
        ):
            number = os.open(path, flags)
            for least in places:
                place = fcntl.fcntl(number, fcntl.F_DUPFD, least)
                os.set_inheritable(place, True)  # noqa: FBT003  (it takes no keyword)
                stack.callback(os.close, place)
            os.close(number)


@contextmanager
def host() -> Iterator[Host]:
    """A host of canaries, gone with the block."""
    with ExitStack() as stack:
        yield Host(stack)


def marked(token: str) -> list[int]:
    """Every live process of this machine that was started with the token in its environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if token.encode() in (folder / "environ").read_bytes() and alive(int(folder.name)):
                    found.append(int(folder.name))
    return found


def end(token: str) -> None:
    """Kill what a positive control left behind."""
    while left := marked(token):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def as_told(told: dict[str, Any]) -> bytes:
    """The standard input of a program."""
    return json.dumps(told).encode()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _version() -> str:
    return Path(PYTHON).resolve().name
