# What every point requires of callers, stops, budgets and approvals; see source.rego.
package deny_set.common

import future.keywords.not

deny contains {"code": "caller_out_of_scope", "subject": null} if not _in_scope

_in_scope if input.caller.via in data.policy.callers.unscoped

_in_scope if {
	input.caller.via == "token"
	input.point in input.caller.points
}

_in_scope if {
	input.caller.via == "certificate"
	input.point in data.policy.callers.certificates[input.caller.principal]
}

deny contains {"code": "budgets_missing", "subject": null} if not is_array(input.budgets)

deny contains {"code": "budget_unknown", "subject": null} if {
	not {
		every scope in ["principal", "run", "all"] { _stated(scope) }
	}
}

_stated(scope) if data.policy.budgets.budgets[input.point][scope] == "unlimited"

_stated(scope) if {
	some counted in input.budgets
	counted.id == scope
	is_object(data.policy.budgets.budgets[input.point][scope])
}

deny contains {"code": "budget_exhausted", "subject": _subject("budgets", index, counted)} if {
	some index, counted in input.budgets
	not {
		is_number(counted.used)
		is_number(counted.amount)
		counted.used + counted.amount <= data.policy.budgets.budgets[input.point][counted.id].limit
	}
}

deny contains {"code": "approvals_missing", "subject": null} if not is_array(input.approvals)

_states := {
	"approval_unknown": {"requested", "granted", "refused", "used"},
	"approval_pending": {"granted", "refused", "used"},
	"approval_refused": {"requested", "granted", "used"},
	"approval_used": {"requested", "granted", "refused"},
}

deny contains {"code": code, "subject": _subject("approvals", index, given)} if {
	some index, given in input.approvals
	some code, states in _states
	not given.state in states
}

deny contains {"code": "approval_input_changed", "subject": _subject("approvals", index, given)} if {
	some index, given in input.approvals
	not {
		is_string(given.input_digest)
		given.input_digest == given.expected.input_digest
	}
}

deny contains {"code": "approval_policy_changed", "subject": _subject("approvals", index, given)} if {
	some index, given in input.approvals
	not {
		is_string(given.rules)
		is_string(given.values)
		given.rules == given.expected.rules
		given.values == given.expected.values
	}
}

deny contains {"code": "approval_expired", "subject": _subject("approvals", index, given)} if {
	some index, given in input.approvals
	not {
		is_number(given.expires_at)
		is_number(input.now)
		input.now < given.expires_at
	}
}

deny contains {"code": "approval_by_requester", "subject": _subject("approvals", index, given)} if {
	some index, given in input.approvals
	not _by_another(given)
}

_by_another(given) if {
	_plain_name(given.requester)
	_plain_name(given.approver)
	given.requester != given.approver
}

_by_another(given) if {
	given.requester_named == false
	given.requester_via in data.policy.approvals.unnamed_requesters
	_plain_name(given.approver)
}

_plain_name(name) if {
	is_string(name)
	regex.match(`^[^\pZ\pC]+( [^\pZ\pC]+)*$`, name)
}

deny contains {"code": "stops_missing", "subject": null} if not is_array(input.stops)

deny contains {"code": "stopped", "subject": _subject("stops", index, stop)} if {
	some index, stop in input.stops
	not _elsewhere(stop)
}

_elsewhere(stop) if {
	stop.scope == "all"
	input.point in {"administration", "runner_bind"}
}

_elsewhere(stop) if {
	some kind in ["tool", "principal"]
	stop.scope == kind
	is_string(stop.name)
	stop.name != ""
	is_string(stop[kind])
	stop[kind] != stop.name
}

_subject(list, index, item) := concat("/", [list, item.id]) if {
	is_string(item.id)
} else := $"{list}/#{index}"
