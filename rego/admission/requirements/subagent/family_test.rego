package admission.requirements.subagent.family_test

import data.admission.requirements.subagent.family
import future.keywords.not

_starting := {"operation": "spawn", "conversation": "c-1", "child": {"stated": false}, "children": []}

_own := {"id": "k", "role": "child", "parent": "c-1", "state": "running", "user": "bob", "asking": "bob"}

_attending := {
	"operation": "poll",
	"conversation": "c-1",
	"child": {"stated": true, "id_valid": true, "id": "k"},
	"children": [_own],
}

_children(children) := object.union(_attending, {"children": children})

_requests := {
	"starts": _starting,
	"runs": object.union(_starting, {"operation": "run"}),
	"attends": _attending,
	"cancels": object.union(_attending, {"operation": "cancel"}),
	"kills": object.union(_attending, {"operation": "kill"}),
	"starts a stated one": object.union(_attending, {"operation": "spawn"}),
	"attends none": object.union(_starting, {"operation": "poll"}),
	"no UUID": object.union(_attending, {"child": {"id_valid": false}}),
	"no word on the UUID": object.union(_starting, {"operation": "poll", "child": {"stated": true, "id": "k"}}),
	"no word on the child": json.remove(_attending, ["child/stated"]),
	"no child": json.remove(_attending, ["child"]),
	"other operation": object.union(_attending, {"operation": "read"}),
	"no operation": json.remove(_attending, ["operation"]),
	"another conversation": object.union(_attending, {"conversation": "c-2"}),
	"unknown": _children([]),
	"no list": json.remove(_attending, ["children"]),
	"another child": _children([object.union(_own, {"id": "l"})]),
	"itself": _children([object.union(_own, {"role": "self"})]),
	"no parent": _children([json.remove(_own, ["parent"])]),
	"parent and conversation are null": object.union(_attending, {
		"conversation": null,
		"children": [object.union(_own, {"parent": null})],
	}),
	"parent and conversation are empty": object.union(_attending, {
		"conversation": "",
		"children": [object.union(_own, {"parent": ""})],
	}),
}

test_child_named if {
	held := {name | some name, request in _requests; family.child_named with input as request}
	refused := {
		"starts a stated one", "attends none", "no UUID", "no word on the UUID", "no word on the child", "no child",
		"other operation", "no operation",
	}
	held == object.keys(_requests) - refused
}

test_not_nested if {
	pairs := {[operation, role] |
		some operation in ["spawn", "run", "poll", "cancel", "kill", "other"]
		some role in ["self", "child", "", null]
		family.not_nested({"id": "k", "role": role}) with input as {"operation": operation}
	}
	attending := {[operation, role] | some operation in ["poll", "cancel", "kill"]; some role in ["self", "child"]}
	pairs == attending | {["spawn", "child"], ["run", "child"]}
	not family.not_nested({"id": "k"}) with input as {"operation": "spawn"}
	not family.not_nested({"id": "k", "role": "child"}) with input as {}
}

test_parent_asks if {
	held := {name | some name, request in _requests; family.parent_asks with input as request}
	held == {"starts", "runs", "attends", "cancels", "kills", "starts a stated one", "no UUID", "no word on the child"}
}

test_user_asks if {
	every request in ["starts", "runs", "attends", "cancels", "kills", "another conversation"] {
		family.user_asks with input as _requests[request]
	}
	every request in ["no child", "unknown", "no list", "another child", "itself", "other operation"] {
		not family.user_asks with input as _requests[request]
	}
	family.user_asks with input as _children([object.union(_own, {"user": "", "asking": ""})])
	every change in [{"asking": "eve"}, {"asking": ""}, {"user": ""}, {"user": null, "asking": null}, {"user": "Bob"}] {
		not family.user_asks with input as _children([object.union(_own, change)])
	}
	every field in ["user", "asking"] {
		not family.user_asks with input as _children([object.remove(_own, [field])])
	}
}
