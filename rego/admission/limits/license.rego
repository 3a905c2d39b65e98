# What the content may be used for.
package admission.limits.license

import future.keywords.not

limits := {"purpose": input.purpose, "export": {"allowed": input.exported}} if {
	is_string(input.purpose)
	is_boolean(input.exported)
}
