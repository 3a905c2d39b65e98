# Digests as facts state them.
package admission.lib.digest

import future.keywords.not

# 64 lower-case hex digits: the SHA-256 of a content.
sha256(text) if {
	is_string(text)
	regex.match(`^[0-9a-f]{64}$`, text)
}
