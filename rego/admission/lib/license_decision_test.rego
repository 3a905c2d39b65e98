package admission.lib.license_decision_test

import data.admission.lib.license_decision
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_other := "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

_accepted := {"sha256": _hash, "decision": "accepted", "decided_at": 100}

_refused := {"sha256": _hash, "decision": "incompatible", "decided_at": 200}

_stale := {"sha256": _other, "decision": "incompatible", "decided_at": 100}

_material(decisions) := {"content": {"sha256": _hash}, "license": {"decisions": decisions}}

_materials := {
	"accepted": _material([_accepted]),
	"accepted, another content refused": _material([_accepted, _stale]),
	"refused": _material([_refused]),
	"accepted and refused": _material([_accepted, _refused]),
	"accepted twice": _material([_accepted, _accepted]),
	"another content": _material([object.union(_accepted, {"sha256": _other})]),
	"refusal lost its hash": _material([_accepted, json.remove(_refused, ["sha256"])]),
	"refusal has an empty hash": _material([_accepted, object.union(_refused, {"sha256": ""})]),
	"refusal lost its word": _material([_accepted, json.remove(_stale, ["decision"])]),
	"refusal lost its time": _material([_accepted, json.remove(_stale, ["decided_at"])]),
	"refusal has time 0": _material([_accepted, object.union(_stale, {"decided_at": 0})]),
	"time 0": _material([object.union(_accepted, {"decided_at": 0})]),
	"refusal is null": _material([_accepted, null]),
	"none": _material([]),
	"decisions are null": _material(null),
	"no decisions": {"content": {"sha256": _hash}, "license": {}},
	"no license": {"content": {"sha256": _hash}},
	"no content": {"license": {"decisions": [_accepted]}},
	"no hash": {"content": {}, "license": {"decisions": [_accepted]}},
	"nothing": {},
}

_for_this_content := {
	"accepted",
	"accepted, another content refused",
	"refused",
	"accepted and refused",
	"accepted twice",
	"refusal lost its hash",
	"refusal has an empty hash",
	"refusal lost its word",
	"refusal lost its time",
	"refusal has time 0",
	"time 0",
	"refusal is null",
}

test_present if {
	{name | some name, material in _materials; license_decision.present(material)} == _for_this_content
}

test_complete if {
	incomplete := {
		"refusal lost its hash", "refusal has an empty hash", "refusal lost its word", "refusal lost its time",
		"refusal has time 0", "time 0", "refusal is null", "none",
		"decisions are null", "no decisions", "no license", "nothing",
	}
	{name | some name, material in _materials; not license_decision.complete(material)} == incomplete
}

test_single if {
	single := {"accepted", "accepted, another content refused", "refused"}
	{name | some name, material in _materials; license_decision.single(material)} == single
}

test_every_decision_in if {
	accepted := _for_this_content - {"refused", "accepted and refused"}
	{name | some name, material in _materials; license_decision.every_decision_in(material, {"accepted"})} == accepted
}

test_taken_by if {
	taken_by := {now: names |
		some now in [99, 100, 200]
		names := {name | some name, material in _materials; license_decision.taken_by(material, now)}
	}
	late := {"refused", "accepted and refused"}
	taken := _for_this_content - {"time 0"}
	taken_by == {99: set(), 100: taken - late, 200: taken}
}

test_taken_by_clock_missing if not license_decision.taken_by(_material([_accepted]), {}.now)

test_a_time_is_a_number if {
	# regal ignore:var-shadows-builtin
	every time in ["2026-11-21", {}, true] {
		not license_decision.complete(_material([object.union(_accepted, {"decided_at": time})]))
	}
}

test_taken_by_clock_of_wrong_type if {
	every now in [null, true, "", [], {}] { not license_decision.taken_by(_material([_accepted]), now) }
}
