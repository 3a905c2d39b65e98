package admission.requirements.tool_call.folder_test

import data.admission.requirements.tool_call.folder
import future.keywords.not

test_narrow if {
	folder.narrow with input as {"asked": {"cwd": "/work"}}
	folder.narrow with input as {"asked": {}}
	every cwd in ["/", "", "work", null, 0, ["/work"]] {
		not folder.narrow with input as {"asked": {"cwd": cwd}}
	}
}
