"""Canaries: harmless files, sockets, a process, memory and a variable of the host that a sandbox must not reach.

The effects of a program on them are observed on the host, not taken from its output.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import selectors
import socket
import struct
import subprocess
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

FILES = {
    "file_secret": "secret.txt",
    "file_ssh_key": "home/.ssh/id_ed25519",
    "file_cloud": "home/.aws/credentials",
    "file_browser": "home/.mozilla/firefox/profile/logins.json",
    "file_personal": "home/Documents/diary.txt",
}
"""Canaries outside the sandbox, by the act that reads each (A03)."""

_SEGMENT_BYTES = 4096
_CREATE, _ALL_USERS, _REMOVE = 0o3000, 0o666, 0  # IPC_CREAT | IPC_EXCL; its mode; IPC_RMID


def as_user(user: int | None) -> dict[str, Any]:
    """How a process is started as this user, without groups; None is the user of this process."""
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


@dataclass(slots=True)
class Victim:
    """A process to be seen, read and ended, with the secret in its environment; ends with the engine at the latest."""

    process: subprocess.Popen[bytes]

    def hurt(self, seconds: float) -> bool:
        """Whether it was killed; a process that was signaled a moment ago gets this long to die."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Let it end and wait for it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()


@dataclass(slots=True)
class Canaries:
    """All canaries of one probe, as a context manager; `user` is who may reach them, None for this process itself.

    `reached` has `<kind>:<what was sent>` for everything that came in by a socket. Raises OSError.
    """

    user: int | None
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    secret_name: str = field(default_factory=lambda: f"ADMISSION_CANARY_{secrets.token_hex(4).upper()}")
    reached: set[str] = field(default_factory=set)
    folder: Path = field(init=False)
    descriptor: int = field(init=False)
    places: dict[str, object] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _sockets: dict[socket.socket, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            made = TemporaryDirectory(prefix="admission-probe-", dir=shared_folder(), ignore_cleanup_errors=True)
            self.folder = Path(stack.enter_context(made))
            self._files()
            self._segment(stack)
            self._descriptor(stack)
            os.environ[self.secret_name] = self.secret
            stack.callback(os.environ.pop, self.secret_name, None)
            self._listen(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def victim(self) -> Victim:
        """A new process to be seen and ended. Raises OSError."""
        return Victim(
            subprocess.Popen(
                ["/bin/cat"],
                env={self.secret_name: self.secret},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                **as_user(self.user),
            )
        )

    def wrote(self, token: str) -> bool:
        """Whether a file of this name was left in the folder outside."""
        return (self.folder / "open" / token).exists()

    def _files(self) -> None:
        self.folder.chmod(0o755)
        for name, path in FILES.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.secret, encoding="ascii")
            self.places[name] = str(file)
        (self.folder / "open").mkdir()
        (self.folder / "open").chmod(0o777)
        self.places["folder"] = str(self.folder / "open")

    def _segment(self, stack: ExitStack) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        key = secrets.randbelow(1 << 30) + 1
        segment = libc.shmget(ctypes.c_int(key), ctypes.c_size_t(_SEGMENT_BYTES), ctypes.c_int(_CREATE | _ALL_USERS))
        if segment >= 0:
            stack.callback(libc.shmctl, ctypes.c_int(segment), ctypes.c_int(_REMOVE), None)
            address = libc.shmat(ctypes.c_int(segment), None, ctypes.c_int(0))
            ctypes.memmove(address, self.secret.encode("ascii"), len(self.secret))
            libc.shmdt(ctypes.c_void_p(address))
        self.places["segment"] = key

    def _descriptor(self, stack: ExitStack) -> None:
        self.descriptor = os.open(self.folder / FILES["file_secret"], os.O_RDONLY)
        stack.callback(os.close, self.descriptor)
        os.set_inheritable(self.descriptor, True)  # noqa: FBT003  like a forgotten one; it must not get in

    def _listen(self, stack: ExitStack) -> None:
        stop, stopped = socket.socketpair()
        for kind, family, sort, address in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("dns", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("unix_path", socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "socket")),
            ("unix_abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0admission-{self.secret}"),
        ):
            listener = stack.enter_context(socket.socket(family, sort))
            listener.bind(address)
            listener.settimeout(0)
            if sort == socket.SOCK_STREAM:
                listener.listen()
            self._sockets[listener] = kind
            if family == socket.AF_INET:
                self.places[kind] = listener.getsockname()[1]
        (self.folder / "socket").chmod(0o777)
        self.places |= {"unix": str(self.folder / "socket"), "abstract": f"admission-{self.secret}"}
        thread = threading.Thread(target=self._serve, args=(stopped,), name="sandbox-canaries", daemon=True)
        thread.start()

        def end() -> None:
            stop.close()
            thread.join()
            stopped.close()

        stack.callback(end)

    def _serve(self, stopped: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(stopped, selectors.EVENT_READ)
            for listener in self._sockets:
                selector.register(listener, selectors.EVENT_READ, listener)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    with suppress(OSError, IndexError):
                        self._answer(key.data, self._sockets[key.data])

    def _answer(self, listener: socket.socket, kind: str) -> None:
        if listener.type == socket.SOCK_STREAM:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(1.0)
                self.reached.add(f"{kind}:{peer.recv(64).decode('ascii', 'replace')}")
                peer.send(b"seen")
            return
        message, sender = listener.recvfrom(512)
        if kind == "dns":  # header of 12 bytes, then the length of the first label
            self.reached.add(f"{kind}:{message[13 : 13 + message[12]].decode('ascii', 'replace')}")
            listener.sendto(message[:2] + struct.pack(">5H", 0x8180, 1, 0, 0, 0) + message[12:], sender)
        else:
            self.reached.add(f"{kind}:{message.decode('ascii', 'replace')}")
            listener.sendto(b"seen", sender)


def shared_folder(first: str = "/tmp") -> str | None:  # noqa: S108 (made with a fresh name in it)
    """A folder that every user may enter, in memory where `first` is; the one of this process may be its own."""
    folders = (first, "/tmp")  # noqa: S108
    return next((folder for folder in folders if os.access(folder, os.W_OK | os.X_OK)), None)


ALLOWED = "ADMISSION_ALLOWED"
"""A variable that is passed to the program on purpose."""

_SECRETS = (*FILES, "process_environment", "shared_memory", "inherited", "secret_variable")
_SENT = ("tcp", "udp", "dns", "unix_path", "unix_abstract")
_DYING_SECONDS = 5.0
"""Seconds to wait for a killed process to disappear, on a busy machine."""

_USUAL = frozenset({"PATH", "HOME", "LANG", "PWD", "PYTHONHASHSEED", ALLOWED})
"""Variables that reveal nothing about the host."""


def words_of(output: bytes) -> dict[str, str]:
    """The words that the probe program printed; ignores all other output."""
    try:
        words = json.loads(output)
    except ValueError:
        return {}
    return {str(act): str(word) for act, word in words.items()} if isinstance(words, dict) else {}


def compared(words: Mapping[str, str], token: str, canaries: Canaries, victim: Victim) -> dict[str, str]:
    """The words, corrected by the host's observations. `token` marks what this run sent and wrote."""
    observed = dict(words)
    for act in _SECRETS:
        observed[act] = _secret(words.get(act, "missing"), canaries.secret)
    for act in _SENT:
        observed[act] = _came(words.get(act, "missing"), f"{act}:{token}" in canaries.reached)
    observed["outside_write"] = _came(words.get("outside_write", "missing"), canaries.wrote(token))
    killed = words.get("process_killed", "missing")
    observed["process_killed"] = _came(killed, victim.hurt(_DYING_SECONDS if killed == "did" else 0))
    observed["variables"] = _none(set(_listed(words, "variables", "names:")) - _USUAL, words.get("variables"))
    observed["descriptors"] = _none(_listed(words, "descriptors", "fds:"), words.get("descriptors"))
    observed["host_name"] = _same(words, "host_name", os.uname().nodename, "other")
    observed["work_environment"] = _same(words, "work_environment", canaries.secret[::-1], "failed:value")
    return observed


def _secret(word: str, secret: str) -> str:
    if secret in word:
        return "did"
    return "none" if word in {"value:", "read:"} else "failed:other" if word.startswith(("value:", "read:")) else word


def _came(word: str, happened: bool) -> str:  # noqa: FBT001 (what the host saw)
    if happened:
        return "did"
    return "failed:unseen" if word == "did" else word


def _listed(words: Mapping[str, str], act: str, sort: str) -> list[str]:
    return [entry for entry in words.get(act, "").removeprefix(sort).split(",") if entry]


def _none(found: object, word: str | None) -> str:
    return "missing" if word is None else "did" if found else "none"


def _same(words: Mapping[str, str], act: str, value: str, other: str) -> str:
    word = words.get(act)
    return "missing" if word is None else "did" if word == f"value:{value}" else other
