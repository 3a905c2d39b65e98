"""gVisor, the stronger tier: the same verdicts, the same limits, the same probes, and nothing left behind.

Needs a runsc that was built; without one everything is skipped, and says so loudly.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from admission_adapters.sandbox.gvisor import backend as gvisor_backend
from admission_adapters.sandbox.gvisor.backend import Gvisor
from admission_adapters.sandbox.gvisor.probe import CHECKS, Below, probe_gvisor
from admission_adapters.sandbox.model import Bounds, RunResult, Status
from admission_adapters.sandbox.probe.rows import REQUESTED
from admission_adapters.sandbox.run.process import NOTHING, run_in, run_once
from admission_adapters.sandbox.run.recipe import Setup
from admission_adapters.sandbox.run.start import start
from engine.errors import WorkError
from engine.settings import Settings
from tests.adapters.sandbox.programs import BOUNDS, bounds, inhabitants, namespace_of, program
from tests.adapters.sandbox.test_root_and_user import ORDINARY, elsewhere
from tests.facilities import needs

FOLDER = Settings().cache / "sandbox"
GVISOR = Gvisor(FOLDER)

pytestmark = needs("gvisor")

SPIN = "while True: pass"
SLEEP = "import time; time.sleep(600)"
DAEMONS = """
import os, signal, time
for _ in range(5):
    if not os.fork():
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
        time.sleep(600)
print("left", flush=True)
"""


def ran(code: str, *, within: Bounds = BOUNDS, without: frozenset[str] = NOTHING, **fields: object) -> RunResult:
    return run_once(program(code, **fields), within, None, without, recipe=Gvisor(FOLDER))


def test_a_program_sees_the_same_environment_as_in_bubblewrap() -> None:
    ended = ran(
        "import json, os, sys\n"
        "print(json.dumps([sys.stdin.read(), os.getuid(), sorted(os.environ), sys.argv, os.listdir()]))",
        environment={"GIVEN": "1"},
    )

    assert (ended.status, ended.exit_code, ended.stderr) == (Status.OK, 0, b"")
    assert ended.stdout == b'["{}", 65534, ["GIVEN", "HOME", "LANG", "PATH"], ["main.py"], ["main.py"]]\n'


# covers: A86.1
def test_the_hash_seed_takes_effect_and_two_runs_agree() -> None:
    code = "print(hash('admission'))"
    one, two, other = (ran(code, environment={"PYTHONHASHSEED": seed}).stdout for seed in ("7", "7", "8"))

    assert one == two != other


@pytest.mark.parametrize(
    ("code", "within", "status", "number"),
    [
        ("raise SystemExit(3)", {}, Status.RUNTIME_ERROR, None),
        ("1 / 0", {}, Status.RUNTIME_ERROR, None),
        ("import os; os.abort()", {}, Status.SIGNAL, 6),
        ("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)", {}, Status.FORBIDDEN_SYSCALL, 31),
        (SPIN, {"cpu_seconds": 1, "wall_seconds": 600.0}, Status.TIMEOUT_CPU, 24),
        (SLEEP, {"wall_seconds": 0.5}, Status.TIMEOUT_WALL, 9),
        ("while True: print('x' * 999)", {}, Status.OUTPUT_LIMIT, 9),
        ("import sys\nwhile True: sys.stderr.write('x' * 999)", {}, Status.OUTPUT_LIMIT, 9),
    ],
    ids=["exit", "error", "signal", "forbidden", "cpu", "wall", "stdout", "stderr"],
)
def test_each_kind_of_end_has_its_status(
    code: str, within: dict[str, float], status: Status, number: int | None
) -> None:
    ended = ran(code, within=bounds(**within))

    assert (ended.status, ended.signal) == (status, number)
    assert len(ended.stdout) <= BOUNDS.stdout_bytes
    assert len(ended.stderr) <= BOUNDS.stderr_bytes
    if status is Status.OUTPUT_LIMIT:
        assert ended.limit is not None
        assert len(getattr(ended, ended.limit)) == getattr(BOUNDS, f"{ended.limit}_bytes")


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("open('/proc/self/mem')", "FileNotFoundError"),
        ("open('main.py', 'w')", "PermissionError"),
        ("open('/usr/x', 'w')", "OSError"),
        ("open('/x', 'w')", "PermissionError"),
        ("import socket; socket.socket()", "PermissionError"),
        ("bytearray(1 << 30)", "MemoryError"),
        ("import os\nwhile True:\n if not os.fork(): os.pause()", "BlockingIOError"),
        ("kept = []\nwhile True: kept.append(open('/dev/null'))", "OSError"),
        ("open('big', 'wb').write(bytes(9 << 20))", "OSError"),
        ("for n in range(40): open(str(n), 'wb').write(bytes(1 << 20))", "OSError"),
    ],
    ids=["host", "memory", "program", "usr", "root", "socket", "memory_limit", "forks", "opens", "file", "disk"],
)
def test_forbidden_or_excessive_operations_fail(code: str, refused: str) -> None:
    ended = ran(code)

    assert ended.status is Status.RUNTIME_ERROR
    assert refused.encode() in ended.stderr or b"Error" in ended.stderr.splitlines()[-1]


def test_a_call_killed_by_the_filter_is_answered_without_it() -> None:
    """Positive control: without it, the call that was killed for is answered."""
    code = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"

    assert ran(code).status is Status.FORBIDDEN_SYSCALL
    assert ran(code, without=frozenset({"seccomp"})).stdout == b"0\n"


@pytest.mark.parametrize("code", [DAEMONS, DAEMONS + SLEEP], ids=["at_exit", "at_kill"])
def test_no_process_outlives_the_answer(code: str) -> None:
    for _ in range(5):
        given = program(code)
        sandbox = start(Setup(bounds(wall_seconds=2.0), given.environment), Gvisor(FOLDER))
        namespace = namespace_of(sandbox.child)
        with Below(sandbox.child) as below:
            ended = run_in(sandbox, given)

        assert (inhabitants(namespace), below.left()) == ([], "none")
        assert ended.stdout == b"left\n"
        assert below.most > 1  # it was seen while it lived


@pytest.mark.parametrize("files", [0, 4], ids=["no files", "files"])
@pytest.mark.parametrize(
    "child",
    ["os.setsid(); time.sleep(600)", "os.closerange(0, 3); time.sleep(600)", "os.fork(); time.sleep(600)", "pass"],
    ids=["other session", "closed streams", "two generations", "dead already"],
)
def test_a_child_left_behind_ends_with_its_program(child: str, files: int) -> None:
    code = f"import os, time\nopen('kept', 'w') if {files} == 0 else open('artifacts/kept', 'w')\n"
    code += f"if not os.fork():\n    {child}\n    os._exit(0)\nprint('ended')"
    ended = ran(code, within=bounds(artifact_files=files, artifact_bytes=1024))

    assert (ended.status, ended.exit_code, ended.stdout) == (Status.OK, 0, b"ended\n")
    assert [one.path for one in ended.artifacts] == (["kept"] if files else [])


def test_a_cancelled_run_ends_at_once() -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()

    assert GVISOR.run(program(SLEEP), BOUNDS, cancel).status is Status.CANCELLED


def test_links_and_oversized_artifacts_are_refused() -> None:
    code = """
import os
open("artifacts/table.csv", "w").write("a,b\\n")
os.symlink("/etc/passwd", "artifacts/link")
open("artifacts/large", "wb").write(bytes(2000))
"""
    ended = ran(code, within=bounds(artifact_files=3, artifact_bytes=1000))

    assert [(one.path, one.data) for one in ended.artifacts] == [("table.csv", b"a,b\n")]
    assert len(ended.refused_artifacts) == 2


@needs("root")
def test_an_ordinary_user_can_run_gvisor(shared: Path) -> None:
    def work() -> None:
        ended = Gvisor(shared).run(program("import os; print(os.getuid())"), BOUNDS)
        assert (ended.status, ended.stdout) == (Status.OK, b"65534\n"), ended

    assert elsewhere(work, as_user=ORDINARY) == ""


@pytest.fixture
def shared() -> Iterator[Path]:
    """The binary where every user may read it."""
    with tempfile.TemporaryDirectory(prefix="gvisor-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        for name in ("runsc", "runsc.json"):
            shutil.copy(FOLDER / name, folder)
        yield Path(folder)


def test_an_unsupported_language_or_invalid_environment_is_refused() -> None:
    with pytest.raises(WorkError, match="no sandbox runs the language `wasm`"):
        GVISOR.run(program(language="wasm"), BOUNDS)
    with pytest.raises(WorkError, match="environment"):
        GVISOR.run(program("print(1)", environment={"A=B": "1"}), BOUNDS)


def test_the_outer_sandbox_mounts_only_system_programs() -> None:
    """The outer layer: what even gVisor's own kernel could reach."""
    words = gvisor_backend.outside(3, 4).decode().split("\0")
    bound = [words[index + 1] for index, word in enumerate(words) if word in {"--ro-bind", "--bind"}]

    assert set(bound) <= {"/usr", "/lib", "/lib64", "/bin"}
    assert "--bind" not in words
    assert {"--unshare-net", "--unshare-pid", "--unshare-user", "--die-with-parent"} <= set(words)


# covers: A94.1 C58 C60
@pytest.mark.full
def test_the_probe_proves_every_boundary() -> None:
    rows = probe_gvisor(FOLDER)
    assert [row.boundary for row in rows] == list(REQUESTED)
    assert {row.boundary: [act.name for act in row.red] for row in rows if not row.enforced} == {}
    kinds = {row.boundary: row.kind for row in rows}
    assert {kinds[name] for name in CHECKS if name != "cpu"} == {"kernel"}
    assert kinds["output"] == kinds["time"] == "supervised"
    assert [row.evidence for row in rows] == [row.evidence for row in probe_gvisor(FOLDER)]
