package admission.lib.boundary_test

import data.admission.lib.boundary
import future.keywords.not

_policy := {"sandbox": {
	"probe_max_age_seconds": 100,
	"probe_clock_skew_seconds": 60,
	"floor": {"boundaries": {"files": ["kernel", "bounded"], "cpu": ["kernel"], "time": ["unsupported"]}},
	"profiles": {"here": {
		"backend": "jail",
		"boundaries": {"files": ["kernel"], "cpu": ["kernel", "bounded"], "time": ["unsupported"]},
	}},
}}

_probe := {"id": "jail", "subject": "a", "machine": "a", "probed_at": 950, "authentic": true}

_held(name) := {"backend": "jail", "boundary": name, "kind": "kernel", "enforced": true, "evidence": "e"}

_clean := {"now": 1000, "probes": [_probe], "boundaries": [_held("files"), _held("cpu")]}

_changed(list, change) := object.union(_clean, {list: [object.union(_clean[list][0], change)]})

_cases := {
	"clean": _clean,
	"other backend": _changed("boundaries", {"backend": "process"}),
	"other boundary": _changed("boundaries", {"boundary": "network"}),
	"not enforced": _changed("boundaries", {"enforced": false}),
	"no evidence": _changed("boundaries", {"evidence": null}),
	"below the floor": _changed("boundaries", {"kind": "supervised"}),
	"below the profile": _changed("boundaries", {"kind": "bounded"}),
	"no boundaries": object.union(_clean, {"boundaries": []}),
	"other probe": _changed("probes", {"id": "process"}),
	"other machine": _changed("probes", {"subject": "b"}),
	"machine lost": _changed("probes", {"subject": null, "machine": null}),
	"forged": _changed("probes", {"authentic": false}),
	"too old": _changed("probes", {"probed_at": 899}),
	"old enough": _changed("probes", {"probed_at": 900}),
	"a moment ahead": _changed("probes", {"probed_at": 1060}),
	"from the future": _changed("probes", {"probed_at": 1061}),
	"time is text": _changed("probes", {"probed_at": "950"}),
	"no clock": json.remove(_clean, ["now"]),
	"no probes": object.union(_clean, {"probes": []}),
	"nothing": {},
}

test_proven if {
	held := {name |
		some name, case in _cases
		boundary.proven("here", "files") with input as case with data.policy as _policy
	}
	held == {"clean", "old enough", "a moment ahead"}
	boundary.proven("here", "cpu") with input as _clean with data.policy as _policy
	not boundary.proven("there", "files") with input as _clean with data.policy as _policy
	not boundary.proven("here", "network") with input as _clean with data.policy as _policy
}

test_unsupported_is_never_proven if {
	unsupported := object.union(_held("time"), {"kind": "unsupported"})
	not boundary.proven("here", "time") with input as object.union(_clean, {"boundaries": [unsupported]})
		with data.policy as _policy
}

test_values_missing if {
	every path in [
		"probe_max_age_seconds", "probe_clock_skew_seconds", "floor", "floor/boundaries", "floor/boundaries/files",
		"profiles", "profiles/here",
		"profiles/here/backend", "profiles/here/boundaries", "profiles/here/boundaries/files",
	] {
		policy := {"sandbox": json.remove(_policy.sandbox, [path])}
		not boundary.proven("here", "files") with input as _clean with data.policy as policy
	}
}

test_tried if {
	tried := {name | some name, case in _cases; boundary.probed("here") with input as case with data.policy as _policy}
	object.keys(_cases) - tried == {"other probe", "no probes", "nothing"}
	here := {name |
		some name, case in _cases
		boundary.probed_here("here") with input as case with data.policy as _policy
	}
	tried - here == {"other machine", "machine lost", "forged"}
	recently := {name |
		some name, case in _cases
		boundary.probed_recently("here") with input as case with data.policy as _policy
	}
	here - recently == {"too old", "from the future", "time is text", "no clock"}
}

test_all_needed if {
	every_one := [{"id": name} | some name in boundary.names]
	count(every_one) == 19
	boundary.all_required with input as {"required": {"boundaries": every_one}}
	not boundary.all_required with input as {"required": {"boundaries": array.slice(every_one, 1, 19)}}
	not boundary.all_required with input as {"required": {"boundaries": []}}
	not boundary.all_required with input as {}
}

test_age_and_skew_are_numbers_of_seconds if {
	every change in [{name: value} |
		some name in ["probe_max_age_seconds", "probe_clock_skew_seconds"]
		some value in ["100", null, {}]
	] {
		policy := {"sandbox": object.union(_policy.sandbox, change)}
		not boundary.proven("here", "files") with input as _clean with data.policy as policy
	}
}

test_every_word_stands_for_boundaries_there_are if {
	object.keys(boundary.boundaries_of) == {"network", "filesystem", "cpu", "memory", "processes"}
	every names in boundary.boundaries_of {
		count(names) > 0
		names - boundary.names == set()
	}
}
