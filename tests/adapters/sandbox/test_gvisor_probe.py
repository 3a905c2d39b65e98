"""What the host sees below a gVisor, shown with processes that stand for it: it needs no runsc."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from admission_adapters.sandbox.bubblewrap import arguments
from admission_adapters.sandbox.gvisor import backend as gvisor_backend
from admission_adapters.sandbox.gvisor.probe import _DAEMONS, CHECKS, Below, _word
from admission_adapters.sandbox.probe.checks import KERNEL, REFUSED
from tests.expect import there
from tests.processes import children, gone

CHILD = (
    "import subprocess, sys\nchild = subprocess.Popen(['/bin/cat'], stdin=subprocess.PIPE, start_new_session={own})\n"
)
DEAD = "import os\nos.posix_spawn('/bin/true', ['true'], {})\nos.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)\n"
APART = "import os\nos.setsid()\n"
UP = "print(flush=True)\nsys.stdin.read()\n"


@contextmanager
def kernel(*code: str) -> Iterator[int]:
    """A process that looks like the one which carries out the calls; it ends with its children."""
    with subprocess.Popen(
        ["runsc-sandbox", "-c", "import sys\n" + "".join(code) + UP],  # noqa: S607  (the name it is known by)
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        there(process.stdout).readline()
        yield process.pid
        process.kill()


def seen(first: int, until: Callable[[Below], object]) -> Below:
    with Below(first) as below:
        while not until(below):
            time.sleep(0.005)
    return below


def looked(below: Below) -> bool:
    return bool(below.facts) and below.most > 0


@pytest.mark.parametrize(
    "code", [CHILD.format(own="True"), CHILD.format(own="False") + APART], ids=["kernel first", "child first"]
)
def test_a_process_in_a_shared_session_is_not_masked_by_another(code: str) -> None:
    """One of the two has a session of its own; the other one has ours."""
    with kernel(code) as first:
        below = seen(first, lambda found: found.most == 2 and found.facts)
    assert below.facts["outside_session"] == "shared"


def test_the_session_is_isolated_if_every_process_has_its_own() -> None:
    with kernel(APART, CHILD.format(own="True")) as first:
        below = seen(first, lambda found: found.most == 2 and found.facts)
    assert below.facts["outside_session"] == "own"


def test_a_survivor_is_reported_and_a_process_that_died_before_is_not() -> None:
    with kernel(CHILD.format(own="False"), DEAD) as first:
        below_it = children(first)
        assert len(below_it) == 2
        below = seen(first, looked)
        assert below.left() == "did"
    assert all(gone(pid) for pid in below_it)
    assert below.left() == "none"


def test_a_reused_pid_is_not_mistaken_for_a_survivor() -> None:
    with kernel() as first:
        below = seen(first, looked)
        below._seen = {(first, "1")}  # the same number, begun at another time
        assert below.left() == "none"


@pytest.mark.parametrize(("most", "word"), [(_DAEMONS, "failed:unseen"), (_DAEMONS + 1, "none")])
def test_unobserved_daemons_are_reported_as_unseen(most: int, word: str) -> None:
    below = Below(1)
    below.most = most
    assert _word(below) == word


def test_the_probe_differs_from_bubblewraps_only_in_known_acts() -> None:
    for name, checks in KERNEL.items():
        acts = {check.act for check in checks}
        if name == "capabilities":
            acts = acts - {"outside_capabilities"} | {"namespace_user"}
        assert {check.act for check in CHECKS[name]} == acts
    written = [check for check in CHECKS["files"] if check.act.endswith("_write")]
    assert {check.expected for check in written} == {REFUSED}
    assert len(written) == 4


@pytest.mark.parametrize("merged", [True, False])
def test_system_folders_keep_their_host_layout(monkeypatch: pytest.MonkeyPatch, merged: bool) -> None:  # noqa: FBT001
    """A folder is shown as one, a link as a link."""
    folder = "no-such-folder" if merged else "etc"
    monkeypatch.setattr(arguments, "SYSTEM", (folder,))
    words = gvisor_backend.outside(3, 4).decode().split("\0")

    made = {words[at + 2]: words[at + 1] for at, word in enumerate(words) if word == "--symlink"}
    folders = {words[at + 1] for at, word in enumerate(words) if word == "--dir"}
    assert made.get(f"/bundle/rootfs/{folder}") == (f"usr/{folder}" if merged else None)
    assert (f"/bundle/rootfs/{folder}" in folders) is not merged
