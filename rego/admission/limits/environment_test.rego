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
	"records": [{"id": "contacts-1", "sha256": "a", "kept_until": 90, "material": {"rows": 3}}],
}

test_complete if {
	limits := environment.limits with input as _clean with data.policy as _policy
	limits == {
		"environment": "contacts_sqlite",
		"holds": "contacts",
		"bundle_digest": "sha256:aa",
		"records": [{"id": "contacts-1", "sha256": "a", "rows": 3}],
		"rows": 3,
		"kept_until": 90,
		"tools": {"contacts_sqlite_get": "get"},
		"text_bytes": 10,
		"database_bytes": 11,
		"checkpoints": 2,
	}
}

test_kept_until_the_first_day if {
	later := {"id": "contacts-2", "sha256": "b", "kept_until": 91, "material": {"rows": 0}}
	records := array.concat([later], _clean.records)
	limits := environment.limits with input as object.union(_clean, {"records": records}) with data.policy as _policy
	limits.kept_until == 90
}

test_incomplete if {
	every gone in [
		"environment", "digest", "rows", "records", "records/0", "records/0/id", "records/0/sha256",
		"records/0/kept_until", "records/0/material/rows",
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
