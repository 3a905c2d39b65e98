package admission.requirements.network_response.content

import future.keywords.not

# METADATA
# title: The content is of the stated type
# description: The engine determines the type from all bytes. The stated type decides how the content is read. A type
#   that ends with `+json` is JSON. Further types of text are values in policy/networks.yaml.
# custom:
#   code: content_type_mismatch
#   after: [payload_incomplete, unsupported_charset]
#   facts: {media_type: head.media_type}
#   remedy: Fetch from a host that states the actual type of the content; have a type of text that does not begin with
#     `text/` listed under fetch.text_types in policy/networks.yaml
#   reads: [networks.fetch.text_types]
# labels:
#   row: H07
as_stated if input.head.media_type in input.content.types

as_stated if {
	startswith(input.head.media_type, "text/")
	"text/*" in input.content.types
}

as_stated if {
	endswith(input.head.media_type, "+json")
	"application/json" in input.content.types
}

as_stated if {
	input.head.media_type in data.policy.networks.fetch.text_types
	"text/*" in input.content.types
}

# METADATA
# title: The content has one reading
# description: Readers of JSON differ on a key written twice, on numbers beyond 2^53 and on deep nesting.
# custom:
#   code: content_ambiguous
#   after: [content_type_mismatch]
#   facts: {problem: content.problem}
#   remedy: Have the host write each key once, and deep nesting and large numbers in another form
# labels:
#   row: H07
one_reading if input.content.one_reading == true
