package admission.lib.digest_test

import data.admission.lib.digest
import future.keywords.not

_hex := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

_texts := {
	"hex": _hex,
	"upper case": upper(_hex),
	"too short": substring(_hex, 1, -1),
	"too long": concat("", [_hex, "0"]),
	"prefixed": concat("", ["sha256:", _hex]),
	"second line": concat("\n", [_hex, "0"]),
	"empty": "",
	"number": 0,
	"null": null,
	"list": [_hex],
}

test_sha256 if {
	{name | some name, text in _texts; digest.sha256(text)} == {"hex"}
}

test_sha256_missing if not digest.sha256({}.text)
