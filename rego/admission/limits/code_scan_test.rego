package admission.limits.code_scan_test

import data.admission.limits.code_scan
import future.keywords.not

_input := {"code_sha256": "aa", "scan": {"language": "python", "complete": true}}

test_complete if {
	code_scan.limits == {"language": "python", "code_sha256": "aa", "complete": true} with input as _input
}

test_incomplete if {
	every path in ["code_sha256", "scan/language", "scan/complete"] {
		not code_scan.limits with input as json.remove(_input, [path])
	}
	not code_scan.limits with input as {"code_sha256": "aa", "scan": {"language": "python", "complete": false}}
	not code_scan.limits with input as {"code_sha256": "aa", "scan": {"language": null, "complete": true}}
}
