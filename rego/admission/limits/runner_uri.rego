# The runner to use, and whether TLS is required.
package admission.limits.runner_uri

import data.admission.lib.runner
import future.keywords.not

limits := {"uri": runner.address, "encrypted": true} if {
	is_string(runner.address)
	runner.encrypted
}

limits := {"uri": runner.address, "encrypted": false} if {
	is_string(runner.address)
	runner.plain
}
