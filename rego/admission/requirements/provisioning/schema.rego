package admission.requirements.provisioning.schema

import future.keywords.not

# METADATA
# title: The specification is one JSON object
# description: It is read as strict JSON and never evaluated.
# custom:
#   code: provisioning_not_json
#   fixed: true
#   remedy: Send one JSON object and nothing around it
# labels:
#   row: E07, E18
is_json if input.readable == true

# METADATA
# title: Every key of the specification is known and occurs once
# description: A NewAgentProvisioning has the keys name, role, system_prompt, tools and constraints, and no other.
# custom:
#   code: unknown_key
#   fixed: true
#   each: problems
#   empty: allowed
#   remedy: Remove the key; if it occurs twice, keep one
# labels:
#   row: E19
key_known(problem) if problem.problem in {"type", "missing"}

# METADATA
# title: Every key of the specification is present and valid
# description: The subject names the key that is missing, or whose value has another type or form.
# custom:
#   code: provisioning_field_invalid
#   each: problems
#   empty: allowed
#   remedy: State this key as docs/provisioning.md describes it
# labels:
#   row: E16
field_fits(problem) if problem.problem in {"unknown", "repeated"}

# METADATA
# title: The specification fits the schema of a NewAgentProvisioning
# description: All keys are required, and each has its type and form. The problems are in the record.
# custom:
#   code: provisioning_schema_invalid
#   fixed: true
#   facts: {problems: problems}
#   remedy: Correct the specification as docs/provisioning.md describes it
#   after: [provisioning_not_json]
# labels:
#   row: E16
fits if {
	is_object(input.specification)
	is_array(input.tools)
}
