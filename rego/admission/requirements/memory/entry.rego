package admission.requirements.memory.entry

import future.keywords.not

# METADATA
# title: The request is complete
# description: A write brings one entry and no id; a read or forget brings none, and a forget an id.
# custom:
#   code: memory_request_incomplete
#   remedy: Write with `entry` and without `id`, forget with `id`, read with `id` or nothing
# labels:
#   row: B44
complete if {
	input.operation == "write"
	is_array(input.written)
	is_array(input.asked)
	count(input.written) == 1
	count(input.asked) < 1
}

complete if {
	input.operation == "forget"
	is_array(input.written)
	is_array(input.asked)
	count(input.written) < 1
	count(input.asked) == 1
}

complete if {
	input.operation == "read"
	is_array(input.written)
	is_array(input.asked)
	count(input.written) < 1
	count(input.asked) <= 1
}

# METADATA
# title: The entry states an origin that is known
# description: Provenance is kept with every entry; kinds of origins are values in policy/memory.yaml.
# custom:
#   code: memory_origin_unknown
#   each: written
#   empty: allowed
#   remedy: State the kind and the name of the origin; kinds are listed in policy/memory.yaml
#   reads: [memory.origins, "memory.origins.{origin.kind}"]
# labels:
#   row: B44
origin_known(entry) if {
	is_string(entry.origin.name)
	entry.origin.name != ""
	is_string(entry.origin.kind)
	is_string(data.policy.memory.origins[entry.origin.kind])
}

# METADATA
# title: The origin of the entry is trusted
# description: Text from outside that an agent remembers steers it later; a person may approve it.
# custom:
#   code: memory_origin_untrusted
#   each: written
#   empty: allowed
#   after: [memory_origin_unknown]
#   standing: confirm
#   facts: {digest: digest, from: origin.name}
#   remedy: Have a person compare the digest with that of the text and approve it with `engine approvals grant`, or
#     leave the entry out
#   reads: ["memory.origins.{origin.kind}"]
# labels:
#   row: B44
#   threat: injection
origin_trusted(entry) if data.policy.memory.origins[entry.origin.kind] == "trusted"

# METADATA
# title: The entry states a sensitivity that is known
# description: Sensitivities are values in policy/memory.yaml.
# custom:
#   code: memory_sensitivity_unknown
#   each: written
#   empty: allowed
#   remedy: Use a sensitivity of policy/memory.yaml
#   reads: [memory.sensitivities, "memory.sensitivities.{sensitivity}"]
# labels:
#   row: B44
sensitivity_known(entry) if {
	is_string(entry.sensitivity)
	is_object(data.policy.memory.sensitivities[entry.sensitivity])
}

# METADATA
# title: The entry contains no secret
# description: The engine searches the text for keys, tokens and passwords.
# custom:
#   code: secret_in_memory
#   field: secrets
#   fixed: true
#   each: written
#   empty: allowed
#   remedy: Remove the secret from the text, or from the name of its origin
# labels:
#   row: B44
no_secret(entry) if {
	entry.secrets == 0
}

# METADATA
# title: The entry contains private data only if its sensitivity allows it
# description: The engine searches the text for mail addresses, phone numbers,
#   and numbers of payment cards, bank accounts (IBAN) and social security.
# custom:
#   code: private_data_in_memory
#   field: private
#   each: written
#   empty: allowed
#   after: [memory_sensitivity_unknown]
#   remedy: Remove the private data, or state a sensitivity for which policy/memory.yaml allows it
#   reads: ["memory.sensitivities.{sensitivity}"]
# labels:
#   row: B44
private_data_allowed(entry) if {
	entry.private == 0
}

private_data_allowed(entry) if data.policy.memory.sensitivities[entry.sensitivity].private_data == "allowed"

# METADATA
# title: The entry has no hidden characters
# description: Invisible characters that no script or emoji needs can hide text from people and show it to a model.
# custom:
#   code: hidden_characters_in_memory
#   field: hidden
#   each: written
#   empty: allowed
#   remedy: Remove the invisible characters from the text, or from the name of its origin
# labels:
#   row: B44
#   threat: injection
nothing_hidden(entry) if entry.hidden == 0

# METADATA
# title: The entry has no instructions to the model
# description: An agent may repeat what it has read elsewhere, and would obey it from then on. Markers are values in
#   policy/results.yaml, and no list of them is complete.
# custom:
#   code: instructions_in_memory
#   each: written
#   empty: allowed
#   standing: confirm
#   facts: {digest: digest, from: origin.name}
#   remedy: Have a person compare the digest with that of the text and approve it with `engine approvals grant`, or
#     leave the entry out
#   reads: [results.markers]
# labels:
#   row: B44
#   threat: injection
without_instructions(entry) if {
	entry.instructions == 0
	is_object(data.policy.results.markers)
}

# METADATA
# title: The entry is within the size limit
# description: The size is a value in policy/memory.yaml.
# custom:
#   code: memory_too_large
#   each: written
#   empty: allowed
#   remedy: Shorten the text
#   reads: [memory.entry_bytes]
# labels:
#   row: B44
small_enough(entry) if {
	is_number(entry.bytes)
	is_number(data.policy.memory.entry_bytes)
	entry.bytes <= data.policy.memory.entry_bytes
}
