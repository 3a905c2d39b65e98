package admission.limits.export_test

import data.admission.limits.export
import future.keywords.not

_policy := {"export": {"treatments": {"fixture": ["fixture"]}}}

_origin := {"id": "0", "source": "s", "record": "r", "kind": "fixture", "sha256": "h", "export": true}

_sample := {"id": "1", "kind": "synthetic", "treatment": "fixture", "digest": "d", "provenance": [_origin]}

test_limits if {
	origin := {"source": "s", "record": "r", "kind": "fixture", "sha256": "h"}
	wanted := {"id": "1", "kind": "synthetic", "treatment": "fixture", "digest": "d", "provenance": [origin]}
	export.limits == {"samples": [wanted]} with input as {"samples": [_sample]} with data.policy as _policy
	untreated := export.limits with input as {"samples": [_sample]} with data.policy as {}
	untreated.samples[0].treatment == null
	every path in ["id", "kind", "digest", "provenance", "provenance/0/sha256", "provenance/0/kind"] {
		not export.limits with input as {"samples": [_sample, json.remove(_sample, [path])]} with data.policy as _policy
	}
	not export.limits with input as {"samples": []} with data.policy as _policy
	not export.limits with input as {} with data.policy as _policy
}
