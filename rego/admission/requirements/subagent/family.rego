package admission.requirements.subagent.family

import data.admission.lib.subagent
import future.keywords.not

# METADATA
# title: The child is named by a UUID, and only where there is one
# description: Looked at before anything is read. A subagent that is yet to be started gets its id from the engine.
# custom:
#   code: invalid_child_id
#   remedy: Give the child_conversation_id that starting the subagent returned; leave it out when starting one
# labels:
#   row: B23
child_named if {
	subagent.starts(input.operation)
	input.child.stated == false
}

child_named if {
	subagent.attends(input.operation)
	input.child.stated == true
	input.child.id_valid == true
}

# METADATA
# title: No subagent starts another one
# description: Whether the conversation that asks is a subagent's is what the engine's own state says.
# custom:
#   code: nested_spawn
#   each: children
#   empty: allowed
#   after: [invalid_child_id]
#   remedy: Let the conversation that started this subagent start the other one too
# labels:
#   row: B18
not_nested(known) if {
	known.role in {"self", "child"}
	subagent.attends(input.operation)
}

not_nested(known) if {
	known.role == "child"
	subagent.starts(input.operation)
}

# METADATA
# title: Only the conversation that started a subagent looks at it or ends it
# description: The engine's own state says who started it; a subagent that it does not know has no parent.
# custom:
#   code: not_parent
#   fixed: true
#   after: [invalid_child_id]
#   proof: the child that this request names is asked for; the engine knows one of each id
#   remedy: Ask from the conversation that started the subagent
# labels:
#   row: B21, B22
parent_asks if subagent.starts(input.operation)

parent_asks if {
	subagent.attends(input.operation)
	some known in input.children
	known.role == "child"
	_same(known.id, input.child.id)
	_same(known.parent, input.conversation)
}

_same(one, other) if {
	is_string(one)
	one != ""
	one == other
}
