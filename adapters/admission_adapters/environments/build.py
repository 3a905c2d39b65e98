"""Builds an environment: one folder with its database as built, its working copy, its description and its trajectory.

The folder is filled aside and then renamed, so it is there as a whole or not at all. What a killed process
left is removed by the next build.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from admission_adapters.environments.database import TABLES, filled
from admission_adapters.files.artifacts import opened_folder
from admission_adapters.files.drafts import draft_folder
from admission_adapters.files.new_files import names_in
from admission_adapters.grants import granted, unenforceable
from engine.errors import GatherError, WorkError
from engine.model import Model, Permit, Result

BASE, CURRENT, DESCRIPTION, TRAJECTORY = "base.sqlite", "current.sqlite", "environment.json", "trajectory.jsonl"
"""The files of an environment: as built and never written again; in use; what it is; what was done to it."""

BUILT = "built"
"""The status of a build that made an environment."""

MOST_DESCRIPTION = 1 << 20
"""Bytes of a description; each record of its material is named there."""

Rows = Callable[[str], Sequence[tuple[str, ...]]]
"""The rows of a record, by the record's id."""


class BuiltRecord(Protocol):
    """One record of the material: its id, its content's SHA-256, and how many rows it becomes."""

    id: str
    sha256: str
    rows: int


class AboutRecord(Model):
    """One record that an environment was built from."""

    id: str
    sha256: str
    rows: int


class About(Model):
    """What an environment is, and from what it was built: ids and hashes, no content."""

    format: Literal[1] = 1
    environment: str
    holds: str
    decision_id: str
    source_policy_hash: str
    bundle_digest: str
    records: tuple[AboutRecord, ...]
    rows: int
    kept_until: int
    base_sha256: str
    tools: dict[str, str]
    database_bytes: int
    checkpoints: int


@runtime_checkable
class EnvironmentGrant(Protocol):
    """What is read of the limits of point `environment`."""

    environment: str  # names the folder
    holds: str  # the schema of its rows
    bundle_digest: str
    records: Sequence[BuiltRecord]  # exactly what it is built from
    rows: int
    kept_until: int  # seconds since 1970 UTC; it is not used afterwards
    tools: Mapping[str, str]  # its tools, each with its operation
    database_bytes: int  # the largest database
    checkpoints: int  # how many are held


def build_environment(into: Path, permit: Permit, input_digest: str, rows: Rows, source_policy_hash: str) -> Result:
    """Build the environment that the permit names in the folder of its name below `into`.

    `source_policy_hash` is what its manifest will state. Raises GatherError: `engine.environment_exists`; WorkError:
    `engine.permit_missing`; `engine.limit_unenforceable`; `engine.environment_not_built`; for a folder that cannot be
    written `engine.work_failed`. Then nothing of the environment is there.
    """
    grant = granted(permit, "environment", input_digest, EnvironmentGrant)
    if grant.holds not in TABLES:
        raise unenforceable("the permit names an environment that cannot be built")
    with opened_folder(into) as root:
        if grant.environment in names_in(root):
            raise _exists(grant)
        every = chain.from_iterable(rows(record.id) for record in grant.records)
        database, number = filled(grant.holds, every, grant.database_bytes)
        if number != grant.rows:
            raise WorkError("the environment has other rows than were decided on", remedy="repeat the request")
        about = About(
            environment=grant.environment,
            holds=grant.holds,
            decision_id=permit.decision_id,
            source_policy_hash=source_policy_hash,
            bundle_digest=grant.bundle_digest,
            records=tuple(AboutRecord(id=one.id, sha256=one.sha256, rows=one.rows) for one in grant.records),
            rows=grant.rows,
            kept_until=grant.kept_until,
            base_sha256=hashlib.sha256(database).hexdigest(),
            tools=dict(grant.tools),
            database_bytes=grant.database_bytes,
            checkpoints=grant.checkpoints,
        )
        return _written(root, grant, about, database)


def _written(root: int, grant: EnvironmentGrant, about: About, database: bytes) -> Result:
    with draft_folder(root) as draft:
        draft.create(BASE, (database,), grant.database_bytes)
        draft.create(CURRENT, (database,), grant.database_bytes, mode=0o600)
        draft.create(DESCRIPTION, (about.model_dump_json(indent=1).encode(), b"\n"), MOST_DESCRIPTION)
        draft.create(TRAJECTORY, (), 0, mode=0o600)
        try:
            draft.appear(grant.environment)
        except OSError as error:
            if grant.environment in names_in(root):
                raise _exists(grant) from error
            raise
    facts = {"environment": grant.environment, "rows": grant.rows, "bytes": len(database), "sha256": about.base_sha256}
    return Result(BUILT, {**facts, "records": len(grant.records)})


def _exists(grant: EnvironmentGrant) -> GatherError:
    return GatherError(
        f"there is `{grant.environment}` in this folder already; it was not changed",
        remedy="build into another folder, or remove it",
        code="engine.environment_exists",
    )
