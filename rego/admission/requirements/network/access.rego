package admission.requirements.network.access

import future.keywords.not

# METADATA
# title: The caller has enabled network access
# description: Nothing is fetched unless the request itself enables it.
# custom:
#   code: network_disabled
#   remedy: Name the host with `--host` or in `hosts` of POST /v1/fetch; a request at this point sets network.enabled
# labels:
#   row: A06, A29
enabled if input.network.enabled == true

# METADATA
# title: The run names one address, or as many as the policy admits
# description: More than one is an exception that policy/networks.yaml makes.
# custom:
#   code: url_count_not_admitted
#   remedy: Fetch one address in each run, or have fetch.max_urls in policy/networks.yaml raised
#   reads: [networks.fetch.max_urls]
#   facts: {urls: network.urls}
# labels:
#   row: A30, A95
count_admitted if {
	is_number(input.network.urls)
	input.network.urls > 0
	input.network.urls <= data.policy.networks.fetch.max_urls
}

# METADATA
# title: The request budget of the run covers this address
# description: Each address of the run is one request; the caller states how many it allows.
# custom:
#   code: request_budget_exhausted
#   remedy: Raise network.budget.max_requests to the number of addresses, or name fewer
#   facts: {max_requests: network.max_requests}
# labels:
#   row: A35
budget_left if {
	is_number(input.network.requests_used)
	input.network.requests_used >= 0
	is_number(input.network.max_requests)
	input.network.requests_used < input.network.max_requests
}
