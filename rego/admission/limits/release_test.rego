package admission.limits.release_test

import data.admission.limits.release
import future.keywords.not

_input := {"version": "1", "change": {"commit": "c"}, "stage": "preview", "features": [{"id": "colors"}]}

test_limits if {
	wanted := {"version": "1", "commit": "c", "stage": "preview", "features": ["colors"]}
	release.limits == wanted with input as _input
	every path in ["version", "change/commit", "stage", "features", "features/0/id"] {
		not release.limits with input as json.remove(_input, [path])
	}
}
