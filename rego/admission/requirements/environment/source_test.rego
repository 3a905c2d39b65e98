package admission.requirements.environment.source_test

import data.admission.requirements.environment.source
import future.keywords.not

_hash := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

_clean := {"digest": "sha256:aa", "admitted": {"digest": "sha256:aa", "records": {"contacts-1": _hash}}}

test_admitted if {
	source.admitted with input as _clean
	every gone in ["admitted", "admitted/digest"] {
		not source.admitted with input as json.remove(_clean, [gone])
	}
	not source.admitted with input as object.union(_clean, {"admitted": {"digest": null}})
}

test_unchanged if {
	source.unchanged with input as _clean
	every gone in ["digest", "admitted", "admitted/digest"] {
		not source.unchanged with input as json.remove(_clean, [gone])
	}
	not source.unchanged with input as object.union(_clean, {"digest": "sha256:bb"})
	not source.unchanged with input as {"digest": null, "admitted": {"digest": null}}
}

test_content_unchanged if {
	record := {"id": "contacts-1", "sha256": _hash}
	source.content_unchanged(record) with input as _clean
	every wrong in [{"id": "contacts-2", "sha256": _hash}, {"id": "contacts-1", "sha256": "b"}, {"id": "contacts-1"}, {}] {
		not source.content_unchanged(wrong) with input as _clean
	}
	every gone in ["admitted", "admitted/records", "admitted/records/contacts-1"] {
		not source.content_unchanged(record) with input as json.remove(_clean, [gone])
	}
	not source.content_unchanged({"id": "a", "sha256": null}) with input as {"admitted": {"records": {"a": null}}}
}

test_known if {
	policy := {"environments": {"environments": {"contacts_sqlite": {}}}}
	source.known with input as {"environment": "contacts_sqlite"} with data.policy as policy
	not source.known with input as {"environment": "other"} with data.policy as policy
	not source.known with input as {} with data.policy as policy
	not source.known with input as {"environment": "contacts_sqlite"} with data.policy as {}
}
