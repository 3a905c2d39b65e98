"""The connection to Ray: quiet, without telemetry, with a token, and never without a free processor."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from engine.documents.files import printable
from engine.errors import EngineError, GatherError, reason_of
from engine.ray.packages import package
from engine.ray.worker import fault_in

LOCAL = "local"
_OBJECT_STORE_BYTES = 150 << 20
"""For a cluster on this machine: units and their names are all that travels."""
_CONNECT_SECONDS = 5.0


@contextmanager
def connected(address: str, workers: int | None, *, progress: bool) -> Iterator[int]:
    """A connection for the block: to a cluster, or to one of this process's own (`local`); gives the workers to use.

    `workers` is their number; None uses all processors but one. `progress` shows Ray's own bars on a terminal.
    Raises GatherError, also if the workers would leave no processor for reading.
    """
    _demand_listener(address)
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        _environment(Path(folder), address, progress=progress)
        ray = package("ray")
        package("ray.data")
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        own = {}
        if address == LOCAL:
            count = workers or max((os.cpu_count() or 2) - 1, 1)
            own = {"num_cpus": count + 1, "include_dashboard": False, "_temp_dir": folder}
            own["object_store_memory"] = _OBJECT_STORE_BYTES
        try:
            ray.init(address=address, logging_level="error", log_to_driver=False, **own)
        except Exception as error:  # it raises a plain one if a node does not start in time
            raise _unreachable(address, str(error)) from error
        try:
            with redirect_stdout(sys.stderr):  # Ray prints the deaths of workers
                yield demand_processors(workers)
        finally:
            ray.shutdown()


def _demand_listener(address: str) -> None:
    """Raise GatherError at once where nothing listens at `host:port`: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            raise _unreachable(address, reason_of(error)) from error


def _unreachable(address: str, reason: str) -> GatherError:
    remedy = "check the address, RAY_AUTH_MODE and the token of the cluster, or use --ray local"
    if address == LOCAL:
        remedy = "run it again when this machine has processors and memory free"
    return GatherError(
        f"cannot connect to Ray at `{printable(address)}`: {printable(reason.partition(chr(10))[0])}", remedy=remedy
    )


def demand_processors(workers: int | None) -> int:
    """The number of workers. Raises GatherError unless the cluster has a processor for each and one more.

    Without one that is free, the tasks that read would wait for ever, and nothing would report it.
    """
    there = int(package("ray").cluster_resources().get("CPU", 0))
    count = workers or max(there - 1, 1)
    if there < count + 1:
        raise GatherError(
            f"{count} workers need {count + 1} processors of the cluster, which has {there}",
            remedy="ask for fewer workers, or add a node",
        )
    return count


@contextmanager
def failures() -> Iterator[None]:
    """Turn the errors of Ray in the block into those of the engine: the worker's own where it stated one."""
    try:
        yield
    except EngineError:
        raise
    except package("ray").exceptions.RayError as error:
        raise _failure(error) from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "ray":
            raise
        raise _failure(error) from None


def _failure(error: Exception) -> EngineError:
    text = str(error)
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return fault_in(text) or EngineError(
        f"Ray stopped the run: {lines[-1].strip()[:300]}",
        remedy="start the run again; units that are whole are not decided again",
    )


def _environment(folder: Path, address: str, *, progress: bool) -> None:
    """Settings that Ray reads when it is imported, where the user has set none."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # warns about every worker that Ray Data may start again
    if not (progress and sys.stderr.isatty()):
        os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
    if address == LOCAL and "RAY_AUTH_MODE" not in os.environ:  # else Ray writes one that others can read into HOME
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32), encoding="ascii")
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}


def pool(dataset: Any, worker: type, workers: int, **how: Any) -> Any:
    """`map_batches` with so many workers, a processor each; Ray calls what a lost one had begun again."""
    ray = package("ray.data")
    strategy = ray.ActorPoolStrategy(size=workers)
    return dataset.map_batches(worker, compute=strategy, num_cpus=1, **how)
