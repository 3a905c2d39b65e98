# What a fetch is held to at both of its decision points.
package admission.lib.fetch

import future.keywords.not

# The only HTTP status whose body is material.
status := 200
