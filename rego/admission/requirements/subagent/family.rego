package admission.requirements.subagent.family

import data.admission.lib.subagent
import future.keywords.not

# METADATA
# title: The subagent is named by a UUID, unless it is yet to be started
# description: Checked before anything is read. The engine assigns the id when it starts a subagent.
# custom:
#   code: invalid_child_id
#   remedy: Use the child_conversation_id returned at the start; omit it to start a subagent
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
# title: Subagents start no subagents
# description: The engine's own state shows whether the asking conversation is a subagent.
# custom:
#   code: nested_spawn
#   each: children
#   empty: allowed
#   after: [invalid_child_id]
#   remedy: Start it from the conversation that started this subagent
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
# title: Only the conversation that started a subagent may read or end it
# description: The parent comes from the engine's own state; an unknown subagent has no parent.
# custom:
#   code: not_parent
#   fixed: true
#   after: [invalid_child_id]
#   proof: only the child that this request names counts; ids are unique
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

# METADATA
# title: Only the user who started a subagent may read or end it
# description: The user is the principal of the caller, which the engine establishes; a request cannot state it.
# custom:
#   code: not_own_subagent
#   fixed: true
#   after: [not_parent]
#   proof: only the child that this request names counts; ids are unique
#   remedy: Ask as the user who started the subagent
# labels:
#   row: B47
user_asks if subagent.starts(input.operation)

user_asks if {
	subagent.attends(input.operation)
	some known in input.children
	known.role == "child"
	_same(known.id, input.child.id)
	is_string(known.user)
	known.user == known.asking
}

_same(first, second) if {
	is_string(first)
	first != ""
	first == second
}
