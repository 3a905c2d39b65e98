package admission.lib.media_test

import data.admission.lib.media
import future.keywords.not

test_source if {
	every source in ["base64", "file"] {
		media.brought with input as {"media": {"source": source}}
		not media.by_url with input as {"media": {"source": source}}
	}
	media.by_url with input as {"media": {"source": "url"}}
	not media.brought with input as {"media": {"source": "url"}}
}

test_by_file if {
	held := {source |
		some source in ["base64", "file", "url", "", null]
		media.by_file with input as {"media": {"source": source}}
	}
	held == {"file"}
	not media.by_file with input as {"media": {}}
}

test_source_missing if {
	every request in [{}, {"media": {}}, {"media": {"source": null}}, {"media": {"source": ""}}] {
		not media.brought with input as request
		not media.by_url with input as request
	}
}
