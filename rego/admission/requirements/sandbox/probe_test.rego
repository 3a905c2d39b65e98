package admission.requirements.sandbox.probe_test

import data.admission.requirements.sandbox.probe
import future.keywords.not

_policy := {"sandbox": {
	"probe_max_age_seconds": 100,
	"probe_clock_skew_seconds": 60,
	"profiles": {"here": {"backend": "jail"}},
}}

_probe := {"id": "jail", "subject": "a", "machine": "a", "probed_at": 950, "authentic": true}

_request(change) := {"profile": "here", "now": 1000, "probes": [object.union(_probe, change)]}

_changes := {
	"nothing": {}, "other backend": {"id": "cell"}, "other machine": {"machine": "b"}, "forged": {"authentic": false},
	"old": {"probed_at": 1}, "no time": {"probed_at": null},
}

test_probe if {
	tried := {name |
		some name, change in _changes
		probe.tried with input as _request(change) with data.policy as _policy
	}
	tried == {"nothing", "other machine", "forged", "old", "no time"}
	here := {name |
		some name, change in _changes
		probe.made_here with input as _request(change) with data.policy as _policy
	}
	here == {"nothing", "old", "no time"}
	recent := {name |
		some name, change in _changes
		probe.recent with input as _request(change) with data.policy as _policy
	}
	recent == {"nothing"}
}

test_nothing_known if {
	not probe.tried with input as {} with data.policy as _policy
	not probe.made_here with input as {} with data.policy as _policy
	not probe.recent with input as {} with data.policy as _policy
	not probe.tried with input as _request({}) with data.policy as {}
	not probe.made_here with input as _request({}) with data.policy as {}
	not probe.recent with input as _request({}) with data.policy as {"sandbox": {"profiles": _policy.sandbox.profiles}}
}
