package admission.requirements.export.content_test

import data.admission.requirements.export.content
import future.keywords.not

_policy := {"export": {
	"treatments": {"fixture": ["fixture", "redact"], "external": ["redact"]},
	"repeated_words": 8,
	"sample_bytes": 10,
}}

_origin := {"id": "0", "kind": "external", "sensitive": false}

_sample := {"secrets": 0, "private": 0, "bytes": 10, "shared": [], "provenance": [_origin]}

_with(change) := object.union(_sample, change)

_shared := {"export": false, "named": true, "words": 8, "apart": 8, "whole": false}

_repeats(change) := _with({"shared": [_shared, object.union(_shared, change)]})

_sensitive := {"provenance": [_origin, object.union(_origin, {"sensitive": true})]}

_samples := {
	"clean": _sample,
	"secret": _with({"secrets": 1}),
	"not searched": json.remove(_sample, ["secrets", "private"]),
	"private": _with({"private": 1}),
	"private, redacted": _with({"private": 1, "treatment": "redact"}),
	"private, as a fixture": _with({"private": 1, "treatment": "fixture"}),
	"sensitive": _with(_sensitive),
	"sensitive, redacted": _with(object.union(_sensitive, {"treatment": "redact"})),
	"no provenance": _with({"private": 1, "treatment": "redact", "provenance": []}),
	"short quote": _repeats({}),
	"long quote": _repeats({"words": 16}),
	"whole": _repeats({"whole": true}),
	"exportable": _repeats({"words": 16, "whole": true, "export": true}),
	"exportable, not named": _repeats({"words": 16, "apart": 16, "export": true, "named": false}),
	"exportable, little apart": _repeats({"words": 16, "apart": 8, "export": true, "named": false}),
	"exportable, a whole one apart": _repeats({"words": 8, "apart": 8, "export": true, "named": false, "whole": true}),
	"exportable, nothing apart": _repeats({"words": 16, "apart": 0, "export": true, "named": false, "whole": true}),
	"not exportable, nothing apart": _repeats({"words": 16, "apart": 0}),
	"not compared": json.remove(_sample, ["shared"]),
	"large": _with({"bytes": 11}),
	"no size": json.remove(_sample, ["bytes"]),
}

_all := object.keys(_samples)

test_no_secret if _all - {name | some name, one in _samples; content.no_secret(one)} == {"secret", "not searched"}

test_no_private_data if {
	held := {name | some name, one in _samples; content.no_private_data(one) with data.policy as _policy}
	_all - held == {"not searched", "private", "private, as a fixture", "no provenance"}
	not content.no_private_data(_samples["private, redacted"]) with data.policy as {}
}

test_sensitive_treated if {
	held := {name | some name, one in _samples; content.sensitive_treated(one) with data.policy as _policy}
	_all - held == {"sensitive", "no provenance"}
	not content.sensitive_treated(_samples["sensitive, redacted"]) with data.policy as {}
	not content.sensitive_treated({"provenance": [{"id": "0"}]}) with data.policy as _policy
}

test_no_licensed_text if {
	held := {name | some name, one in _samples; content.no_licensed_text(one) with data.policy as _policy}
	refused := {
		"long quote", "whole", "exportable, not named", "exportable, a whole one apart", "not exportable, nothing apart",
		"not compared",
	}
	_all - held == refused
	not content.no_licensed_text(_samples["short quote"]) with data.policy as {}
}

test_small_enough if {
	held := {name | some name, one in _samples; content.small_enough(one) with data.policy as _policy}
	_all - held == {"large", "no size"}
	every one in _samples {
		not content.small_enough(one) with data.policy as {}
	}
}

test_of_another_type if {
	little := object.union(_shared, {"export": true, "named": false})
	every wrong in [null, true, "", [], {}] {
		not content.no_secret(_with({"secrets": wrong}))
		not content.no_private_data(_with({"private": wrong})) with data.policy as _policy
		not content.small_enough(_with({"bytes": wrong})) with data.policy as _policy
		not content.no_licensed_text(_repeats({"words": wrong})) with data.policy as _policy
		apart := {"words": 16, "apart": wrong, "export": true, "named": false}
		not content.no_licensed_text(_repeats(apart)) with data.policy as _policy
		policy := {"export": {"sample_bytes": wrong, "repeated_words": wrong}}
		not content.small_enough(_sample) with data.policy as policy
		not content.no_licensed_text(_samples["short quote"]) with data.policy as policy
		not content.no_licensed_text(_with({"shared": [little]})) with data.policy as policy
	}
	every wrong in [null, true, "", {}] {
		not content.no_licensed_text(_with({"shared": wrong})) with data.policy as _policy
	}
}
