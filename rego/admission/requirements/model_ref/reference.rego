package admission.requirements.model_ref.reference

import future.keywords.not

# METADATA
# title: The harness of the reference is admitted
# description: What a harness offers is its row in policy/runners.yaml.
# custom:
#   code: harness_not_admitted
#   remedy: Use a harness that has a row in policy/runners.yaml, or ask for a row
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D50
harness_admitted if is_object(data.policy.runners.harnesses[input.harness])

# METADATA
# title: The harness offers the connection mode of a run
# description: In a form, another mode is reset to the first that the harness offers.
# custom:
#   code: model_ref_inconsistent:mode
#   after: [harness_not_admitted]
#   remedy: Use one of `connection_modes` of the harness in policy/runners.yaml, or none
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D50
mode_consistent if input.phase == "form"

mode_consistent if input.reference.mode == ""

mode_consistent if input.reference.mode in data.policy.runners.harnesses[input.harness].connection_modes

# METADATA
# title: The harness can reach the model of a run
# description: A form clears a model that no provider of the harness lists. Without a model, a run has the
#   harness's own.
# custom:
#   code: model_ref_inconsistent:model
#   after: [harness_not_admitted]
#   remedy: Use a model that the harness lists in policy/runners.yaml, or none
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D50, D51
model_consistent if input.phase == "form"

model_consistent if input.reference.model == ""

model_consistent if {
	some models in data.policy.runners.harnesses[input.harness].models
	input.reference.model in models
}

# METADATA
# title: The provider that a run states lists its model
# description: A form infers a missing provider from the model.
# custom:
#   code: model_ref_inconsistent:provider
#   after: ["model_ref_inconsistent:model"]
#   remedy: State the provider that lists the model in policy/runners.yaml, or none
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D50
provider_consistent if input.phase == "form"

provider_consistent if {
	is_string(input.reference.model)
	input.reference.provider == ""
}

provider_consistent if {
	models := data.policy.runners.harnesses[input.harness].models
	input.reference.model in models[input.reference.provider]
}

# METADATA
# title: The connection of a run belongs to its provider
# description: A form clears the slug when provider, mode or model change, because it names a connection of the
#   earlier ones.
# custom:
#   code: model_ref_inconsistent:slug
#   after: [harness_not_admitted]
#   remedy: State a slug of a connection to this provider, with its slug_provider, or none
#   reads: ["runners.harnesses.{harness}"]
# labels:
#   row: D50
slug_consistent if input.phase == "form"

slug_consistent if input.reference.slug == ""

slug_consistent if {
	input.reference.slug_provider == input.reference.provider
	is_array(data.policy.runners.harnesses[input.harness].models[input.reference.provider])
}
