package admission.added.lib.names

import future.keywords.not

# The team is what stands before the first hyphen.
team(alias) := split(alias, "-")[0]
