"""Harmless things of the host that a sandboxed program must not reach: files, sockets, a process, memory, a variable.

What a program did to them is seen here, on the host's side, and not taken from what it says.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import selectors
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

FILES = {
    "file_secret": "secret.txt",
    "file_ssh_key": "home/.ssh/id_ed25519",
    "file_cloud": "home/.aws/credentials",
    "file_browser": "home/.mozilla/firefox/profile/logins.json",
    "file_personal": "home/Documents/diary.txt",
}
"""What stands outside, by the act that reads it (A03)."""

_SEGMENT_BYTES = 4096
_CREATE, _EVERYBODY, _REMOVE = 0o3000, 0o666, 0  # IPC_CREAT | IPC_EXCL; its mode; IPC_RMID


@dataclass(slots=True)
class Victim:
    """A process to be seen, read and ended, with the secret in its environment; ends with the engine at the latest."""

    process: subprocess.Popen[bytes]

    def hurt(self, seconds: float) -> bool:
        """Whether somebody ended it; a process that was killed a moment ago gets this long to be dead."""
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
            self.folder = Path(tempfile.mkdtemp(prefix="admission-probe-", dir=shared_folder()))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
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
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
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
        segment = libc.shmget(ctypes.c_int(key), ctypes.c_size_t(_SEGMENT_BYTES), ctypes.c_int(_CREATE | _EVERYBODY))
        if segment >= 0:
            stack.callback(libc.shmctl, ctypes.c_int(segment), ctypes.c_int(_REMOVE), None)
            address = libc.shmat(ctypes.c_int(segment), None, ctypes.c_int(0))
            ctypes.memmove(address, self.secret.encode("ascii"), len(self.secret))
            libc.shmdt(ctypes.c_void_p(address))
        self.places["segment"] = key

    def _descriptor(self, stack: ExitStack) -> None:
        self.descriptor = os.open(self.folder / FILES["file_secret"], os.O_RDONLY)
        stack.callback(os.close, self.descriptor)
        os.set_inheritable(self.descriptor, True)  # noqa: FBT003  as one that somebody forgot; it must not get in

    def _listen(self, stack: ExitStack) -> None:
        stop, stopped = socket.socketpair()
        for kind, family, sort, address in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("dns", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("unix_path", socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "socket")),
            ("unix_abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0admission-{self.secret}"),
        ):
            one = stack.enter_context(socket.socket(family, sort))
            one.bind(address)
            one.settimeout(0)
            if sort == socket.SOCK_STREAM:
                one.listen()
            self._sockets[one] = kind
            if family == socket.AF_INET:
                self.places[kind] = one.getsockname()[1]
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
            for one in self._sockets:
                selector.register(one, selectors.EVENT_READ, one)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    with suppress(OSError, IndexError):
                        self._answer(key.data, self._sockets[key.data])

    def _answer(self, one: socket.socket, kind: str) -> None:
        if one.type == socket.SOCK_STREAM:
            peer, _ = one.accept()
            with peer:
                peer.settimeout(1.0)
                self.reached.add(f"{kind}:{peer.recv(64).decode('ascii', 'replace')}")
                peer.send(b"seen")
            return
        message, sender = one.recvfrom(512)
        if kind == "dns":  # header of 12 bytes, then the length of the first label
            self.reached.add(f"{kind}:{message[13 : 13 + message[12]].decode('ascii', 'replace')}")
            one.sendto(message[:2] + struct.pack(">5H", 0x8180, 1, 0, 0, 0) + message[12:], sender)
        else:
            self.reached.add(f"{kind}:{message.decode('ascii', 'replace')}")
            one.sendto(b"seen", sender)


def shared_folder(first: str = "/tmp") -> str | None:  # noqa: S108 (made with a fresh name in it)
    """A folder that every user may enter, in memory where `first` is; the one of this process may be its own."""
    folders = (first, "/tmp")  # noqa: S108
    return next((folder for folder in folders if os.access(folder, os.W_OK | os.X_OK)), None)
