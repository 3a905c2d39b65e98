# Where a record says it comes from.
#
# `remote` is a fact of the engine: the record names a URL. It is a boolean of its own and not the
# absence of `url`, so that a record that lost its URL does not turn into an offline one.
package admission.lib.origin

import future.keywords.not

# Nothing was or will be retrieved over the network for this record.
offline(record) if {
	record.kind in {"fixture", "synthetic", "transformed"}
	record.remote == false
}

# The record was or will be retrieved from one address.
external(record) if {
	record.kind == "external"
	record.remote == true
	is_object(record.url)
}
