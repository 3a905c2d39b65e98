package admission.requirements.media.file_test

import data.admission.requirements.media.file
import future.keywords.not

_policy := {"media": {"max_names": 1}}

_file := {"source": "file", "inside": true, "names": 1}

test_inside if {
	every media in [_file, {"source": "base64"}, {"source": "url"}] {
		file.inside with input as {"media": media}
	}
	every media in [
		{"source": "file"}, {"source": "file", "inside": false}, {"source": "file", "inside": 1}, {}, {"inside": true},
		{"source": "other", "inside": true},
	] {
		not file.inside with input as {"media": media}
	}
}

test_one_name if {
	every media in [_file, {"source": "base64"}, {"source": "url"}] {
		file.one_name with input as {"media": media} with data.policy as _policy
	}
	every names in [0, 2, null, "1"] {
		media := object.union(_file, {"names": names})
		not file.one_name with input as {"media": media} with data.policy as _policy
	}
	not file.one_name with input as {"media": {"source": "file"}} with data.policy as _policy
	not file.one_name with input as {"media": _file} with data.policy as {}
	not file.one_name with input as {} with data.policy as _policy
	not file.one_name with input as {"media": {"names": 1}} with data.policy as _policy
	not file.one_name with input as {"media": {"source": "other", "names": 1}} with data.policy as _policy
	many := {"media": {"max_names": "many"}}
	not file.one_name with input as {"media": object.union(_file, {"names": "1"})} with data.policy as many
}
