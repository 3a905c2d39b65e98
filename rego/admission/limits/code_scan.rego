# The code that was scanned, all of it.
package admission.limits.code_scan

import future.keywords.not

limits := {"language": input.scan.language, "code_sha256": input.code_sha256, "complete": input.scan.complete} if {
	is_string(input.scan.language)
	input.scan.complete == true
}
