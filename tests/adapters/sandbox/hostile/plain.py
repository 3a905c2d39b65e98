"""The positive control: the same program as a plain subprocess, started without protection, by the same user.

Never as root, with canaries in place of what is worth something, with counts that end, and with limits that
keep this machine alive.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from admission_adapters.sandbox.probe.canaries import as_user
from tests.adapters.sandbox.hostile.canaries import PYTHON, Host, as_told
from tests.adapters.sandbox.hostile.model import Hostile

_NODE = "/usr/bin/node"
_SECONDS = 8.0
_LIMITS = ["/usr/bin/prlimit", "--core=0", "--cpu=6", "--fsize=67108864"]
_TERMINAL = """\
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 1)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class Plain:
    """What came of it; `code` as Popen tells it, None when its time was up."""

    code: int | None
    stdout: bytes
    stderr: bytes


def run_plain(program: Hostile, host: Host, token: str, folder: Path) -> Plain:
    """Run it in the folder. Whatever it leaves behind carries the token in its environment."""
    name = "main.py" if program.language == "python" else "main.js"
    (folder / name).write_text(program.text, encoding="utf-8")
    interpreter = [PYTHON] if program.language == "python" else [_NODE, "--jitless"]
    space = ["--as=2147483648"] if program.language == "python" else []
    (folder / name).chmod(0o600)
    leader, follower = os.openpty()
    os.set_inheritable(follower, True)  # noqa: FBT003  (it takes no keyword)
    owner = host.user
    for path in (folder, folder / name):
        os.chown(path, owner.uid, owner.gid)
    wrapped = [PYTHON, "-I", "-S", "-c", _TERMINAL, str(follower)] if program.name.startswith("terminal") else []
    told = as_told({**host.told, "outside": True, **program.outside})
    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        stdin.write(told)
        stdin.seek(0)
        process = subprocess.Popen(
            [*wrapped, *_LIMITS, *space, *interpreter, name],
            cwd=folder,
            env={**os.environ, **host.variables(), "RUN": token},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            close_fds=False,
            start_new_session=not wrapped,
            **as_user(owner.other),
        )
        os.close(follower)
        try:
            code = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.kill()
            process.wait()
            os.close(leader)
        stdout.seek(0)
        stderr.seek(0)
        return Plain(code, stdout.read(), stderr.read())
