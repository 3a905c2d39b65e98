# What may be kept: exactly the content that was received.
package admission.limits.network_response

import future.keywords.not

limits := {
	"id": input.id,
	"sha256": input.body.sha256,
	"bytes": input.body.bytes,
	"media_type": input.head.media_type,
}
