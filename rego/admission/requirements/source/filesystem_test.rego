package admission.requirements.source.filesystem_test

import data.admission.requirements.source.filesystem
import future.keywords.not

_policy := {"sandbox": {"filesystem": {"artifact_subdir": ["kernel", "supervised"]}}}

_boundary := {
	"backend": "artifact_directory",
	"boundary": "artifact_subdir",
	"kind": "supervised",
	"enforced": true,
	"evidence": "sha256:aa",
}

_request(boundaries) := {"bundle": {"sandbox": {"filesystem": "artifact_subdir"}}, "boundaries": boundaries}

_with(change) := _request([object.union(_boundary, change)])

_without(fact) := _request([json.remove(_boundary, [fact])])

test_isolated if {
	requests := {
		"clean": _request([]),
		"other": {"bundle": {"sandbox": {"filesystem": "host"}}},
		"null": {"bundle": {"sandbox": {"filesystem": null}}},
		"not stated": {"bundle": {"sandbox": {}}},
		"no sandbox policy": {"bundle": {}},
	}
	held := {name |
		some name, request in requests
		filesystem.isolated with input as request with data.policy as _policy
	}
	held == {"clean"}
}

test_enforced if {
	requests := {
		"supervised": _request([_boundary]),
		"kernel": _with({"kind": "kernel"}),
		"one of two": _request([object.union(_boundary, {"enforced": false}), _boundary]),
		"bounded": _with({"kind": "bounded"}),
		"unsupported": _with({"kind": "unsupported"}),
		"not enforced": _with({"enforced": false}),
		"enforced is text": _with({"enforced": "true"}),
		"kind is null": _with({"kind": null}),
		"another boundary": _with({"boundary": "network_none"}),
		"no boundary": _without("boundary"),
		"no kind": _without("kind"),
		"no enforced": _without("enforced"),
		"no backend": _without("backend"),
		"no evidence": _without("evidence"),
		"no probe": _request([]),
		"null": _request(null),
		"boundaries missing": json.remove(_request([]), ["boundaries"]),
		"filesystem missing": json.remove(_request([_boundary]), ["bundle"]),
	}
	held := {name |
		some name, request in requests
		filesystem.enforced with input as request with data.policy as _policy
	}
	held == {"supervised", "kernel", "one of two"}
}

test_values_missing if {
	request := _request([_boundary])
	every policy in [{}, {"sandbox": {}}, {"sandbox": {"filesystem": {}}}] {
		not filesystem.isolated with input as request with data.policy as policy
		not filesystem.enforced with input as request with data.policy as policy
	}
	not filesystem.enforced with input as request
		with data.policy as {"sandbox": {"filesystem": {"artifact_subdir": ["kernel"]}}}
}
