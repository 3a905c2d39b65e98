"""P7 and P8: many requests at once, asked of an engine in the caller's own process with its record on disk.

Against the same engine asked one by one, against a loop of opa-python-client over the same inputs,
which records nothing, and against OPA's own benchmark of the same rules.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from opa_client.opa import OpaClient

from benchmarks.bare import Bare, with_settings_of_the_engine
from benchmarks.equal_cases import await_learned
from benchmarks.measure import Bench, NotMeasuredError, Row, interleaved
from benchmarks.processes import Cost, cpu_seconds
from benchmarks.workload import POINT, as_it_comes, engine, request
from engine.drive import BATCH_ITEMS
from engine.engine import Engine
from engine.flow import Answer
from engine.model import Mode, Outcome
from engine.policy_bundle.serving import Unavailable

_REQUESTS, _CORPUS = 1_000, 20_000
"""The corpus is that of P19; the loop is asked about its first requests."""
_OPA_SECONDS = 120.0


def rows(bench: Bench, count: int = _REQUESTS) -> Iterator[Row]:
    """The rows that were asked for, from one set of rounds."""
    requests = [request(number) for number in range(count)]
    with ExitStack() as stack:
        own = stack.enter_context(engine(bench, bench.folder("bulk") / "state"))
        bare = stack.enter_context(with_settings_of_the_engine(bench, "bulk/opa"))
        documents = [answer.document for answer in _allowed(own.decide_many(POINT, requests))]
        parts: dict[str, Callable[[], Any]] = {"together": lambda: decided(lambda: own.decide_many(POINT, requests))}
        if "P7" in bench.asked:
            sharing = stack.enter_context(engine(bench, bench.scratch / "bulk" / "sharing", 8_192))
            learned, corpus = await_learned(sharing), [*as_it_comes(max(count, _CORPUS))]
            of_corpus = [answer.document for answer in own.decide_many(POINT, corpus[:count], mode=Mode.CHECK)]
            ours: dict[str, Callable[[], object]] = {
                "as it comes": lambda: sharing.decide_many(POINT, corpus[:count]),
                "corpus": lambda: deque(sharing.decide_each(POINT, corpus), maxlen=0),
            }
            for name, decide in ours.items():
                parts[name] = partial(_cost, _pid(sharing), decide, first=learned.forget)
            parts["client as it comes"] = lambda: _cost(
                bare.pid, lambda: asked_by_client(bare, of_corpus, allowed=False)
            )
            parts["one by one"] = lambda: decided(lambda: [own.decide(POINT, one) for one in requests])
            parts["client"] = lambda: asked_by_client(bare, documents)
        batch = bench.scratch / "bulk" / "batch.json"
        batch.write_text(json.dumps({"items": documents[:BATCH_ITEMS]}), encoding="utf-8")
        parts["opa bench"] = lambda: _opa_bench(bench, batch) / len(documents[:BATCH_ITEMS]) * count
        shown = partial(bench.report_round, " ".join(sorted(bench.asked & {"P7", "P8"})))
        found = [dict(zip(parts, each, strict=True)) for each in interleaved(list(parts.values()), bench.rounds, shown)]
    what = f"{count:,} requests: decide_many"
    if "P7" in bench.asked:
        faster = tuple(each["one by one"] / each["together"] for each in found)
        yield Row("P7", f"{what} ÷ own one by one, records a second", 2.5, faster, least=True)
        faster = tuple(each["client"] / each["together"] for each in found)
        yield Row("P7", f"{what} ÷ opa-python-client loop, records a second", 3.0, faster, least=True)
        for name, size, by, goal in (
            ("as it comes", count, "decide_many", None),
            ("corpus", len(corpus), "decide_each", 10.0),
        ):
            pairs = [(each["client as it comes"].each(count), each[name].each(size)) for each in found]
            title = f"  that loop ÷ {by} of the first {size:,} of a corpus, equal cases once, time of a record"
            yield Row("P7", title, goal, tuple(client.wall / ours.wall for client, ours in pairs), least=True)
            cheaper = tuple(client.cpu / ours.cpu for client, ours in pairs)
            yield Row("P7", "  processor time of that, with OPA's", None, cheaper)
            record = tuple(ours.cpu * 1e6 for _, ours in pairs)
            yield Row("P7", "  processor time of a record of it", None, record, unit="µs")
        most = tuple(each["client"] / each["opa bench"] for each in found)
        yield Row("P7", "  the most that these rules leave: opa bench ÷ that loop", None, most)
    if "P8" in bench.asked:
        yield Row("P8", f"{what} ÷ opa bench, time a record", 1.4, tuple(x["together"] / x["opa bench"] for x in found))
    microseconds = tuple(each["together"] / count * 1e6 for each in found)
    yield Row("bulk", f"{what}, microseconds a record", None, microseconds, "µs")


def decided(decide: Callable[[], Sequence[Answer]]) -> float:
    """Seconds that these decisions take, all of which must be allowed."""
    started = time.perf_counter()
    answers = decide()
    taken = time.perf_counter() - started
    _allowed(answers)
    return taken


def _cost(opa: int, decide: Callable[[], object], first: Callable[[], None] = lambda: None) -> Cost:
    """What these decisions cost this process and OPA."""
    first()
    started, used = time.perf_counter(), time.process_time() + cpu_seconds(opa)
    decide()
    return Cost(time.process_time() + cpu_seconds(opa) - used, time.perf_counter() - started)


def _pid(own: Engine) -> int:
    if isinstance(own.opa, Unavailable) or own.opa.pid is None:
        raise NotMeasuredError("the engine has no OPA")
    return own.opa.pid


def asked_by_client(bare: Bare, documents: Sequence[dict[str, Any] | None], *, allowed: bool = True) -> float:
    """Seconds that a loop of opa-python-client takes for these inputs, which must be allowed if `allowed`."""
    client = OpaClient(host="127.0.0.1", port=bare.port)
    client._session.trust_env = False  # noqa: SLF001  (a proxy of the machine is not what is measured)
    started = time.perf_counter()
    for document in documents:
        answer = client.query_rule(input_data=document, package_path="admission", rule_name="decision")
        if allowed and answer["result"]["outcome"] != Outcome.ALLOW:
            raise NotMeasuredError("the bare OPA does not allow what the engine allows")
    taken = time.perf_counter() - started
    client.close_connection()
    return taken


def _opa_bench(bench: Bench, batch: Path) -> float:
    """Seconds that one evaluation of the batch takes, by OPA's own benchmark with the engine's settings."""
    rules, values = map(str, bench.archives)
    command = [str(bench.binary.path), "bench", "--format", "json", "--input", str(batch), "-b", rules, "-b", values]
    finished = subprocess.run(
        [*command, "data.admission.decisions"],
        env={"GOGC": "400"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=_OPA_SECONDS,
    )
    if finished.returncode:
        raise NotMeasuredError(f"opa bench ended with {finished.returncode}: {finished.stderr.decode()}")
    printed = json.loads(finished.stdout)
    found: float = printed["T"] / printed["N"] / 1e9
    return found


def _allowed(answers: Sequence[Answer]) -> Sequence[Answer]:
    if refused := [answer.decision for answer in answers if answer.decision.outcome is not Outcome.ALLOW]:
        raise NotMeasuredError(f"{len(refused)} of {len(answers)} requests are not allowed: {refused[0].findings}")
    return answers
