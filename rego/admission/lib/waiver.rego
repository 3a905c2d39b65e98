# When a waiver of policy/waivers.yaml covers a finding: each condition by itself, and all of them.
package admission.lib.waiver

import data.admission.lib.approval
import future.keywords.not

# The id of the waiver that covers a finding, of several the first; undefined if none does.
#
# METADATA
# custom:
#   proof: only waivers that cover the finding are collected, and the smallest of none is undefined
covering(point, code, about) := min({id |
	some id, waiver in data.policy.waivers.waivers[point][code]
	covers(data.policy.waivers.waivable[point][code], waiver, about)
})

covers(scope, waiver, about) if {
	answered_for(waiver)
	in_time(waiver)
	of_subject(scope, waiver, about)
	of_principal(scope, waiver)
	of_facts(scope, waiver)
}

answered_for(waiver) if {
	is_string(waiver.reason)
	waiver.reason != ""
	approval.differ(lower(waiver.owner), lower(waiver.approver))
}

in_time(waiver) if {
	is_number(input.now)
	is_number(data.policy.waivers.days_max)
	starts := _nanoseconds(waiver.starts, "T00:00:00Z")
	ends := _nanoseconds(waiver.until, "T23:59:59Z")
	now := input.now * 1000000000
	starts <= now
	now <= ends
	ends - starts < (data.policy.waivers.days_max * 86400) * 1000000000
}

_nanoseconds(day, time_of_day) := time.parse_rfc3339_ns(concat("", [day, time_of_day])) if {
	is_string(day)
	regex.match(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`, day)
}

# METADATA
# custom:
#   proof: the subject of a finding is null exactly where it is about the whole request
of_subject(_, waiver, about) if {
	is_string(about)
	regex.match(`^[^#]+$`, about) # an item without an id of its own has a number in place of it
	waiver.subject == about
}

of_subject(_, waiver, about) if {
	about == null
	waiver.subject == "request"
}

of_subject(scope, waiver, _) if {
	waiver.subject == "any"
	"subject" in scope.any
}

of_principal(_, waiver) if {
	is_string(input.caller.principal)
	input.caller.principal != ""
	waiver.principal == input.caller.principal
}

of_principal(scope, waiver) if {
	waiver.principal == "any"
	"principal" in scope.any
}

# A waiver states exactly the facts that its code asks for, each as the input has it.
of_facts(scope, waiver) if {
	is_array(scope.facts)
	count(scope.facts) > 0
	is_object(waiver.facts)
	count(waiver.facts) == count(scope.facts)
	every path in scope.facts {
		is_string(waiver.facts[path])
		waiver.facts[path] != ""
		waiver.facts[path] == _fact(path)
	}
}

# METADATA
# custom:
#   proof: null stands for a missing fact, and no waiver states null
_fact(path) := object.get(input, split(path, "."), null)
