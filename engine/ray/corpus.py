"""`engine check --ray`: the rows of a corpus decided on by many workers, and the admitted ones written out.

    files ─> plan ─> units ─> workers ─> segments + admitted rows ─> join ─> manifest
             driver           Ray        the run's folder             driver

A run that is started again with the same folder decides only the units that are not whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.engine import Engine
from engine.errors import EngineError, GatherError
from engine.flow import Context
from engine.points.registry import find
from engine.ray.cluster import LOCAL, connected, failures, pool
from engine.ray.columns import POINT, Columns
from engine.ray.packages import package
from engine.ray.policy import SentPolicy
from engine.ray.units import Unit, plan
from engine.ray.worker import CorpusWorker, Job
from engine.record.bulk import Manifest, RunRecord, signer
from engine.record.model import utc_now
from engine.times import timestamp


@dataclass(frozen=True, slots=True)
class CorpusRun:
    """What became of a run: its signed manifest, and how many units were whole before it began."""

    manifest: Manifest
    reused: int


def check_corpus(  # noqa: PLR0913  (each is named)
    engine: Engine,
    paths: Sequence[str],
    columns: Columns,
    into: Path,
    *,
    address: str = LOCAL,
    workers: int | None = None,
    context: Context = Context(),  # noqa: B008  (frozen)
    now: int | None = None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
    progress: bool = False,
) -> CorpusRun:
    """Decide every row of a corpus at point `license`, as dry runs, into the folder `into`.

    The policy is that of `engine`, whose record key signs the manifest. `into` must be reached by every worker under
    the same path. `now` is in seconds since 1970 UTC; `on_progress` gets the units that are whole, and all.
    Raises EngineError.
    """
    demand_stateless(engine, POINT, context)
    record = RunRecord(into.absolute())
    record.prepare()
    policy = SentPolicy.of(engine)
    job = Job(str(record.folder), POINT, columns, policy, context, now)
    units = {unit.name(policy.revisions, job.conditions): unit for unit in plan(paths, columns, record.folder)}
    if not units:
        raise GatherError("the corpus has no rows", remedy="name files with rows")
    with record.alone():
        record.sweep()
        missing = {name: unit for name, unit in units.items() if record.whole(name) is None}
        if missing:

            def counted(done: int) -> None:
                demand_stateless(engine, POINT, context)
                on_progress(len(units) - len(missing) + done, len(units))

            with connected(address, workers, progress=progress) as count, failures():
                _decide(missing, job, min(count, len(missing)), counted)
            record.sweep()
        demand_stateless(engine, POINT, context)
        planned = {name: unit.rows for name, unit in units.items()}
        manifest = record.join(planned, signer(engine.settings.state), timestamp(utc_now()))
    return CorpusRun(manifest, len(units) - len(missing))


def _decide(missing: Mapping[str, Unit], job: Job, workers: int, on_progress: Callable[[int], None]) -> None:
    """Have the workers decide these units. Raises EngineError unless each comes back exactly once."""
    items = [{"name": name, "unit": json.dumps(asdict(unit))} for name, unit in missing.items()]
    dataset = package("ray.data").from_items(items, override_num_blocks=len(items))
    decided = pool(dataset, CorpusWorker, workers, batch_size=1, fn_constructor_kwargs={"job": job})
    returned: Counter[str] = Counter()
    for batch in decided.iter_batches(batch_size=None):
        returned.update(str(name) for name in batch["name"])
        on_progress(returned.total())
    if returned != Counter(missing.keys()):
        raise EngineError(
            f"{len(missing)} units were given to workers, but {returned.total()} were returned",
            remedy="start the run again; units that are whole are not decided again",
        )


def demand_stateless(engine: Engine, point: str, context: Context) -> None:
    """Raise EngineError where a decision needs the engine's state or its machine: workers have neither.

    A stop that applies to the caller ends the run, and so does an agreement on another policy than that of the run.
    """
    found, policy = find(point), engine.policy
    if found.act or found.pace is not None:
        raise GatherError(
            f"point `{point}` cannot be decided on in bulk",
            remedy="use a point whose requests contain everything, such as license",
        )
    if policy is not None and (policy.lookups.budgets.get(point) or policy.lookups.quotas.get(point)):
        raise EngineError(
            f"point `{point}` has a budget or quota, which workers cannot count together",
            remedy="make it unlimited in policy/budgets.yaml, or decide with one engine",
        )
    for stop in engine.in_force():
        if stop.scope == "principal":
            applies = stop.name == context.caller.principal
        else:
            applies = stop.scope != "tool" or point != POINT  # a request for a license names no tool
        if applies:
            raise EngineError(
                f"the stop `{stop.id}` applies to this run",
                remedy="see `engine stop list`; once it is lifted, start the run again with the same folder",
            )
