# The configured remote model as policy/llm.yaml has it.
package admission.lib.llm

import future.keywords.not

# The only HTTP status whose body is an answer.
status := 200

# METADATA
# description: The alias of the provider whose host and port are exactly those of the base URL.
# custom:
#   proof: only rows of the policy are looked through, and host and port must both be there to be equal
provider := alias if {
	some alias, row in data.policy.llm.providers
	row.host == input.llm.url.host
	row.port == input.llm.url.port
}
