package admission.lib.gathering_test

import data.admission.lib.gathering
import future.keywords.not

_policy := {
	"media": {"allow_url_media_sources": true, "url": {"hosts": ["a.example.org"]}},
	"code": {"execution": {"python": "offline"}},
	"sandbox": {
		"profiles": {"offline": {"backend": "bubblewrap"}, "strict": {"backend": "gvisor"}},
		"packages": {"science": {"profile": "strict"}},
	},
}

test_host_looked_up if {
	gathering.host_looked_up with input as _host("a.example.org") with data.policy as _policy
	every host in ["b.example.org", "x.a.example.org", "", null] {
		not gathering.host_looked_up with input as _host(host) with data.policy as _policy
	}
	every gone in ["media", "media/allow_url_media_sources", "media/url", "media/url/hosts", "media/url/hosts/0"] {
		not gathering.host_looked_up with input as _host("a.example.org") with data.policy as json.remove(_policy, [gone])
	}
	off := object.union(_policy, {"media": {"allow_url_media_sources": false}})
	not gathering.host_looked_up with input as _host("a.example.org") with data.policy as off
}

test_host_of_a_fetch_looked_up if {
	policy := {"networks": {"hosts": ["a.example.org"]}}
	gathering.host_looked_up with input as _fetched("a.example.org") with data.policy as policy
	every host in ["b.example.org", "x.a.example.org", "", null] {
		not gathering.host_looked_up with input as _fetched(host) with data.policy as policy
	}
	every gone in [{}, {"networks": {}}, {"networks": {"hosts": []}}] {
		not gathering.host_looked_up with input as _fetched("a.example.org") with data.policy as gone
	}
}

test_host_of_a_tunnel_looked_up if {
	policy := {"networks": {"tunnels": {"hosts": ["a.example.org"]}}}
	gathering.host_looked_up with input as _fetched("a.example.org") with data.policy as policy
	every host in ["b.example.org", "x.a.example.org", "", null] {
		not gathering.host_looked_up with input as _fetched(host) with data.policy as policy
	}
}

test_host_of_a_remote_model_looked_up if {
	policy := {"llm": {"providers": {"a": {"host": "a.example.org"}}}}
	gathering.host_looked_up with input as _asked_of("a.example.org") with data.policy as policy
	every host in ["b.example.org", "x.a.example.org", "", null] {
		not gathering.host_looked_up with input as _asked_of(host) with data.policy as policy
	}
	every gone in [{}, {"llm": {}}, {"llm": {"providers": {}}}, {"llm": {"providers": {"a": {}}}}] {
		not gathering.host_looked_up with input as _asked_of("a.example.org") with data.policy as gone
	}
}

test_a_profile_counts_where_it_is_stated if {
	every stated in [null, "true"] {
		asked := object.union(_unasked("python"), {"profile": {"stated": stated, "value": "strict"}})
		not gathering.backend with input as asked with data.policy as _policy
	}
	unstated := object.union(_unasked("python"), {"profile": {"value": "strict"}})
	gathering.backend == "bubblewrap" with input as unstated with data.policy as _policy
}

test_backend_of_packages if {
	gathering.backend == "gvisor" with input as _science with data.policy as _policy
	every change in [{"value": "magic"}, {"value": null}, {"stated": null}] {
		not gathering.backend with input as object.union(_science, {"packages": change}) with data.policy as _policy
	}
	asked := object.union(_science, {"profile": {"stated": true, "value": "offline"}})
	gathering.backend == "bubblewrap" with input as asked with data.policy as _policy
}

test_backend if {
	gathering.backend == "gvisor" with input as _asked("strict") with data.policy as _policy
	gathering.backend == "bubblewrap" with input as _unasked("python") with data.policy as _policy

	# regal ignore:line-length
	every asked in [_asked("other"), _unasked("cobol"), {"action": {"language": {"value": "python"}}}, {"profile": {"stated": true}}] {
		not gathering.backend with input as asked with data.policy as _policy
	}

	# regal ignore:line-length
	not gathering.backend with input as _asked("strict") with data.policy as json.remove(_policy, ["sandbox/profiles/strict"])
}

_asked(profile) := {"profile": {"stated": true, "value": profile}, "action": {"language": {"value": "python"}}}

_unasked(language) := {
	"profile": {"stated": false}, "packages": {"stated": false}, "action": {"language": {"value": language}},
}

_science := object.union(_unasked("python"), {"packages": {"stated": true, "value": "science"}})

_host(name) := {"media": {"url": {"host": name}}}

_asked_of(name) := {"llm": {"url": {"host": name}}}

_fetched(name) := {"network": {"url": {"host": name}}}
