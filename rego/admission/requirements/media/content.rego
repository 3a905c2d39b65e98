package admission.requirements.media.content

import data.admission.lib.media
import future.keywords.not

# METADATA
# title: The kind of media is admitted
# description: Kinds are rows in policy/media.yaml.
# custom:
#   code: media_kind_not_admitted
#   remedy: Leave the media out, or ask for its kind to be added to policy/media.yaml
#   reads: ["media.kinds.{media.kind}"]
# labels:
#   row: B39
kind_admitted if is_object(data.policy.media.kinds[input.media.kind])

# METADATA
# title: The media type is admitted for its kind
# description: An image type such as SVG can contain a program, so the types of each kind are listed in
#   policy/media.yaml.
# custom:
#   code: media_type_not_admitted
#   after: [media_kind_not_admitted, url_media_disabled]
#   facts: {stated: media.media_type}
#   remedy: State a media type that policy/media.yaml lists for this kind, in lower case and without parameters, or
#     convert the content to one
#   reads: ["media.kinds.{media.kind}"]
# labels:
#   row: B40
type_admitted if input.media.media_type in data.policy.media.kinds[input.media.kind].media_types

# METADATA
# title: The content can be read
# description: Content is canonical base64 or a regular file. The engine measures it itself.
# custom:
#   code: media_unreadable
#   after: [media_outside_root]
#   remedy: Send the whole content as padded base64 with `+` and `/`, without line breaks or `data:…,` before it; or
#     name a regular file
# labels:
#   row: B40
readable if {
	media.brought
	input.media.readable == true
}

readable if media.by_url

# METADATA
# title: The content is of the stated type
# description: The engine determines the type from the bytes. The stated type decides how the content is displayed and
#   read, so a program declared as an image is refused.
# custom:
#   code: media_type_mismatch
#   after: [media_type_not_admitted, media_unreadable]
#   facts: {stated: media.media_type, detected: media.types}
#   remedy: State the actual type of the content, or convert the content to the stated type; text is UTF-8 without
#     control characters
# labels:
#   row: B40
as_stated if {
	media.brought
	input.media.media_type in input.media.types
}

as_stated if {
	media.brought
	startswith(input.media.media_type, "text/")
	"text/*" in input.media.types
}

as_stated if media.by_url

# METADATA
# title: The media is within the size limit of its kind and source
# description: Media by URL may come without a size; the limit is then enforced during the fetch.
# custom:
#   code: media_too_large
#   after: [media_kind_not_admitted, url_media_disabled, media_unreadable]
#   remedy: Send a smaller file, or have max_bytes in policy/media.yaml raised
#   reads: ["media.kinds.{media.kind}", media.url.max_bytes]
# labels:
#   row: B40
small_enough if {
	media.brought
	_fits(data.policy.media.kinds[input.media.kind])
}

small_enough if {
	media.by_url
	_fits(data.policy.media.kinds[input.media.kind])
	_fits(data.policy.media.url)
}

small_enough if {
	media.by_url
	input.media.size.stated == false
}

_fits(row) if {
	input.media.size.stated == true
	is_number(input.media.size.bytes)
	is_number(row.max_bytes)
	input.media.size.bytes >= 0
	input.media.size.bytes <= row.max_bytes
}
