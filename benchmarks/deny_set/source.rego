# The conditions of point `source` as a practised author writes them without the engine: one set of what is
# wrong, no generated part, no levels, no limits. The yardstick of P9; the bench proves that both find the same.
package deny_set.source

import future.keywords.not

deny contains one if some one in data.deny_set.common.deny

# --- the source bundle as a whole

deny contains {"code": "bundle_missing", "subject": null} if {
	not {
		is_string(input.bundle.id)
		input.bundle.id != ""
		is_string(input.bundle.digest)
	}
}

deny contains {"code": "bundle_changed", "subject": null} if not input.bundle.unchanged == true

deny contains {"code": "errors_missing", "subject": null} if not is_array(input.errors)

deny contains {"code": "bundle_invalid", "subject": _subject("errors", index, problem)} if {
	some index, problem in input.errors
	not problem.kind == "fits"
}

deny contains {"code": "undeclared_missing", "subject": null} if not is_array(input.undeclared)

deny contains {"code": "content_not_declared", "subject": _subject("undeclared", index, member)} if {
	some index, member in input.undeclared
	not {
		member.regular == true
		member.id in data.policy.sources.extra_files
	}
}

deny contains {"code": "purpose_not_admitted", "subject": null} if {
	not {
		is_string(input.bundle.purpose)
		input.bundle.purpose in data.policy.sources.purposes
	}
}

deny contains {"code": "export_license_unknown", "subject": null} if {
	not input.bundle.exported == false
	not {
		input.bundle.exported == true
		_export_known
	}
}

deny contains {"code": "source_audit_off", "subject": null} if not input.bundle.network.audit_required == true

deny contains {"code": "filesystem_not_isolated", "subject": null} if {
	not {
		is_string(input.bundle.sandbox.filesystem)
		is_array(data.policy.sandbox.filesystem[input.bundle.sandbox.filesystem])
	}
}

deny contains {"code": "boundary_not_enforced", "subject": null} if {
	not {
		some boundary in input.boundaries
		boundary.boundary == input.bundle.sandbox.filesystem
		boundary.enforced == true
		is_string(boundary.kind)
		boundary.kind in data.policy.sandbox.filesystem[input.bundle.sandbox.filesystem]
		is_string(boundary.backend)
		is_string(boundary.evidence)
	}
}

deny contains {"code": "generated_code_enabled", "subject": null} if {
	not {
		is_string(input.bundle.sandbox.generated_code)
		input.bundle.sandbox.generated_code in data.policy.sandbox.generated_code
	}
}

deny contains {"code": "redaction_off", "subject": null} if {
	not {
		data.policy.sandbox.redaction == true
		input.bundle.sandbox.redaction == true
	}
}

deny contains {"code": "sandbox_network_open", "subject": null} if {
	not {
		is_string(input.bundle.sandbox.network)
		input.bundle.sandbox.network in data.policy.sandbox.network
	}
}

deny contains {"code": "records_missing", "subject": null} if {
	not {
		is_array(input.bundle.records)
		count(input.bundle.records) > 0
	}
}

# --- each record: identity, kind, content

deny contains {"code": "record_id_not_unique", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_string(record.id)
		record.id != ""
		record.id_count == 1
	}
}

deny contains {"code": "record_kind_not_admitted", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_string(record.kind)
		record.kind in data.policy.sources.kinds
	}
}

deny contains {"code": "record_kind_contradicted", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not _external(record)
}

deny contains {"code": "content_missing", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _sha256(record.content.sha256)
}

deny contains {"code": "content_hash_missing", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _sha256(record.sha256)
}

deny contains {"code": "content_hash_mismatch", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_string(record.sha256)
		record.sha256 == record.content.sha256
	}
}

# --- each record: where it came from

deny contains {"code": "url_not_canonical", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not {
		_external(record)
		record.url.canonical == true
		record.url.scheme in data.policy.networks.schemes
		record.url.port in data.policy.networks.ports
	}
}

deny contains {"code": "host_not_allowlisted", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not {
		_external(record)
		is_string(record.url.host)
		record.url.host != ""
		record.url.host in _allowed_hosts
		record.url.host in _admitted_hosts
	}
}

deny contains {"code": "network_access_disabled", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not {
		_external(record)
		input.bundle.network.enabled == true
	}
}

deny contains {"code": "request_budget_exhausted", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not {
		_external(record)
		is_number(record.requests_used)
		record.requests_used >= 0
		is_number(input.bundle.network.budget.max_requests)
		record.requests_used < input.bundle.network.budget.max_requests
	}
}

deny contains {"code": "retrieval_time_missing", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not {
		_external(record)
		is_number(record.retrieved_at)
		record.retrieved_at > 0
	}
}

deny contains {"code": "retrieval_time_in_future", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not _offline(record)
	not {
		_external(record)
		is_number(input.now)
		is_number(record.retrieved_at)
		record.retrieved_at > 0
		record.retrieved_at <= input.now
	}
}

# --- each record: how long, and whether it may leave

deny contains {"code": "retention_missing", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_string(record.retention.basis)
		is_number(record.retention.until)
	}
}

deny contains {"code": "retention_unknown", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_string(record.retention.basis)
		record.retention.basis in data.policy.sources.retention_bases
	}
}

deny contains {"code": "retention_expired", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_number(input.now)
		input.now > 0
		is_number(record.retention.until)
		record.retention.until >= input.now
	}
}

deny contains {"code": "export_not_stated", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not record.export in {"allowed", "forbidden"}
}

deny contains {"code": "export_forbidden", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		record.export == "allowed"
		is_boolean(input.bundle.exported)
	}
	not {
		record.export == "forbidden"
		input.bundle.exported == false
	}
}

# --- each record: its license, and the decision on it

deny contains {"code": "license_missing", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not record.license.stated == true
}

deny contains {"code": "license_unknown", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		some alternative in record.license.alternatives
		_all_known(alternative)
		_decided(record, {"accepted", "incompatible", "review_required"})
	}
}

deny contains {"code": "license_incompatible", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		_worth(record.license.alternatives, {"admit", "review"})
		_decided(record, {"accepted", "review_required"})
	}
}

deny contains {"code": "license_review_required", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		_worth(record.license.alternatives, {"admit"})
		_decided(record, {"accepted"})
	}
}

deny contains {"code": "license_decision_missing", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		some decision in record.license.decisions
		decision.sha256 == record.content.sha256
	}
}

deny contains {"code": "license_decision_ambiguous", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		count(record.license.decisions) > 0
		every decision in record.license.decisions {
			_sha256(decision.sha256)
			decision.decision in {"accepted", "incompatible", "review_required", "unknown"}
			is_number(decision.decided_at)
			decision.decided_at > 0
		}
		count(_decisions(record)) == 1
	}
}

deny contains {"code": "license_decision_in_future", "subject": _subject("records", index, record)} if {
	some index, record in input.bundle.records
	not {
		is_number(input.now)
		decisions := _decisions(record)
		count(decisions) > 0
		every decision in decisions {
			is_number(decision.decided_at)
			decision.decided_at > 0
			decision.decided_at <= input.now
		}
	}
}

# --- what several of them need

_subject(list, index, item) := concat("/", [list, item.id]) if {
	is_string(item.id)
} else := $"{list}/#{index}"

_sha256(text) if {
	is_string(text)
	regex.match(`^[0-9a-f]{64}$`, text)
}

_offline(record) if {
	record.kind in {"fixture", "synthetic", "transformed"}
	record.remote == false
}

_external(record) if {
	record.kind == "external"
	record.remote == true
	is_object(record.url)
}

_allowed_hosts contains host if some host in input.bundle.network.allowed_hosts

_admitted_hosts contains host if some host in data.policy.networks.hosts

_decisions(record) := [decision |
	some decision in record.license.decisions
	decision.sha256 == record.content.sha256
]

_decided(record, words) if {
	decisions := _decisions(record)
	count(decisions) > 0
	every decision in decisions { decision.decision in words }
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
	is_array(input.bundle.export_license.alternatives)
	count(input.bundle.export_license.alternatives) > 0
	every alternative in input.bundle.export_license.alternatives { _all_known(alternative) }
}

_use_known if {
	input.bundle.purpose in {"train", "eval", "tool", "environment"}
	input.bundle.exported == false
}

_use_known if {
	input.bundle.purpose in {"train", "eval", "tool", "environment"}
	input.bundle.exported == true
	_export_known
}

_worth(alternatives, verdicts) if {
	_use_known
	some alternative in alternatives
	is_array(alternative)
	count(alternative) > 0
	every key in alternative { _key_worth(key, verdicts) }
}

_key_worth(key, verdicts) if {
	row := data.policy.licenses.licenses[key]
	category := data.policy.licenses.categories[row.category]
	row.decision in verdicts
	category[input.bundle.purpose] in verdicts
	_export_worth(row, category, verdicts)
}

_export_worth(_, _, _) if input.bundle.exported == false

_export_worth(_, category, verdicts) if {
	input.bundle.exported == true
	category.export in verdicts
}

_export_worth(row, category, _) if {
	input.bundle.exported == true
	category.export == "listed"
	count(input.bundle.export_license.alternatives) > 0
	every alternative in input.bundle.export_license.alternatives {
		count(alternative) > 0
		every key in alternative { key in row.export_under }
	}
}
