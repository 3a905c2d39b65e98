# The form of digests in facts.
package admission.lib.digest

import future.keywords.not

# 64 lower-case hex digits: a SHA-256.
sha256(text) if {
	is_string(text)
	regex.match(`^[0-9a-f]{64}$`, text)
}
