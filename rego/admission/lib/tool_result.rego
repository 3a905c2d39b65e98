# What policy/results.yaml says about what was found in a result.
package admission.lib.tool_result

import future.keywords.not

# METADATA
# custom:
#   proof: a kind that the policy does not list is not taken out, and a requirement then refuses what was found
default taken_out(_) := false

taken_out(kind) if kind in data.policy.results.redact

# The link carries no more data than its kind may, and has no place for data; or its host is named.
harmless(link) if {
	is_string(link.id)
	link.origin in data.policy.results.hosts
}

harmless(link) if {
	is_string(link.id)
	link.kind in {"image", "link"}
	_within(link)
	link.open == false
}

harmless(link) if {
	is_string(link.id)
	link.kind == "text"
	_within(link)
}

_within(link) if {
	is_number(link.data)
	is_number(data.policy.results.data_characters[link.kind])
	link.data <= data.policy.results.data_characters[link.kind]
}

# The numbers of the links that are not harmless.
#
# METADATA
# custom:
#   proof: every link counts that is not shown to be harmless; one without an id is refused by a requirement
carriers := [link.id | some link in input.links; not harmless(link)] if is_array(input.links)
