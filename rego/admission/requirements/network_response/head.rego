package admission.requirements.network_response.head

import data.admission.lib.fetch
import future.keywords.not

# METADATA
# title: The response is not a redirect
# description: A redirect leads to an address that was not decided on, so none is followed.
# custom:
#   code: redirect_blocked
#   after: [response_malformed]
#   remedy: Review the address that it leads to, and fetch that one
# labels:
#   row: A34
stays if {
	is_number(input.head.status)
	input.head.status < 300
}

stays if {
	is_number(input.head.status)
	input.head.status >= 400
}

# METADATA
# title: The HTTP status is 200
# description: Any other answer is about the request, and not the material.
# custom:
#   code: http_status_not_200
#   after: [redirect_blocked]
#   facts: {status: head.status}
#   remedy: Fetch an address that answers with status 200
# labels:
#   row: A38
ok if input.head.status == fetch.status

# METADATA
# title: The content type is admitted
# description: The media type of the Content-Type header. Media types of material are values in policy/networks.yaml;
#   media by URL must be of the type that was decided on.
# custom:
#   code: unsupported_content_type
#   after: [http_status_not_200]
#   facts: {media_type: head.media_type}
#   remedy: Fetch material of a media type under fetch.media_types in policy/networks.yaml, where compliance can add it,
#     or media of its stated type
#   reads: [networks.fetch.media_types]
# labels:
#   row: A37
type_admitted if {
	input.media.stated == false
	input.head.media_type in data.policy.networks.fetch.media_types
}

type_admitted if {
	input.media.stated == true
	is_string(input.head.media_type)
	input.head.media_type == input.media.media_type
}

# METADATA
# title: The charset is admitted where one is stated
# description: Text in another encoding would be read differently by different programs.
# custom:
#   code: unsupported_charset
#   after: [unsupported_content_type]
#   facts: {charset: head.charset}
#   remedy: Fetch material in a charset under fetch.charsets in policy/networks.yaml, where compliance can add it
#   reads: [networks.fetch.charsets]
# labels:
#   row: A37
charset_admitted if {
	input.head.charset_stated == true
	input.head.charset in data.policy.networks.fetch.charsets
}

charset_admitted if input.head.charset_stated == false

# METADATA
# title: The body is not compressed
# description: The engine asks for the plain body. A few compressed bytes can grow beyond every limit.
# custom:
#   code: content_encoded
#   after: [http_status_not_200]
#   remedy: Fetch from a host that sends the plain body where it is asked for `identity`
# labels:
#   row: H07
plain if input.head.content_encoding == "identity"

# METADATA
# title: The end of the body is stated in exactly one way
# description: A length or chunks. A body that ends with the connection can be cut off unnoticed, and with both, two
#   programs can read two bodies.
# custom:
#   code: framing_ambiguous
#   after: [http_status_not_200]
#   remedy: Fetch from a host that states either a length or chunks
# labels:
#   row: H07
framed if input.head.framing in {"chunked", "length"}
