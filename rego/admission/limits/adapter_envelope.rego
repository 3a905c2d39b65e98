# Exactly the envelope that was decided on, once all of its terms are facts.
package admission.limits.adapter_envelope

import future.keywords.not

# METADATA
# custom:
#   proof: every id must be there, so a term that is missing leaves the rule undefined
limits := {"end": input.end, "envelope": input.envelope} if {
	is_string(input.envelope)
	{term.id | some term in input.terms} == _terms[input.end]
}

_terms := {
	"request": {"size", "fields", "format", "id", "manifest", "operation", "tool", "arguments", "approval"},
	"result": {
		"size", "fields", "format", "request", "manifest", "operation", "tool", "status", "content", "code", "approval",
		"asked_fields", "asked_format", "asked_id", "asked_manifest", "asked_operation", "asked_tool",
		"asked_arguments", "asked_approval",
	},
}
