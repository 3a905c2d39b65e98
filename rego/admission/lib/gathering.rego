# What the engine looks up while it gathers facts; requirements do not use it.
package admission.lib.gathering

import data.admission.lib.fetch
import data.admission.lib.host
import data.admission.lib.origin
import future.keywords.not

# The host name may be resolved: media by URL is enabled, and this host is admitted.
host_looked_up if {
	data.policy.media.allow_url_media_sources == true
	some form in host.names(input.media.url.host)
	form in data.policy.media.url.hosts
}

# The host name may be resolved: material may come from this host.
host_looked_up if origin.listed(input.network.url.host)

# The host name may be resolved: commands in the sandbox may connect to this host.
host_looked_up if fetch.tunnelled(input.network.url.host)

# The host name may be resolved: the remote model may be asked there.
host_looked_up if {
	some row in data.policy.llm.providers
	row.host == input.llm.url.host
}

# The sandbox in which a program would run: that of the requested profile, else of the profile of the package
# environment or the language.
backend := data.policy.sandbox.profiles[input.profile.value].backend if input.profile.stated == true

backend := data.policy.sandbox.profiles[data.policy.code.execution[input.action.language.value]].backend if {
	input.profile.stated == false
	input.packages.stated == false
}

backend := data.policy.sandbox.profiles[data.policy.sandbox.packages[input.packages.value].profile].backend if {
	input.profile.stated == false
	input.packages.stated == true
}
