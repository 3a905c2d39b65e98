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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.binaries import Binary
from engine.errors import DecideError, GatherError
from engine.model import Revisions
from engine.opa.packed import of_points, pack, revision, unpacked
from engine.opa.reply import DOCTOR, RULES, VALUES, Reply, bundles, complaint, down, unavailable
from engine.settings import OpaLimits

if TYPE_CHECKING:
    from engine.opa.client import Client

_SOCKET, _KEY, _LOG, _WHOLE = "opa.sock", "verification.pem", "opa.log", "whole.tar.gz"
_SIGNATURE = ("signature", "verification key", "digest mismatch", "PEM block")
"""Words of OPA's complaints about archives that are not signed, or not by this key, or changed since."""
_STOP_SECONDS = 2.0
LONGEST_BASE = 80
"""Maximum length of the parent of the private folders: a socket path has 107 bytes, and 21 are added."""
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
opa = int(sys.argv[2])
os.set_inheritable(opa, False)
os.execve(opa, sys.argv[3:], {"GOGC": "400"})
"""
"""Request SIGKILL on the parent's death, check that it has not died already, and become OPA: the open file that was
verified.
GOGC=400 raises the throughput by half, at the cost of 50 MB of memory."""


@dataclass(frozen=True, slots=True)
class Served:
    """The files for one OPA: two archives with their revisions, and the key (PEM, ES256) of signed ones.

    With `points`, OPA loads only the rules of these decision points, in a third of the time; at any other
    point it then has no decision. OPA verifies signatures itself, so archives with a key stay whole.
    """

    rules: Path
    values: Path
    revisions: Revisions
    verification_key: Path | None = None
    points: frozenset[str] | None = None

    def copy(self, folder: Path) -> Served:
        """The same files in this folder, for OPA under the names by which it reports their revisions. Raises OSError.

        The whole rules stay beside those that are loaded: their revision is proven, and another OPA starts from them.
        """
        whole = self.rules.read_bytes()  # once: what is loaded is a part of exactly what is proven
        if self.points is None or self.verification_key is not None:
            rules = folder / RULES
        else:
            rules = folder / _WHOLE
            (folder / RULES).write_bytes(_rules_of(whole, self.points))
        rules.write_bytes(whole)
        shutil.copyfile(self.values, folder / VALUES)
        if self.verification_key is not None:
            shutil.copyfile(self.verification_key, folder / _KEY)
        key = None if self.verification_key is None else folder / _KEY
        return Served(rules, folder / VALUES, self.revisions, key, self.points)


@lru_cache(maxsize=8)
def _rules_of(archive: bytes, points: frozenset[str]) -> bytes:
    """The archive without the rules that these decision points do not need; what is no archive stays as it is."""
    try:
        return pack(of_points(unpacked(archive, RULES), points))
    except GatherError:
        return archive


class Server:
    """One running OPA with one pair of archives. Use `Server.start`, then `ready`, `ask`, `close`."""

    def __init__(self, folder: Path, lock: int, served: Served, limits: OpaLimits) -> None:
        self.folder = folder
        self.served = served
        self.limits = limits
        self.alive = False
        self._closed = False
        self._refused: DecideError | None = None
        self._lock = lock
        self._bundles = bundles(served.revisions)
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Event()
        self._client: Client | None = None
        self._prober: Client | None = None

    @classmethod
    def start(
        cls,
        binary: Binary,
        served: Served,
        limits: OpaLimits,
        on_exit: Callable[[], None] = lambda: None,
    ) -> Server:
        """Verify the binary, start OPA and return at once; `ready` waits. Raises DecideError.

        With a key, OPA accepts only archives that are signed with it (ES256). `on_exit` is called from
        another thread as soon as the process has ended, for whatever reason.
        """
        try:
            folder, lock = fresh_folder()
            try:
                copied = served.copy(folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
                raise
        except OSError as error:
            raise unavailable(f"cannot make a private folder for OPA: {error.strerror}", DOCTOR) from error
        server = cls(folder, lock, copied, limits)
        try:
            threading.Thread(target=server._live, args=(binary, on_exit), name="opa", daemon=True).start()
            server._started.wait()
        except RuntimeError as error:  # no more threads
            server.close()
            raise unavailable(f"cannot start OPA: {error}", DOCTOR) from error
        except BaseException:
            server.close()
            raise
        if server._refused is not None:
            server.close()
            raise server._refused
        return server

    @property
    def pid(self) -> int | None:
        """Process id of OPA; None when it could not be started."""
        return None if self._process is None else self._process.pid

    @property
    def path(self) -> str:
        """The socket that OPA listens on."""
        return str(self.folder / _SOCKET)

    def ready(self) -> None:
        """Wait until OPA answers with exactly our revisions. Raises DecideError."""
        from engine.opa.client import Client  # as long as OPA needs to start

        deadline = time.monotonic() + self.limits.start_seconds
        served = self._revisions()
        while not self._connects():
            if not self.alive:
                raise unavailable(self._complaint(), DOCTOR)
            if time.monotonic() > deadline:
                raise unavailable("OPA was not ready in time", DOCTOR)
            time.sleep(0.005)
        if served != self.served.revisions:
            message = "the archive that OPA would load is not the one that was built: its digest differs"
            remedy = "find out who can write to the policy cache, then build the policy again"
            raise DecideError(message, remedy=remedy, code="policy_stale")
        self._client = Client(self.path, self.limits)
        self._prober = Client(self.path, self.limits, connections=1)
        self.probe(max(deadline - time.monotonic(), 0.1))

    def ask(self, rule: str, document: dict[str, Any], seconds: float | None = None) -> Reply:
        """OPA's answer, from exactly our revisions, within `seconds` if they are given. Raises DecideError."""
        if self._client is None or self._closed or not self.alive:
            raise down()
        return self.demand(self._client.ask(rule, document, seconds))

    def demand(self, reply: Reply) -> Reply:
        """This reply, if it comes from exactly our revisions. Raises DecideError."""
        return reply.demand(self._bundles)

    def probe(self, seconds: float) -> None:
        """Check on a new connection, within this many seconds, that OPA answers. Raises DecideError."""
        if self._prober is None or self._closed:
            raise down()
        self.demand(self._prober.ask("decision", {"point": ""}, seconds))

    def resident_bytes(self) -> int:
        """Resident memory of OPA in bytes; 0 if it has ended."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """End OPA at once; its folder stays until `close`."""
        if self._process is not None and os.getpid() == self._owner:
            self._process.kill()

    def close(self) -> None:
        """Stop OPA, kill it when it does not stop, and remove its folder; nothing in a forked process."""
        if os.getpid() != self._owner or self._closed:
            return
        self._closed = True
        for client in (self._client, self._prober):
            if client is not None:
                client.close()
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

    def _live(self, binary: Binary, on_exit: Callable[[], None]) -> None:
        opa = [str(binary.path), "run", "--server", "--addr", f"unix://{_SOCKET}", "--unix-socket-perm", "600"]
        opa += ["-b", RULES, "-b", VALUES, "--log-level", "error", "--skip-version-check"]
        opa += ["--set", f"server.decoding.max_length={self.limits.input_bytes}"]
        if self.served.verification_key is not None:
            opa += ["--verification-key", _KEY, "--signing-alg", "ES256"]
        try:
            with (self.folder / _LOG).open("wb") as log, binary.verified() as file:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), str(file), *opa],
                    cwd=self.folder,
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(file,),
                    start_new_session=True,
                )
            self.alive = True
            if self._closed:  # its starter was interrupted
                self._process.kill()
        except OSError:
            return
        except DecideError as error:
            self._refused = error
            return
        finally:
            self._started.set()
        self._process.wait()
        self.alive = False
        on_exit()

    def _revisions(self) -> Revisions | None:
        """The revisions of OPA's archives, computed from their content while OPA starts; None without archives."""
        try:
            rules, values = (
                revision(unpacked(path.read_bytes(), path.name), path.name)
                for path in (self.served.rules, self.served.values)
            )
        except (OSError, GatherError):
            return None
        return Revisions(rules=rules, values=values)

    def _connects(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(self.path)
            except OSError:
                return False
            return True

    def _complaint(self) -> str:
        """Why OPA ended."""
        text = ""
        with suppress(OSError):
            text = complaint((self.folder / _LOG).read_bytes())
        if self.served.verification_key is not None and any(word in text for word in _SIGNATURE):
            return f"the signature of the policy is not valid: {text}"
        return f"OPA did not start: {text or 'it ended without output'}"


def base_folder() -> Path:
    """Where this user's private folders are made, one for each running OPA."""
    return Path(tempfile.gettempdir()) / f"admission-engine-{os.getuid()}"


def private(folder: Path) -> bool:
    """Whether it is a folder, no link, of this user alone."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def fresh_folder() -> tuple[Path, int]:
    """A new private folder with a lock for the engine's lifetime; removes the folders of dead engines."""
    base = base_folder()
    base.mkdir(mode=0o700, exist_ok=True)
    if not private(base):
        raise OSError(1, f"`{base}` is not a private folder of this user")
    if len(os.fsencode(base)) > LONGEST_BASE:
        raise OSError(1, f"`{base}` is too long for a socket path, set TMPDIR to a shorter folder")
    with (base / "lock").open("ab") as shared:
        fcntl.flock(shared, fcntl.LOCK_EX)
        for folder in base.iterdir():
            if folder.is_dir() and not _alive(folder):
                shutil.rmtree(folder, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=base))
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _alive(folder: Path) -> bool:
    """Whether an engine holds the lock of this folder, or it cannot be told, such as for want of descriptors."""
    try:
        with (folder / "lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    return False
