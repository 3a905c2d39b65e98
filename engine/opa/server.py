"""The bundled OPA as a private process: it starts, proves its revisions, answers, and dies with us.

It listens on a socket (0600) in a fresh folder (0700), has an empty environment and no network
need. The kernel kills it when the thread that started it ends (PR_SET_PDEATHSIG), so that thread
lives as long as OPA does. Folders of engines that were killed are swept by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import DecideError
from engine.model import Revisions
from engine.opa.binary import Binary
from engine.settings import OpaLimits

if TYPE_CHECKING:
    from engine.opa.client import Client, Reply

RULES, VALUES = "rules.tar.gz", "values.tar.gz"
_SOCKET = "opa.sock"
_DOCTOR = "run `engine doctor` to see what this machine lacks"
_STOP_SECONDS = 2.0
LONGEST_BASE = 80
"""Bytes of the folder that holds the private folders: a socket path has 107, 21 are added below it."""
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execve(sys.argv[2], sys.argv[2:], {"GOGC": "400"})
"""
"""Ask for SIGKILL on the parent's death, make sure it has not died already, become OPA.
GOGC=400 is worth half again the throughput for 50 MB of memory."""


class Server:
    """One running OPA with one pair of archives. Use `Server.start`, then `ask`, then `close`."""

    def __init__(self, folder: Path, lock: int, revisions: Revisions, limits: OpaLimits) -> None:
        self.folder = folder
        self._lock = lock
        self._limits = limits
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Event()
        self._client: Client | None = None
        self.revisions = revisions

    @classmethod
    def start(cls, binary: Binary, rules: Path, values: Path, revisions: Revisions, limits: OpaLimits) -> Server:
        """Start OPA and return at once; `ready` waits. Raises DecideError."""
        try:
            folder, lock = _fresh_folder()
            try:
                shutil.copyfile(rules, folder / RULES)
                shutil.copyfile(values, folder / VALUES)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
                raise
        except OSError as error:
            raise DecideError(
                f"cannot make a private folder for OPA: {error.strerror}", remedy=_DOCTOR, code="engine.opa_start"
            ) from error
        server = cls(folder, lock, revisions, limits)
        threading.Thread(target=server._live, args=(binary,), name="opa", daemon=True).start()
        server._started.wait()
        return server

    @property
    def pid(self) -> int | None:
        """Process id of OPA; None when it could not be started."""
        return None if self._process is None else self._process.pid

    def ready(self) -> None:
        """Wait until OPA answers with exactly our revisions. Raises DecideError."""
        from engine.opa.client import Client  # takes as long as OPA takes to start

        deadline = time.monotonic() + self._limits.start_seconds
        while not self._connects():
            if self._process is None or self._process.poll() is not None:
                raise DecideError(f"OPA did not start: {self._complaint()}", remedy=_DOCTOR, code="engine.opa_start")
            if time.monotonic() > deadline:
                raise DecideError("OPA was not ready in time", remedy=_DOCTOR, code="engine.opa_start")
            time.sleep(0.005)
        self._client = Client(str(self.folder / _SOCKET), self._limits)
        self._ask(self._client, "decision", {"point": ""}, max(deadline - time.monotonic(), 0.1))

    def ask(self, rule: str, document: dict[str, Any]) -> Reply:
        """OPA's answer, from exactly our revisions. Raises DecideError."""
        if self._client is None:
            raise DecideError("OPA is not running", remedy=_DOCTOR)
        return self._ask(self._client, rule, document, None)

    def _ask(self, client: Client, rule: str, document: dict[str, Any], seconds: float | None) -> Reply:
        reply = client.ask(rule, document, seconds)
        if (reply.revision(RULES), reply.revision(VALUES)) != (self.revisions.rules, self.revisions.values):
            raise DecideError(
                "OPA answers from another policy than the one expected", remedy=_DOCTOR, code="engine.revision_mismatch"
            )
        return reply

    def close(self) -> None:
        """Stop OPA, kill it when it does not stop, and remove its folder; nothing in a forked process."""
        if os.getpid() != self._owner:
            return
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._process is not None:
            for number, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, None)):
                try:
                    self._process.send_signal(number)
                    self._process.wait(seconds)
                    break
                except subprocess.TimeoutExpired:
                    continue
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _live(self, binary: Binary) -> None:
        opa = [str(binary.path), "run", "--server", "--addr", f"unix://{_SOCKET}", "--unix-socket-perm", "600"]
        opa += ["-b", RULES, "-b", VALUES, "--log-level", "error", "--skip-version-check"]
        opa += ["--set", f"server.decoding.max_length={self._limits.input_bytes}"]
        try:
            with (self.folder / "opa.log").open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *opa],
                    cwd=self.folder,
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError:
            return
        finally:
            self._started.set()
        self._process.wait()

    def _connects(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(self.folder / _SOCKET))
            except OSError:
                return False
            return True

    def _complaint(self) -> str:
        try:
            text = (self.folder / "opa.log").read_bytes()[-400:].decode("utf-8", "replace")
        except OSError:
            text = ""
        return " ".join(text.split()) or "it ended without a word"


def base_folder() -> Path:
    """Where this user's private folders are made, one for each running OPA."""
    return Path(tempfile.gettempdir()) / f"admission-engine-{os.getuid()}"


def private(folder: Path) -> bool:
    """Whether it is a folder, no link, of this user and of nobody else."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _fresh_folder() -> tuple[Path, int]:
    """A new private folder and its lock, held while its engine lives; sweeps the folders of dead ones."""
    base = base_folder()
    base.mkdir(mode=0o700, exist_ok=True)
    if not private(base):
        raise OSError(1, f"`{base}` is not a private folder of this user")
    if len(os.fsencode(base)) > LONGEST_BASE:
        raise OSError(1, f"`{base}` is too long for a socket path, set TMPDIR to a shorter folder")
    with _locked(base / "lock"):
        for folder in base.iterdir():
            if folder.is_dir() and not _alive(folder):
                shutil.rmtree(folder, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=base))
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _alive(folder: Path) -> bool:
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False
