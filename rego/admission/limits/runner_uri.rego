# The runner to use, whether TLS is required, and whether it gets credentials.
package admission.limits.runner_uri

import data.admission.lib.runner
import future.keywords.not

limits := {"uri": runner.address, "encrypted": true, "credentials": runner.credentials} if {
	is_string(runner.address)
	runner.encrypted
}

limits := {"uri": runner.address, "encrypted": false, "credentials": runner.credentials} if {
	is_string(runner.address)
	runner.plain
}
