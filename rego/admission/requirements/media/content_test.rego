package admission.requirements.media.content_test

import data.admission.requirements.media.content
import future.keywords.not

_policy := {"media": {
	"kinds": {"image": {"media_types": ["image/png"], "max_bytes": 100}},
	"url": {"max_bytes": 50},
}}

_brought := {
	"kind": "image", "source": "base64", "media_type": "image/png",
	"readable": true, "size": {"stated": true, "bytes": 100},
}

_fetched := {"kind": "image", "source": "url", "media_type": "image/png", "size": {"stated": true, "bytes": 50}}

_size(media, size) := object.union(object.remove(media, ["size"]), {"size": size})

test_kind_admitted if {
	content.kind_admitted with input as {"media": _brought} with data.policy as _policy
	every kind in ["video", "Image", "", null] {
		media := object.union(_brought, {"kind": kind})
		not content.kind_admitted with input as {"media": media} with data.policy as _policy
	}
	not content.kind_admitted with input as {"media": {}} with data.policy as _policy
	not content.kind_admitted with input as {"media": _brought} with data.policy as {"media": {"kinds": {}}}
}

test_type_admitted if {
	content.type_admitted with input as {"media": _brought} with data.policy as _policy
	every media_type in ["image/svg+xml", "IMAGE/PNG", "", null] {
		media := object.union(_brought, {"media_type": media_type})
		not content.type_admitted with input as {"media": media} with data.policy as _policy
	}
	not content.type_admitted with input as {"media": {"kind": "image"}} with data.policy as _policy
	not content.type_admitted with input as {"media": _brought} with data.policy as {"media": {"kinds": {"image": {}}}}
}

test_readable if {
	content.readable with input as {"media": _brought}
	content.readable with input as {"media": _fetched}
	every media in [
		object.union(_brought, {"readable": false}),
		object.remove(_brought, ["readable"]),
		object.remove(_brought, ["source"]),
		object.remove(_fetched, ["source"]),
		{},
	] {
		not content.readable with input as {"media": media}
	}
}

test_as_stated if {
	every pair in [["image/png", ["image/png"]], ["text/csv", ["text/*"]], ["audio/ogg", ["audio/ogg", "video/ogg"]]] {
		media := {"source": "file", "media_type": pair[0], "types": pair[1]}
		content.as_stated with input as {"media": media}
	}
	content.as_stated with input as {"media": {"source": "url"}}
	every pair in [["image/png", ["text/*"]], ["image/png", []], ["text/plain", ["image/png"]], ["text/plain", null]] {
		media := {"source": "base64", "media_type": pair[0], "types": pair[1]}
		not content.as_stated with input as {"media": media}
	}
	every lost in ["source", "types", "media_type"] {
		# regal ignore:non-loop-expression
		media := {"source": "base64", "media_type": "image/png", "types": ["image/png"]}
		not content.as_stated with input as {"media": object.remove(media, [lost])}

		# regal ignore:non-loop-expression
		text := {"source": "base64", "media_type": "text/csv", "types": ["text/*"]}
		not content.as_stated with input as {"media": object.remove(text, [lost])}
	}
}

test_small_enough if {
	media := {
		"brought": _brought,
		"brought empty": _size(_brought, {"stated": true, "bytes": 0}),
		"brought larger": _size(_brought, {"stated": true, "bytes": 101}),
		"brought unmeasured": _size(_brought, {"stated": true}),
		"brought unstated": _size(_brought, {"stated": false}),
		"brought of no size": _size(_brought, {"stated": true, "bytes": null}),
		"brought of less than nothing": _size(_brought, {"stated": true, "bytes": -1}),
		"fetched": _fetched,
		"fetched unstated": _size(_fetched, {"stated": false}),
		"fetched larger": _size(_fetched, {"stated": true, "bytes": 51}),
		"fetched of a lost size": _size(_fetched, {"stated": true}),
		"fetched of nothing": object.remove(_fetched, ["size"]),
		"of no source": object.remove(_brought, ["source"]),
		"small and of no source": _size(object.remove(_brought, ["source"]), {"stated": true, "bytes": 1}),
		"small and not stated": _size(_brought, {"stated": null, "bytes": 1}),
	}
	held := {name |
		some name, one in media
		content.small_enough with input as {"media": one} with data.policy as _policy
	}
	held == {"brought", "brought empty", "fetched", "fetched unstated"}
}

test_small_enough_by_the_lower_limit if {
	policy := {"media": {"kinds": {"image": {"max_bytes": 40}}, "url": {"max_bytes": 50}}}
	not content.small_enough with input as {"media": _fetched} with data.policy as policy
}

test_small_enough_values_missing if {
	every policy in [{}, {"media": {"kinds": {"image": {}}, "url": {}}}, {"media": {"kinds": {}, "url": {}}}] {
		not content.small_enough with input as {"media": _brought} with data.policy as policy
		not content.small_enough with input as {"media": _fetched} with data.policy as policy
	}
	no_kind := {"media": {"kinds": {"image": {}}, "url": {"max_bytes": 50}}}
	not content.small_enough with input as {"media": _fetched} with data.policy as no_kind
	text := {"media": {"kinds": {"image": {"max_bytes": "many"}}, "url": {"max_bytes": "many"}}}
	not content.small_enough with input as {"media": _brought} with data.policy as text
	every bytes in [1, "1"] {
		not content.small_enough with input as {"media": _size(_fetched, {"stated": true, "bytes": bytes})}
			with data.policy as text
	}
	no_url := {"media": {"kinds": _policy.media.kinds, "url": {}}}
	not content.small_enough with input as {"media": _fetched} with data.policy as no_url
}
