package admission.lib.llm_test

import data.admission.lib.llm
import future.keywords.not

_policy := {"llm": {"providers": {
	"a": {"host": "a.example", "port": 443},
	"b": {"host": "b.example", "port": 8443},
}}}

_at(host, port) := {"llm": {"url": {"host": host, "port": port}}}

test_provider if {
	llm.provider == "a" with input as _at("a.example", 443) with data.policy as _policy
	llm.provider == "b" with input as _at("b.example", 8443) with data.policy as _policy
	every request in [
		_at("a.example", 8443),
		_at("x.a.example", 443),
		_at("", 443),
		_at(null, 443),
		{"llm": {"url": {"port": 443}}},
		{"llm": {"url": {"host": "a.example"}}},
		{},
	] {
		not llm.provider with input as request with data.policy as _policy
	}
	every policy in [{}, {"llm": {}}, {"llm": {"providers": {}}}, {"llm": {"providers": {"a": {"host": "a.example"}}}}] {
		not llm.provider with input as _at("a.example", 443) with data.policy as policy
	}
}
