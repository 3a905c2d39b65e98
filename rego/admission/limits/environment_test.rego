package admission.limits.environment_test

import data.admission.limits.environment
import future.keywords.not

_policy := {"environments": {"environments": {"contacts_sqlite": {
	"holds": "contacts",
	"tools": {"contacts_sqlite_get": "get"},
	"limits": {"rows": 9, "text_bytes": 10, "database_bytes": 11, "checkpoints": 2},
}}}}

_clean := {
	"environment": "contacts_sqlite",
	"digest": "sha256:aa",
	"rows": 3,
	"records": [{"id": "contacts-1", "sha256": "a", "material": {"rows": 3}}],
}

test_complete if {
	limits := environment.limits with input as _clean with data.policy as _policy
	limits == {
		"environment": "contacts_sqlite",
		"holds": "contacts",
		"bundle_digest": "sha256:aa",
		"records": [{"id": "contacts-1", "sha256": "a", "rows": 3}],
		"rows": 3,
		"tools": {"contacts_sqlite_get": "get"},
		"text_bytes": 10,
		"database_bytes": 11,
		"checkpoints": 2,
	}
}

test_incomplete if {
	every gone in [
		"environment", "digest", "rows", "records", "records/0", "records/0/id", "records/0/sha256",
		"records/0/material/rows",
	] {
		not environment.limits with input as json.remove(_clean, [gone]) with data.policy as _policy
	}
	every gone in [
		"holds", "tools", "limits", "limits/text_bytes", "limits/database_bytes", "limits/checkpoints",
	] {
		path := concat("/", ["environments/environments/contacts_sqlite", gone])
		not environment.limits with input as _clean with data.policy as json.remove(_policy, [path])
	}
}
