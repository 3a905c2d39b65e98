"""wrk, the load generator: how many answers a second over so many connections, and how long they took."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Bench, NotMeasuredError

_GRACE_SECONDS = 30.0
_INSTALL_SECONDS = 300.0
_SCRIPT = """
local file = io.open(os.getenv("BENCH_BODY"), "rb")
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()

function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('\\n{"requests":%d,"microseconds":%d,"failed":%d,"p50":%d,"p99":%d}\\n',
    summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run found; times in seconds."""

    requests: int
    seconds: float
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Wrk:
    """wrk on this machine. Made by `find`."""

    path: str
    script: Path

    @classmethod
    def find(cls, bench: Bench) -> Wrk:
        """wrk, installed first where it is missing and may be. Raises NotMeasuredError."""
        if shutil.which("wrk") is None:
            bench.report("installing wrk")
            subprocess.run(
                [bench.root / "scripts" / "apt-install", "wrk"],
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=_INSTALL_SECONDS,
            )
        path = shutil.which("wrk")
        if path is None:
            raise NotMeasuredError("wrk is missing and cannot be installed here; run: sudo apt-get install wrk")
        script = bench.scratch / "post.lua"
        script.write_text(_SCRIPT, encoding="utf-8")
        return cls(path, script)

    def post(self, url: str, body: Path, connections: int, seconds: float) -> Load:
        """POST the body again and again for so many seconds; NotMeasuredError unless every answer is 2xx."""
        duration = max(round(seconds), 1)
        finished = subprocess.run(
            [self.path, "-t1", f"-c{connections}", f"-d{duration}s", "--timeout", "20s", "-s", self.script, url],
            env={"BENCH_BODY": str(body)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=duration + _GRACE_SECONDS,
        )
        if finished.returncode:
            raise NotMeasuredError(f"wrk ended with {finished.returncode}: {finished.stderr.decode()}")
        printed = json.loads(finished.stdout.splitlines()[-1])
        if printed["failed"] or not printed["requests"]:
            raise NotMeasuredError(f"{printed['failed']} of {printed['requests']} answers of {url} failed")
        return Load(printed["requests"], printed["microseconds"] / 1e6, printed["p50"] / 1e6, printed["p99"] / 1e6)
