# What an operation on a subagent may do and return.
package admission.limits.subagent

import data.admission.lib.subagent
import future.keywords.not

limits := {
	"operation": input.operation,
	"child": _child,
	"turns": _turns,
	"line_bytes": data.policy.subagents.line_bytes,
	"timeout_seconds": _timeout,
	"lifetime_seconds": data.policy.subagents.lifetime_seconds,
}

_child := "new" if subagent.starts(input.operation)

_child := input.child.id if {
	subagent.attends(input.operation)
	is_string(input.child.id)
}

_turns := _least(input.limit_turns, data.policy.subagents.turns)

_timeout := _least(input.timeout_seconds, subagent.row(input.operation).timeout_seconds)

_least(amount, most) := most if amount.stated == false

_least(amount, most) := min([amount.requested, most]) if {
	amount.stated == true
	is_number(amount.requested)
	is_number(most)
}
