# What the engine asks before it gathers facts; no requirement asks it.
package admission.lib.gathering

import future.keywords.not

# The name of this host may be told to a resolver: media is fetched by address, and from this host.
host_looked_up if {
	data.policy.media.allow_url_media_sources == true
	input.media.url.host in data.policy.media.url.hosts
}

# The sandbox in which a program would run: that of the profile it names, else that of the profile of its language.
backend := data.policy.sandbox.profiles[input.profile.value].backend if input.profile.stated == true

backend := data.policy.sandbox.profiles[data.policy.code.execution[input.action.language.value]].backend if {
	input.profile.stated == false
}
