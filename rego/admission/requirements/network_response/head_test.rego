package admission.requirements.network_response.head_test

import data.admission.requirements.network_response.head
import future.keywords.not

_policy := {"networks": {"fetch": {"media_types": ["application/json"], "charsets": ["UTF-8"]}}}

_head(name, value) := {"head": {name: value}}

test_stays if {
	held := {status |
		some status in [200, 204, 299, 300, 301, 308, 399, 400, 500, "200", null, true, [], {}]
		head.stays with input as _head("status", status)
	}
	held == {200, 204, 299, 400, 500}
	not head.stays with input as {}
}

test_ok if {
	held := {status |
		some status in [200, 201, 204, 206, 302, 404, 500, "200"]
		head.ok with input as _head("status", status)
	}
	held == {200}
	not head.ok with input as {}
}

test_type_admitted if {
	held := {type |
		some type in ["application/json", "application/ld+json", "text/html", "image/png", "", null]
		head.type_admitted with input as _typed(type, {"stated": false}) with data.policy as _policy
	}
	held == {"application/json"}
	every media in [{"stated": "false"}, {"stated": true}, {}] {
		not head.type_admitted with input as _typed("application/json", media) with data.policy as _policy
	}
	not head.type_admitted with input as _head("media_type", "application/json") with data.policy as _policy
	not head.type_admitted with input as {"head": {}, "media": {"stated": false}} with data.policy as _policy
	not head.type_admitted with input as _typed("application/json", {"stated": false}) with data.policy as {}
}

test_type_of_media_admitted if {
	held := {type |
		some type in ["application/json", "image/png", "image/jpeg", "", null]
		head.type_admitted with input as _typed(type, {"stated": true, "media_type": "image/png"}) with data.policy as _policy
	}
	held == {"image/png"}
	not head.type_admitted with input as {"head": {}, "media": {"stated": true}}
	not head.type_admitted with input as _typed(null, {"stated": true, "media_type": null})
	not head.type_admitted with input as _typed("image/png", {"media_type": "image/png"})
}

_typed(type, media) := {"head": {"media_type": type}, "media": media}

test_charset_admitted if {
	held := {charset |
		some charset in ["UTF-8", "UTF-16", "", null]
		head.charset_admitted with input as _stated(charset) with data.policy as _policy
	}
	held == {"UTF-8"}
	head.charset_admitted with input as {"head": {"charset_stated": false}}
	not head.charset_admitted with input as {"head": {"charset_stated": true}} with data.policy as _policy
	not head.charset_admitted with input as {"head": {"charset": "UTF-8"}} with data.policy as _policy
	not head.charset_admitted with input as {"head": {}} with data.policy as _policy
	not head.charset_admitted with input as _stated("UTF-8") with data.policy as {}
}

_stated(charset) := {"head": {"charset_stated": true, "charset": charset}}

test_plain if {
	held := {one | some one in ["identity", "gzip", "br", ""]; head.plain with input as _head("content_encoding", one)}
	held == {"identity"}
	not head.plain with input as {"head": {}}
}

test_framed if {
	held := {one | some one in ["length", "chunked", "both", "close"]; head.framed with input as _head("framing", one)}
	held == {"length", "chunked"}
	not head.framed with input as {"head": {}}
}
