PRAGMA application_id = 1095061063;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
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
INSERT INTO "approvals" VALUES(1,'11111111111111111111111111111111','source','sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','sha256:1111111111111111111111111111111111111111111111111111111111111111','sha256:2222222222222222222222222222222222222222222222222222222222222222','pipeline','["license_review_required", "second"]','granted',1800000000,1800003600,'user:lee','seen the contract',1800000000,NULL,NULL);
INSERT INTO "approvals" VALUES(2,'902bd2c122d4416d92b44c7788e3f909','source','sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','sha256:1111111111111111111111111111111111111111111111111111111111111111','sha256:2222222222222222222222222222222222222222222222222222222222222222','another','["license_review_required", "second"]','requested',1800000000,1800003600,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE budgets (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    window INTEGER NOT NULL CHECK (window >= 0),
    start INTEGER NOT NULL,
    used INTEGER NOT NULL CHECK (typeof(used) = 'integer' AND used >= 0),
    UNIQUE (name, key, window, start)
) STRICT;
INSERT INTO "budgets" VALUES(1,'n','k',60,1800000000,7);
INSERT INTO "budgets" VALUES(2,'all','',0,0,1);
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
INSERT INTO "holds" VALUES('open hold',0,1,4,3,0,1800000000);
INSERT INTO "holds" VALUES('settled hold',0,1,1,0,1,1800000000);
INSERT INTO "holds" VALUES('settled hold',1,2,1,0,1,1800000000);
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
INSERT INTO "idempotency" VALUES('scope','done','body','d80477aca8cd57d4a0090d26258173dd',1800000000,'answer','r','v');
INSERT INTO "idempotency" VALUES('scope','pending','body','d80477aca8cd57d4a0090d26258173dd',1800000000,NULL,NULL,NULL);
CREATE TABLE probe (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO "probe" VALUES(1,1);
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
INSERT INTO "tokens" VALUES(1,'8a674a45',X'E0DBAC1D92F6A49F5A3050C938C293D5EBC7D830AF98D2A1D44F542A8729D509','pipeline','["source"]',1800000000,1800000009,NULL);
CREATE INDEX budgets_by_end ON budgets (start + window) WHERE window > 0;
CREATE INDEX holds_by_age ON holds (settled, reserved_at);
CREATE INDEX holds_by_budget ON holds (budget);
CREATE INDEX approvals_by_binding ON approvals (input_digest, state);
CREATE INDEX approvals_by_state ON approvals (state, number);
CREATE INDEX approvals_by_expiry ON approvals (expires_at) WHERE state = 'requested';
CREATE INDEX idempotency_by_age ON idempotency (begun_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('approvals',2);
INSERT INTO "sqlite_sequence" VALUES('tokens',1);
COMMIT;
