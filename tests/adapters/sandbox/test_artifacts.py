"""Files come out only through `artifacts/`, and only as what they are."""

from __future__ import annotations

import hashlib

import pytest

from admission_adapters.sandbox.model import Artifact, RefusedArtifact, Status
from admission_adapters.sandbox.run.report import TOO_MANY, Report
from tests.adapters.sandbox.programs import bounds, ran
from tests.facilities import needs

WITH = bounds(artifact_files=4, artifact_bytes=1 << 20)


def artifact(path: str, data: bytes) -> Artifact:
    return Artifact(path, data, hashlib.sha256(data).hexdigest())


# covers: C62
@needs("bubblewrap")
def test_files_come_out_with_their_hashes() -> None:
    code = """
import os
os.chdir("artifacts")
os.mkdir("deep")
open("deep/ü b", "wb").write(bytes(range(256)) * 1000)
open("-rf", "w").write("an option")
open("empty", "w")
print("done")
"""
    ended = ran(code, within=WITH)
    assert (ended.status, ended.stdout, ended.refused_artifacts) == (Status.OK, b"done\n", ())
    assert ended.artifacts == (
        artifact("-rf", b"an option"),
        artifact("deep/ü b", bytes(range(256)) * 1000),
        artifact("empty", b""),
    )


@needs("bubblewrap")
def test_without_an_artifact_limit_no_file_is_returned() -> None:
    ended = ran("import os; print(os.path.exists('artifacts')); os.mkdir('artifacts'); open('artifacts/a', 'w')")
    assert (ended.stdout, ended.artifacts, ended.refused_artifacts) == (b"False\n", (), ())


@needs("bubblewrap")
def test_links_pipes_and_odd_names_are_refused() -> None:
    code = r"""
import os, socket
os.chdir("artifacts")
open("kept", "w").write("kept")
os.symlink("/usr/bin/python3", "link")
os.symlink("..", "up")
open("twice", "w").write("x"); os.link("twice", "hard")
open("../outside", "w").write("x"); os.link("../outside", "shared")
open(b"\xff\xfe", "w"); open("line\nbreak", "w"); open("back\\slash", "w")
open("closed", "w"); os.chmod("closed", 0)
os.mkdir("shut"); open("shut/inside", "w"); os.chmod("shut", 0)
deep = "/".join("d" * 32)
os.makedirs(deep); open(deep + "/file", "w")
for make in (os.mkfifo, os.mknod):
    try: make("made")
    except OSError as error: print(error.errno)
"""
    ended = ran(code, within=bounds(artifact_files=40, artifact_bytes=1 << 20))
    assert (ended.status, ended.stdout) == (Status.OK, b"1\n1\n")
    assert [one.path for one in ended.artifacts] == ["kept"]
    assert {one.path for one in ended.refused_artifacts} == {
        *("link", "up", "twice", "hard", "shared", "closed", "shut", "/".join("d" * 32)),
        *("\\\\xff\\\\xfe", "line\\nbreak", "back\\\\slash"),
    }
    why = {one.path: one.reason for one in ended.refused_artifacts}
    assert (why["link"], why["up"], why["shared"]) == (*["not_a_regular_file"] * 2, "more_than_one_name")
    assert (why["closed"], why["shut"], why["/".join("d" * 32)]) == (*["unreadable"] * 2, "folder_too_deep")
    assert why["line\\nbreak"] == "name_not_plain"


@needs("bubblewrap")
def test_excess_and_oversized_artifacts_are_refused_and_counted() -> None:
    many = "for n in range(7): open(f'artifacts/{n}', 'w').write(str(n))"
    ended = ran(many, within=WITH)
    assert [one.path for one in ended.artifacts] == ["0", "1", "2", "3"]
    assert ended.refused_artifacts == tuple(RefusedArtifact(name, "too_many_files") for name in "456")
    large = "open('artifacts/a', 'wb').write(b'x' * (1 << 20)); open('artifacts/b', 'w').write('y')"
    ended = ran(large, within=WITH)
    assert ([one.path for one in ended.artifacts], ended.refused_artifacts) == (
        ["a"],
        (RefusedArtifact("b", "too_many_bytes"),),
    )
    sparse = "import os; os.truncate(os.open('artifacts/a', os.O_CREAT | os.O_WRONLY), 8 << 20)"
    assert ran(sparse, within=WITH).refused_artifacts == (RefusedArtifact("a", "too_many_bytes"),)
    more = ran("for n in range(150): open(f'artifacts/{n:03}', 'w')", within=WITH).refused_artifacts
    assert len(more) == 101
    assert more[-1] == RefusedArtifact("(46 more)", "not_named")
    flood = "for n in range(5000): open(f'artifacts/{n}', 'w')"
    ended = ran(flood, within=WITH)
    assert (ended.artifacts, ended.refused_artifacts) == ((), (TOO_MANY,))


@needs("bubblewrap")
def test_a_process_that_still_writes_is_dead_before_the_files_are_read() -> None:
    code = """
import os
opened, tell = os.pipe()
if not os.fork():
    os.setsid()
    with open("artifacts/live", "ab", buffering=0) as file:
        os.write(tell, b"x")
        while True: file.write(b"y" * 100)
os.read(opened, 1)
"""
    ended = ran(code, within=WITH)
    assert ended.status is Status.OK
    assert {one.path for one in ended.artifacts} | {one.path for one in ended.refused_artifacts} == {"live"}


@needs("bubblewrap")
@pytest.mark.parametrize(
    "code",
    [
        "import os; os.kill(os.getppid(), 9)",
        "import os, time; os.kill(os.getppid(), 9); time.sleep(60)",
        "import os; os.rename('artifacts', 'a'); os.mkdir('artifacts'); open('artifacts/forged', 'w').write('x')",
        "import os; os.symlink('/usr', 'x'); os.rmdir('artifacts'); os.symlink('/usr/bin', 'artifacts')",
        "import os\nfor fd in range(3, 200):\n    try: os.write(fd, b'F 1 1\\nax')\n    except OSError: pass",
        "import os, signal; [os.kill(os.getppid(), n) for n in (1, 2, 3, 10, 12, 13, 15, 17)]",
    ],
)
def test_a_program_that_tampers_with_the_artifact_folder_leaves_no_file(code: str) -> None:
    ended = ran(code, within=WITH)
    assert ended.artifacts == ()
    assert ended.status in {Status.OK, Status.SIGNAL}
    assert ended.status is Status.OK or ended.signal == 9


@needs("bubblewrap")
def test_a_program_that_stops_the_launcher_at_any_moment_gets_no_sandbox_error() -> None:
    code = """
import os, signal, time
main, launcher = os.getpid(), os.getppid()
if not os.fork():
    os.setsid()
    while True:
        os.kill(launcher, signal.SIGSTOP)
        try:
            os.kill(main, 0)
        except ProcessLookupError:  # the launcher has waited for it, and goes no further
            time.sleep(600)
        os.kill(launcher, signal.SIGCONT)
        sum(range({turns}))
time.sleep(0.02)
os._exit(0)
"""
    for number in range(8):
        ended = ran(code.replace("{turns}", str(500 * number)), within=bounds(artifact_files=1, wall_seconds=0.4))
        assert ended.status in {Status.OK, Status.TIMEOUT_WALL}


@needs("bubblewrap")
def test_a_timed_out_program_returns_no_artifacts() -> None:
    ended = ran(
        "open('artifacts/a', 'w').write('x')\nwhile True: pass",
        within=bounds(artifact_files=1, artifact_bytes=9, wall_seconds=0.4),
    )
    assert (ended.status, ended.artifacts) == (Status.TIMEOUT_WALL, ())
    assert ended.refused_artifacts == (RefusedArtifact("(all files)", "not_handed_out"),)


def test_a_report_is_parsed_byte_by_byte() -> None:
    whole = b"E 768 1500\nF 3 2\na/bhiX 1 kind\nxZ\n"
    report = Report(WITH)
    for at in range(len(whole)):
        assert not report.complete
        report.feed(whole[at : at + 1])
    assert (report.complete, report.broken) == (True, False)
    assert (report.wait_status, report.cpu_seconds) == (768, 0.0015)
    assert (report.artifacts, report.refused) == (
        [artifact("a/b", b"hi")],
        [RefusedArtifact("x", "not_a_regular_file")],
    )


@pytest.mark.parametrize(
    "said",
    [
        b"Z\n",
        b"F 1 1\nax",
        b"E 0 0 \n",
        b"E -1 0\n",
        b"E 0 0\nE 0 0\n",
        b"E 0 0\nF 1 1\nax" + b"F 1 1\nbx" * 4,
        b"E 0 0\nF 1 99999999\n",
        b"E 0 0\nX 1 other\nx",
        b"E 0 0\nF 0 1\n",
        b"E 0 0\nF 2 1\n..x",
        b"E 0 0\nF 2 1\n/ax",
        b"E 0 0\nF 4 1\na//bx",
        b"E 0 0\nF 1 1\n\xffx",
        b"E 0 0\nF 1 1\n\nx",
        b"E 0 0\nF 1 1\n\\x",
        b"E 0 0\nX 999\n",
        b"E 0 0\nQ\n",
        b"E 0 0\nZ\nmore",
        b"E" * 64,
        b"\n",
        b"E 0 0\n\n",
        b"E 0 0\nF 4 1\na/..x",
        b"E 0 0\nF 1001 1\n",
        b"E 0 0\nF 1 1048577\n",
        b"E 0 0\nF 1 1048576\na" + b"x" * (1 << 20) + b"F 1 1\n",
        b"E 0 0\n" + b"F 1 0\na" * 4 + b"F 1 0\n",
        b"E 0 0\nX 0 kind\n",
        b"E 0 0\nX 1001 kind\n",
        b"E 0 0\n" + b"X 1 kind\na" * 100 + b"X 1 kind\n",
        b"E 0 0\nO\nF 1 1\n",
        b"E 0 0\n" + b"X 1\na" * 101,
    ],
)
def test_a_report_out_of_order_is_broken(said: bytes) -> None:
    report = Report(WITH)
    report.feed(said)
    assert report.broken


@pytest.mark.parametrize(
    ("said", "artifacts", "refused"),
    [
        (b"F 1 2\nahi", [artifact("a", b"hi")], []),
        (b"F 1 0\na" * 4, [artifact("a", b"")] * 4, []),
        (b"F 255 1048576\n" + b"a" * 255 + b"x" * (1 << 20), [artifact("a" * 255, b"x" * (1 << 20))], []),
        (b"X 255 kind\n" + b"a" * 255, [], [RefusedArtifact("a" * 255, "not_a_regular_file")]),
        (b"X 1 size\na" * 100, [], [RefusedArtifact("a", "too_many_bytes")] * 100),
        (b"F 1 2\nahiO\n", [], [TOO_MANY]),
        (b"M 12\n", [], [RefusedArtifact("(12 more)", "not_named")]),
        (b"F 1 2\nah", [], []),
        (b"X 2 kind\na", [], []),
        (b"F" * 63, [], []),
    ],
)
def test_a_report_is_read_up_to_its_bounds(
    said: bytes, artifacts: list[Artifact], refused: list[RefusedArtifact]
) -> None:
    report = Report(WITH)
    report.feed(b"E 0 0\n" + said)
    assert (report.broken, report.complete, report.wait_status) == (False, False, 0)
    assert (report.artifacts, report.refused) == (artifacts, refused)


def test_a_report_without_artifacts_is_complete_after_its_first_line() -> None:
    for files, complete in ((0, True), (1, False)):
        report = Report(bounds(artifact_files=files))
        report.feed(b"E 0 0\n")
        assert report.complete is complete
