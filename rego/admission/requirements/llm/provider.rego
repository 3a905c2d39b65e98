package admission.requirements.llm.provider

import data.admission.lib.address
import data.admission.lib.llm
import future.keywords.not

# METADATA
# title: A remote model is configured
# description: Work without a remote model needs no variable.
# custom:
#   code: provider_not_configured
#   fixed: true
#   proof: the list contains only problems, so an empty list means that there are none
#   remedy: Set AGENT_DATA_LLM_BASE_URL, AGENT_DATA_API_KEY and AGENT_DATA_LLM_MODEL, or OPENAI_API_KEY
# labels:
#   row: A101
configured if input.missing == []

# METADATA
# title: Each variable of the remote model is set and can be used
# description: The list contains those that are not.
# custom:
#   code: model_variable_missing
#   each: missing
#   empty: required
#   fixed: true
#   proof: the list contains only problems, so an empty list means that there are none
#   remedy: Set this variable; a key has 8 or more visible ASCII characters and is in no other variable, a timeout is a
#     whole number of seconds
# labels:
#   row: A101, A62, A63, A64, C32
variables_set if input.missing == []

# METADATA
# title: The base URL begins with https
# description: Over plain HTTP, anyone on the network path could read the key and the prompt.
# custom:
#   code: base_url_not_https
#   fixed: true
#   after: [provider_not_configured]
#   remedy: Write the base URL as `https://host/path`; a model on this machine or network is not remote, and refused
# labels:
#   row: A62, H21
encrypted if input.llm.url.scheme == "https"

# METADATA
# title: The base URL is canonical
# description: Two parsers could read any other address differently, and the key would go elsewhere.
# custom:
#   code: base_url_not_canonical
#   fixed: true
#   after: [base_url_not_https]
#   remedy: Write it as `https://host/path` with the host name in lower case; without user info, query, `:443`,
#     trailing dot, IP address, name of this machine or network, or non-ASCII characters
# labels:
#   row: H21, A62, A65
canonical if input.llm.url.canonical == true

# METADATA
# title: The request is meant for the configured host
# description: The key goes to this host and to no other.
# custom:
#   code: key_target_refused
#   fixed: true
#   after: [base_url_not_canonical]
#   facts: {target: llm.target, host: llm.url.host}
#   remedy: Name exactly the host of the base URL as `target`; a `Prompt` in Python may leave it out
# labels:
#   row: A04, H21
target_configured if {
	is_string(input.llm.url.host)
	input.llm.target == input.llm.url.host
}

# METADATA
# title: The organization admits the provider
# description: The exact host and port of the base URL, in policy/llm.yaml.
# custom:
#   code: provider_not_admitted
#   after: [key_target_refused]
#   facts: {host: llm.url.host, port: llm.url.port}
#   remedy: "Ask compliance to add a row for this host under `providers` in policy/llm.yaml, such as
#     `openai: {host: api.openai.com, port: 443, models: [gpt-4.1-mini]}`"
#   reads: [llm.providers]
# labels:
#   row: A04
provider_admitted if is_string(llm.provider)

# METADATA
# title: The host of the provider was resolved
# description: Only an admitted host is looked up. A failed or late lookup gives no address.
# custom:
#   code: provider_address_unknown
#   after: [provider_not_admitted]
#   remedy: Correct the host name, or retry when it can be resolved
# labels:
#   row: A65
known if {
	is_array(input.addresses)
	count(input.addresses) > 0
}

# METADATA
# title: The provider is remote
# description: Every address of its host is public; a model on this machine or network is not remote. Ranges are values
#   in policy/addresses.yaml.
# custom:
#   code: provider_not_remote
#   fixed: true
#   each: addresses
#   empty: allowed
#   after: [provider_address_unknown]
#   remedy: Use a provider on the public internet
# labels:
#   row: A65
remote(ip) if address.public(ip)
