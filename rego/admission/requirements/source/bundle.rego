package admission.requirements.source.bundle

import future.keywords.not

# METADATA
# title: The material comes in a source bundle
# description: Without a source bundle, the material states nothing that could be checked.
# custom:
#   code: bundle_missing
#   field: bundle.id
#   remedy: Describe the material in a bundle.yaml of format 1 with an id, and give the path of its folder
# labels:
#   row: A96
submitted if {
	is_string(input.bundle.id)
	input.bundle.id != ""
	is_string(input.bundle.digest)
}

# METADATA
# title: Every field of the source bundle fits format 1
# description: Missing, unknown and mistyped fields are refused. The list contains the fields that do not fit.
# custom:
#   code: bundle_invalid
#   each: errors
#   empty: required
#   proof: the list contains only problems, so an empty list means that there are none
#   remedy: Correct the field in bundle.yaml; the subject names its path
# labels:
#   row: A96, A09
fits if input.errors == []

# METADATA
# title: The source bundle is unchanged since it was validated
# description: The stated digest of an earlier check must equal the current one.
# custom:
#   code: bundle_changed
#   fixed: true
#   after: [bundle_missing]
#   facts: {digest: bundle.digest}
#   remedy: Check the source bundle again and use the digest of that check
# labels:
#   row: A96
unchanged if input.bundle.unchanged == true

# METADATA
# title: The purpose of the source bundle is admitted
# description: Purposes are values in policy/sources.yaml.
# custom:
#   code: purpose_not_admitted
#   after: [bundle_missing]
#   field: bundle.purpose
#   facts: {purpose: bundle.purpose}
#   remedy: State an admitted purpose, or ask compliance to admit this one in policy/sources.yaml
#   reads: [sources.purposes]
# labels:
#   row: A09
purpose_admitted if input.bundle.purpose in data.policy.sources.purposes
