package admission.requirements.mcp.name_test

import data.admission.requirements.mcp.name
import future.keywords.not

_tools := {
	"clean": {"id": "a", "collides": false, "confusable": false},
	"collides": {"id": "a", "collides": true, "confusable": false},
	"confusable": {"id": "a", "collides": false, "confusable": true},
	"nothing said": {"id": "a"},
	"null": {"id": "a", "collides": null, "confusable": null},
	"no words": {"id": "a", "collides": "false", "confusable": 0},
}

test_unique if {
	{key | some key, tool in _tools; name.unique(tool)} == {"clean", "confusable"}
}

test_distinct if {
	{key | some key, tool in _tools; name.distinct(tool)} == {"clean", "collides"}
}
