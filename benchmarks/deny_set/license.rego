# The conditions of point `license` as a practised author writes them without the engine; see source.rego.
package deny_set.license

import future.keywords.not

deny contains one if some one in data.deny_set.common.deny

deny contains {"code": "license_missing", "subject": null} if not input.license.stated == true

deny contains {"code": "license_unknown", "subject": null} if {
	not {
		some alternative in input.license.alternatives
		_all_known(alternative)
		_decided({"accepted", "incompatible", "review_required"})
	}
}

deny contains {"code": "license_incompatible", "subject": null} if {
	not {
		_worth({"admit", "review"})
		_decided({"accepted", "review_required"})
	}
}

deny contains {"code": "license_review_required", "subject": null} if {
	not {
		_worth({"admit"})
		_decided({"accepted"})
	}
}

deny contains {"code": "license_decision_missing", "subject": null} if count(_decisions) == 0

deny contains {"code": "license_decision_ambiguous", "subject": null} if {
	not {
		count(input.license.decisions) > 0
		every decision in input.license.decisions {
			is_string(decision.sha256)
			regex.match(`^[0-9a-f]{64}$`, decision.sha256)
			decision.decision in {"accepted", "incompatible", "review_required", "unknown"}
			is_number(decision.decided_at)
			decision.decided_at > 0
		}
		count(_decisions) == 1
	}
}

deny contains {"code": "license_decision_in_future", "subject": null} if {
	not {
		is_number(input.now)
		count(_decisions) > 0
		every decision in _decisions {
			is_number(decision.decided_at)
			decision.decided_at > 0
			decision.decided_at <= input.now
		}
	}
}

deny contains {"code": "purpose_not_admitted", "subject": null} if {
	not {
		is_string(input.purpose)
		input.purpose in data.policy.sources.purposes
	}
}

deny contains {"code": "export_license_unknown", "subject": null} if {
	not input.exported == false
	not {
		input.exported == true
		_export_known
	}
}

_decisions := [decision |
	some decision in input.license.decisions
	decision.sha256 == input.content.sha256
]

_decided(words) if {
	count(_decisions) > 0
	every decision in _decisions { decision.decision in words }
}

_all_known(alternative) if {
	is_array(alternative)
	count(alternative) > 0
	every key in alternative {
		row := data.policy.licenses.licenses[key]
		row.decision in {"admit", "review", "refuse"}
		is_object(data.policy.licenses.categories[row.category])
	}
}

_export_known if {
	is_array(input.export_license.alternatives)
	count(input.export_license.alternatives) > 0
	every alternative in input.export_license.alternatives { _all_known(alternative) }
}

_use_known if {
	input.purpose in {"train", "eval", "tool", "environment"}
	input.exported == false
}

_use_known if {
	input.purpose in {"train", "eval", "tool", "environment"}
	input.exported == true
	_export_known
}

_worth(verdicts) if {
	_use_known
	some alternative in input.license.alternatives
	is_array(alternative)
	count(alternative) > 0
	every key in alternative { _key_worth(key, verdicts) }
}

_key_worth(key, verdicts) if {
	row := data.policy.licenses.licenses[key]
	category := data.policy.licenses.categories[row.category]
	row.decision in verdicts
	category[input.purpose] in verdicts
	_export_worth(row, category, verdicts)
}

_export_worth(_, _, _) if input.exported == false

_export_worth(_, category, verdicts) if {
	input.exported == true
	category.export in verdicts
}

_export_worth(row, category, _) if {
	input.exported == true
	category.export == "listed"
	count(input.export_license.alternatives) > 0
	every alternative in input.export_license.alternatives {
		count(alternative) > 0
		every key in alternative { key in row.export_under }
	}
}
