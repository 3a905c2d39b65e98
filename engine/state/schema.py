"""The tables of the state file, and the upgrades from earlier versions."""

from __future__ import annotations

VERSION = 8
"""`user_version` of the file. One of a later version is refused, never guessed at; an earlier one is upgraded."""

APPLICATION = 0x41454E47
"""`application_id` of the file: distinguishes it from the database of another program."""

_FIRST = """
CREATE TABLE budgets (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    window INTEGER NOT NULL CHECK (window >= 0),
    start INTEGER NOT NULL,
    used INTEGER NOT NULL CHECK (typeof(used) = 'integer' AND used >= 0),
    UNIQUE (name, key, window, start)
) STRICT;
CREATE INDEX budgets_by_end ON budgets (start + window) WHERE window > 0;
CREATE TABLE holds (
    hold TEXT NOT NULL,
    position INTEGER NOT NULL,
    budget INTEGER NOT NULL REFERENCES budgets (id),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    before INTEGER NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0 CHECK (settled IN (0, 1)),
    reserved_at INTEGER NOT NULL,
    PRIMARY KEY (hold, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_age ON holds (settled, reserved_at);
CREATE INDEX holds_by_budget ON holds (budget);
CREATE TABLE approvals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    point TEXT NOT NULL,
    input_digest TEXT NOT NULL,
    rules TEXT NOT NULL,
    "values" TEXT NOT NULL,
    requester TEXT,
    codes TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('requested', 'granted', 'refused', 'used')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    approver TEXT,
    reason TEXT,
    resolved_at INTEGER,
    decision_id TEXT,
    used_at INTEGER,
    CHECK ((state = 'requested') = (approver IS NULL)),
    CHECK ((state = 'used') = (decision_id IS NOT NULL))
) STRICT;
CREATE INDEX approvals_by_binding ON approvals (input_digest, state);
CREATE INDEX approvals_by_state ON approvals (state, number);
CREATE INDEX approvals_by_expiry ON approvals (expires_at) WHERE state = 'requested';
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    owner TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    answer TEXT,
    rules TEXT,
    "values" TEXT,
    PRIMARY KEY (scope, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (begun_at);
CREATE TABLE tokens (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    principal TEXT NOT NULL,
    points TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE TABLE probe (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO probe (id, count) VALUES (1, 0);
"""

_SECOND = """
CREATE TABLE prefixes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    cwd TEXT NOT NULL,
    tool TEXT NOT NULL,
    words TEXT NOT NULL,
    approver TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL CHECK (expires_at > created_at),
    revoked_at INTEGER
) STRICT;
CREATE INDEX prefixes_by_binding ON prefixes (principal, cwd, number);
CREATE TABLE children (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    parent TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'ended', 'cancelled', 'killed')),
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((state = 'running') = (ended_at IS NULL))
) STRICT;
CREATE INDEX children_by_parent ON children (parent, number);
"""

_THIRD = """
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    task TEXT NOT NULL,
    code_sha256 TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('begun', 'ok', 'failed')),
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((state = 'begun') = (ended_at IS NULL))
) STRICT;
CREATE INDEX attempts_by_task ON attempts (principal, task, number);
CREATE TABLE artifact_checks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sha256 TEXT NOT NULL,
    name TEXT NOT NULL CHECK (name IN ('sandbox', 'validation')),
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    ran_in TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    made_at INTEGER NOT NULL
) STRICT;
CREATE INDEX artifact_checks_by_sha256 ON artifact_checks (sha256, number);
"""

_FOURTH = """
CREATE TABLE record_heads (
    chain INTEGER NOT NULL,
    installation TEXT NOT NULL,
    segment INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    size INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (chain, installation)
) STRICT;
CREATE TABLE retention_orders (
    chain INTEGER NOT NULL,
    decision_id TEXT NOT NULL,
    keep_days INTEGER NOT NULL,
    time INTEGER NOT NULL,
    principal TEXT,
    reason TEXT,
    done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
    first INTEGER,
    last INTEGER,
    lines INTEGER,
    size INTEGER,
    PRIMARY KEY (chain, decision_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE approvals ADD COLUMN requester_via TEXT;
ALTER TABLE tokens ADD COLUMN approves TEXT NOT NULL DEFAULT '[]';
"""

_FIFTH = """
ALTER TABLE tokens ADD COLUMN audience TEXT;
ALTER TABLE tokens ADD COLUMN single_use INTEGER NOT NULL DEFAULT 0 CHECK (single_use IN (0, 1));
ALTER TABLE tokens ADD COLUMN used_at INTEGER;
CREATE TABLE stops (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL CHECK (scope IN ('all', 'tool', 'principal')),
    name TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL,
    lifted_at INTEGER,
    CHECK ((scope = 'all') = (name = ''))
) STRICT;
CREATE INDEX stops_in_force ON stops (number) WHERE lifted_at IS NULL;
CREATE TABLE agents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    specification TEXT NOT NULL,
    requester TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE INDEX agents_active ON agents (number) WHERE ended_at IS NULL;
ALTER TABLE children ADD COLUMN principal TEXT NOT NULL DEFAULT '';
CREATE TABLE memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    text TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    sensitivity TEXT NOT NULL,
    origin TEXT NOT NULL,
    origin_name TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX memories_by_owner ON memories (owner, number);
CREATE TABLE source_records (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    record TEXT NOT NULL,
    kind TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    export INTEGER NOT NULL CHECK (export IN (0, 1)),
    sensitive INTEGER NOT NULL CHECK (sensitive IN (0, 1)),
    blocks INTEGER NOT NULL,
    complete INTEGER NOT NULL DEFAULT 0 CHECK (complete IN (0, 1)),
    UNIQUE (source, record)
) STRICT;
CREATE TABLE source_blocks (
    digest INTEGER NOT NULL,
    record INTEGER NOT NULL REFERENCES source_records (number),
    PRIMARY KEY (digest, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE touches (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    hold TEXT NOT NULL,
    touched_at INTEGER NOT NULL,
    PRIMARY KEY (run, kind, hold)
) STRICT, WITHOUT ROWID;
CREATE INDEX touches_by_hold ON touches (hold);
CREATE INDEX touches_by_age ON touches (touched_at);
CREATE TABLE code_runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ok', 'stopped')),
    stop_reason TEXT NOT NULL,
    decision_id TEXT,
    result TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL CHECK (expires_at > ended_at)
) STRICT;
CREATE INDEX code_runs_by_id ON code_runs (id, owner, number);
CREATE INDEX code_runs_by_owner ON code_runs (owner, number);
CREATE INDEX code_runs_by_expiry ON code_runs (expires_at);
"""

_SIXTH = """
CREATE TABLE activations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence > 0),
    digest TEXT NOT NULL,
    author TEXT NOT NULL,
    approver TEXT NOT NULL CHECK (approver <> author),
    actor TEXT NOT NULL,
    reason TEXT,
    state TEXT NOT NULL CHECK (state IN ('proposed', 'switching', 'active', 'withdrawn')),
    proposed_at INTEGER NOT NULL,
    switched_at INTEGER,
    ended_at INTEGER,
    CHECK ((state IN ('active', 'withdrawn')) = (ended_at IS NOT NULL)),
    CHECK ((state IN ('switching', 'active')) = (switched_at IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX activations_under_way ON activations (state) WHERE state IN ('proposed', 'switching');
CREATE INDEX activations_by_state ON activations (state, number);
CREATE TABLE replicas (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    beats INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    serving TEXT,
    wanted TEXT,
    ready INTEGER NOT NULL CHECK (ready IN (0, 1)),
    fault TEXT
) STRICT, WITHOUT ROWID;
"""

_SEVENTH = """
ALTER TABLE activations ADD COLUMN left_at INTEGER;
ALTER TABLE activations ADD COLUMN left_by TEXT;
ALTER TABLE activations ADD COLUMN left_reason TEXT;
"""

_EIGHTH = """
ALTER TABLE source_records ADD COLUMN terms TEXT;
"""

_STEPS = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH)
"""What each version added, the first one first; a step that was released is never edited."""


def statements(after: int, version: int = VERSION) -> tuple[str, ...]:
    """The statements that bring a file of the version `after` to another one; 0 is an empty file."""
    added = ";".join(_STEPS[after:version])
    return tuple(
        statement for statement in map(str.strip, added.split(";")) if statement
    )  # no statement has a semicolon inside
