# What may be released: exactly this commit, as this version.
package admission.limits.release

import future.keywords.not

# METADATA
# custom:
#   proof: the features are counted, so one that is incomplete leaves the rule undefined
limits := {
	"version": input.version,
	"commit": input.change.commit,
	"stage": input.stage,
	"features": features,
} if {
	is_string(input.version)
	is_string(input.change.commit)
	is_string(input.stage)
	is_array(input.features)
	features := [feature.id | some feature in input.features; is_string(feature.id)]
	count(features) == count(input.features)
}
