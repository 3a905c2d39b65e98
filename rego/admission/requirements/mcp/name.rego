package admission.requirements.mcp.name

import future.keywords.not

# METADATA
# title: No two tools have the same local name
# description: The local name is mcp_<server>__<tool>, in letters that every model provider takes; two tools of one
#   name could not be told apart.
# custom:
#   code: tool_name_collision
#   each: tools
#   empty: allowed
#   remedy: Have one of the tools renamed at its server, or leave its server out
# labels:
#   row: B37
unique(tool) if tool.collides == false

# METADATA
# title: No two tools have names that look alike
# description: Names that differ in letter case only, or in letters that look the same, are taken for one another by
#   people and models.
# custom:
#   code: tool_name_confusable
#   each: tools
#   empty: allowed
#   after: [tool_name_collision]
#   remedy: Have one of the tools renamed at its server, or leave its server out
# labels:
#   row: H14
distinct(tool) if tool.confusable == false
