package admission.requirements.runner_request.agent

import data.admission.lib.runner
import future.keywords.not

# METADATA
# title: The harness of the run is admitted
# description: Harnesses are rows in policy/runners.yaml. A run that states none gets the default.
# custom:
#   code: harness_not_admitted
#   remedy: Use a harness that has a row in policy/runners.yaml, or leave the harness out to use the default
#   reads: ["runners.harnesses.{agent.harness}", runners.default_harness]
# labels:
#   row: D20, D52
harness_admitted if is_object(data.policy.runners.harnesses[runner.harness(input.agent)])

# METADATA
# title: Every argument of the harness is admitted
# description: The names in harness_kwargs are passed to the harness, which may give them any meaning. Admitted names
#   are values in policy/runners.yaml, by harness.
# custom:
#   code: harness_kwarg_not_admitted
#   each: agent.harness_kwargs
#   empty: allowed
#   after: [harness_not_admitted]
#   remedy: Leave it out, or ask for its name to be added to `kwargs` of this harness in policy/runners.yaml
#   reads: ["runners.harnesses.{agent.harness}.kwargs"]
# labels:
#   row: D52
kwarg_admitted(kwarg) if kwarg.id in data.policy.runners.harnesses[runner.harness(input.agent)].kwargs

# METADATA
# title: The backend of the run is admitted
# description: Backends are rows in policy/runners.yaml. An engine in the runner's own process cannot be one, because
#   nothing would isolate it from the runner.
# custom:
#   code: backend_not_admitted
#   waivable: false
#   remedy: Use a sandbox that has a row in policy/runners.yaml, or leave the sandbox out to use the default
#   reads: ["runners.backends.{agent.sandbox}", runners.default_backend]
# labels:
#   row: D21
backend_admitted if runner.host(input.agent) in {"runner", "remote"}

# METADATA
# title: The harness lists the stated model
# description: Models are values in policy/runners.yaml, by harness and provider. A form that does
#   not know the capabilities may accept others; they are refused here.
# custom:
#   code: model_not_listed
#   after: [harness_not_admitted]
#   remedy: Use a model that the harness lists in policy/runners.yaml, or leave out model to use that of the harness
#   reads: ["runners.harnesses.{agent.harness}"]
# labels:
#   row: D51, D64
model_listed if input.agent.model.stated == false

model_listed if {
	input.agent.model.stated == true
	some provider, models in data.policy.runners.harnesses[runner.harness(input.agent)].models
	input.agent.model.id in models
	_provided_by(provider)
}

_provided_by(provider) if {
	input.agent.model.provider_stated == true
	input.agent.model.provider == provider
}

_provided_by(provider) if {
	is_string(provider)
	input.agent.model.provider_stated == false
}

# METADATA
# title: The harness offers the stated connection mode
# description: Connection modes are values in policy/runners.yaml, by harness. Without one, the harness has its own.
# custom:
#   code: model_ref_inconsistent:mode
#   after: [harness_not_admitted]
#   remedy: Use one of `connection_modes` of the harness in policy/runners.yaml, or none
#   reads: ["runners.harnesses.{agent.harness}"]
# labels:
#   row: D50, D51
mode_offered if input.agent.model.mode_stated == false

mode_offered if {
	input.agent.model.mode_stated == true
	input.agent.model.mode in data.policy.runners.harnesses[runner.harness(input.agent)].connection_modes
}

# METADATA
# title: The stated connection belongs to a stated provider
# description: A slug names a connection of one provider, so it could reach a model of another one.
# custom:
#   code: model_ref_inconsistent:slug
#   after: [harness_not_admitted]
#   remedy: State the provider that the connection belongs to, or leave out the slug
# labels:
#   row: D50, D51
connection_provided if input.agent.model.slug_stated == false

connection_provided if {
	input.agent.model.slug_stated == true
	input.agent.model.provider_stated == true
}

# METADATA
# title: The stated runner address is on the allowlist
# description: Checked before tools, MCP servers and credentials. Origins are values in policy/runners.yaml.
# custom:
#   code: uri_not_allowlisted
#   remedy: Use a runner that is listed in policy/runners.yaml, or leave out uri
#   reads: [runners.uri.allowlist]
# labels:
#   row: D41
uri_allowlisted if input.agent.uri.stated == false

uri_allowlisted if {
	input.agent.uri.stated == true
	input.agent.uri.canonical == true
	input.agent.uri.origin in data.policy.runners.uri.allowlist
}
