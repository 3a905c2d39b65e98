package admission.requirements.provisioning.specification

import future.keywords.not

# METADATA
# title: A new agent may have this role
# description: Roles are listed in policy/provisioning.yaml.
# custom:
#   code: role_not_admitted
#   field: specification.role
#   facts: {role: specification.role}
#   remedy: Use a role that policy/provisioning.yaml lists, spelled as there
#   reads: [provisioning.roles]
#   after: [provisioning_schema_invalid]
# labels:
#   row: E13
role_admitted if {
	is_string(input.specification.name)
	input.specification.role in data.policy.provisioning.roles
}

# METADATA
# title: A new agent may have this tool
# description: Tools are listed in policy/provisioning.yaml.
# custom:
#   code: tool_not_admitted
#   each: tools
#   empty: allowed
#   remedy: Use tools that policy/provisioning.yaml lists, where compliance can add one
#   reads: [provisioning.tools]
#   after: [provisioning_schema_invalid]
# labels:
#   row: E13
tool_admitted(tool) if tool.id in data.policy.provisioning.tools

# METADATA
# title: The constraints are within the maximum
# description: The maximum of each is a value in policy/provisioning.yaml.
# custom:
#   code: constraints_too_wide
#   facts: {max_turns: specification.constraints.max_turns, max_tokens: specification.constraints.max_tokens}
#   remedy: Lower max_turns or max_tokens of the specification to at most those in policy/provisioning.yaml
#   reads: [provisioning.constraints]
#   after: [provisioning_schema_invalid]
# labels:
#   row: E13
constrained if {
	_within("max_turns")
	_within("max_tokens")
}

_within(name) if {
	is_number(input.specification.constraints[name])
	input.specification.constraints[name] <= data.policy.provisioning.constraints[name]
}

# METADATA
# title: The system prompt is within the size limit
# description: The size is a value in policy/provisioning.yaml.
# custom:
#   code: prompt_too_large
#   remedy: Shorten the system prompt, or have prompt_bytes in policy/provisioning.yaml raised
#   reads: [provisioning.prompt_bytes]
#   after: [provisioning_schema_invalid]
# labels:
#   row: E13
prompt_small_enough if {
	is_string(input.specification.system_prompt)
	is_number(input.specification.prompt_bytes)
	is_number(data.policy.provisioning.prompt_bytes)
	input.specification.prompt_bytes <= data.policy.provisioning.prompt_bytes
}

# METADATA
# title: The system prompt contains no code
# description: A prompt is text and is never evaluated, so this stops nothing; it is shown to the person who approves.
#   The texts that count as code are values in policy/provisioning.yaml.
# custom:
#   code: code_in_prompt
#   standing: warn
#   proof: the markers must be there, and each is compared
#   remedy: Read the system prompt before approving it
#   reads: [provisioning.code_markers]
#   after: [provisioning_schema_invalid]
# labels:
#   row: E17
prompt_is_prose if {
	is_array(data.policy.provisioning.code_markers)
	is_string(input.specification.system_prompt)
	prompt := regex.replace(lower(input.specification.system_prompt), `\s+\(`, "(")
	every marker in data.policy.provisioning.code_markers { not contains(prompt, marker) }
}
