package admission.limits.source_test

import data.admission.limits.source
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_policy := {"networks": {"hosts": []}}

_clean := {"bundle": {
	"purpose": "train",
	"environment": "contacts_sqlite",
	"digest": "sha256:aa",
	"exported": false,
	"network": {"enabled": false, "allowed_hosts": [], "budget": {"max_requests": 0}, "audit_required": true},
	"sandbox": {
		"generated_code": "disabled",
		"filesystem": "artifact_subdir",
		"redaction": true,
		"network": "none",
	},
	"records": [
		{"id": "contacts-1", "content": {"sha256": _hash, "bytes": 12}},
		{"id": "contacts-2", "content": {"sha256": _hash, "bytes": 0}},
	],
}}

test_complete if {
	limits := source.limits with input as _clean with data.policy as _policy
	limits == {
		"purpose": "train",
		"environment": "contacts_sqlite",
		"bundle_digest": "sha256:aa",
		"records": [
			{"id": "contacts-1", "sha256": _hash, "bytes": 12},
			{"id": "contacts-2", "sha256": _hash, "bytes": 0},
		],
		"export": {"allowed": false},
		"network": {"enabled": false, "allowed_hosts": [], "max_requests": 0},
		"sandbox": {
			"generated_code": "disabled",
			"filesystem": "artifact_subdir",
			"redaction": true,
			"network": "none",
		},
		"audit": true,
	}
}

test_incomplete if {
	every gone in [
		"bundle",
		"bundle/purpose",
		"bundle/environment",
		"bundle/digest",
		"bundle/exported",
		"bundle/network",
		"bundle/network/enabled",
		"bundle/network/allowed_hosts",
		"bundle/network/budget",
		"bundle/network/audit_required",
		"bundle/sandbox",
		"bundle/sandbox/generated_code",
		"bundle/sandbox/filesystem",
		"bundle/sandbox/redaction",
		"bundle/sandbox/network",
		"bundle/records",
		"bundle/records/1/id",
		"bundle/records/1/content",
		"bundle/records/1/content/sha256",
		"bundle/records/1/content/bytes",
	] {
		not source.limits with input as json.remove(_clean, [gone]) with data.policy as _policy
	}
}

test_wrong_type if {
	every path in [
		"environment",
		"digest",
		"exported",
		"network",
		"network/enabled",
		"network/allowed_hosts",
		"network/budget/max_requests",
		"sandbox",
		"records",
		"records/1/id",
		"records/1/content/sha256",
		"records/1/content/bytes",
	] {
		every wrong in [null, {}] {
			changed := json.patch(_clean, [{"op": "replace", "path": concat("/", ["/bundle", path]), "value": wrong}])
			not source.limits with input as changed with data.policy as _policy
		}
	}
}

test_records_are_a_filled_list if {
	record := _clean.bundle.records[0]
	filled := json.patch(_clean, [{"op": "replace", "path": "/bundle/records", "value": [record]}])
	limits := source.limits with input as filled with data.policy as _policy
	limits.records == [{"id": "contacts-1", "sha256": _hash, "bytes": 12}]
	every wrong in [[], {"0": record}, [record, null]] {
		changed := json.patch(_clean, [{"op": "replace", "path": "/bundle/records", "value": wrong}])
		not source.limits with input as changed with data.policy as _policy
	}
}

_allowing(hosts) := json.patch(
	_clean,
	[{"op": "replace", "path": "/bundle/network/allowed_hosts", "value": hosts}],
)

test_hosts_stand_in_both_lists if {
	limits := source.limits with input as _allowing(["b.example.org", "a.example.org", null])
		with data.policy as {"networks": {"hosts": ["a.example.org", "c.example.org"]}}
	limits.network.allowed_hosts == ["a.example.org"]
	none := source.limits with input as _allowing(["a.example.org"]) with data.policy as _policy
	none.network.allowed_hosts == []
	every gone in ["networks", "networks/hosts"] {
		not source.limits with input as _clean with data.policy as json.remove(_policy, [gone])
	}
}
