# The runner to use.
package admission.limits.runner_uri

import future.keywords.not

limits := {"uri": input.uri.text} if {
	input.uri.source in {"override", "inherited"}
	is_string(input.uri.text)
}

limits := {"uri": data.policy.runners.uri.default} if input.uri.source == "default"
