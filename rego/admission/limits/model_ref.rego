# The reference as it may be used: that of a run as it is, that of a form in order.
package admission.limits.model_ref

import future.keywords.not

limits := {
	"harness": input.harness,
	"reference": {"model": _model, "provider": _provider, "mode": _mode, "slug": _slug},
} if {
	is_string(input.harness)
	input.phase == "form"
}

limits := {
	"harness": input.harness,
	"reference": {
		"model": input.reference.model,
		"provider": input.reference.provider,
		"mode": input.reference.mode,
		"slug": input.reference.slug,
	},
} if {
	is_string(input.harness)
	input.phase == "run"
}

_offered := data.policy.runners.harnesses[input.harness]

# A harness that publishes nothing: a form cannot know yet what it can reach. A run is refused then.
# METADATA
# custom:
#   proof: only a form reads it, whose reference is checked before a run
_unpublished if _offered.models == {}

_published if some _ in _offered.models

# METADATA
# custom:
#   proof: only a form reads it, whose reference is checked before a run
_keeps_mode := input.reference.mode in ({""} | {mode | some mode in _offered.connection_modes})

_mode := input.reference.mode if _keeps_mode == true

_mode := _offered.connection_modes[0] if _keeps_mode == false

# METADATA
# custom:
#   proof: only a form reads it, whose reference is checked before a run
_mode := input.reference.mode if {
	_keeps_mode == false
	_offered.connection_modes == []
}

# METADATA
# custom:
#   proof: only a form reads it, whose reference is checked before a run
_listing := sort([provider | some provider, models in _offered.models; input.reference.model in models])

# METADATA
# custom:
#   proof: only a form reads it, whose reference is checked before a run
_keeps_model := input.reference.model in ({""} | {model | some models in _offered.models; some model in models})

_model := input.reference.model if _keeps_model == true

_model := input.reference.model if _unpublished

_model := "" if {
	_keeps_model == false
	_published
}

_keeps_provider := input.reference.provider in _listing

_provider := input.reference.provider if _keeps_provider == true

# Inferred from the model: the first by name that lists it.
_provider := _listing[0] if _keeps_provider == false

_provider := input.reference.provider if _unpublished

# METADATA
# custom:
#   proof: only a form reads it, whose reference is checked before a run
_provider := "" if {
	_keeps_provider == false
	_listing == []
	_published
}

# A slug names a connection of one provider, in one mode.
# regal ignore:boolean-assignment
_keeps_slug := _named == [_provider, _mode, _model]

_named := [input.reference.slug_provider, input.reference.mode, input.reference.model]

_slug := input.reference.slug if _keeps_slug == true

_slug := "" if {
	_keeps_slug == false
	is_string(input.reference.slug)
}
