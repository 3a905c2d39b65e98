package admission.requirements.memory.owner

import future.keywords.not

# METADATA
# title: The caller has a name
# description: An entry belongs to the principal that wrote it, so a caller without a name can neither own nor read one.
# custom:
#   code: memory_owner_unnamed
#   fixed: true
#   remedy: Over HTTP call with a token, as `engine tokens issue` makes it; elsewhere state a principal
# labels:
#   row: B44
named if {
	is_string(input.caller.principal)
	input.caller.principal != ""
}

# METADATA
# title: The entry belongs to the caller
# description: Entries are read and forgotten by their owner only.
# custom:
#   code: memory_of_another_owner
#   fixed: true
#   each: memories
#   empty: allowed
#   after: [memory_owner_unnamed]
#   remedy: Ask for entries of your own
# labels:
#   row: B44
owned(memory) if {
	is_string(memory.owner)
	memory.owner == input.caller.principal
}

# METADATA
# title: The entry exists
# description: An id that no entry has is refused, so that a caller does not take it for an empty memory.
# custom:
#   code: memory_unknown
#   each: asked
#   empty: allowed
#   remedy: Get the ids of your entries with `engine memory list`, or by reading without an id
#   proof: an id that is missing equals no id of an entry
# labels:
#   row: B44
known(one) if {
	is_string(one.id)
	one.id in {memory.id | some memory in input.memories}
}
