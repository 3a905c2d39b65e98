# What may be done: write exactly this content for its owner, or read or forget exactly these entries of the caller.
package admission.limits.memory

import future.keywords.not

# METADATA
# custom:
#   proof: entries and contents are counted, so one that is incomplete leaves the rule undefined
limits := {
	"operation": input.operation,
	"owner": input.caller.principal,
	"written": written,
	"entries": entries,
} if {
	is_string(input.operation)
	is_string(input.caller.principal)
	is_array(input.written)
	is_array(input.memories)
	written := [entry.digest | some entry in input.written; is_string(entry.digest)]
	count(written) == count(input.written)
	entries := [{"id": memory.id, "digest": memory.digest} |
		some memory in input.memories
		is_string(memory.id)
		is_string(memory.digest)
	]
	count(entries) == count(input.memories)
}
