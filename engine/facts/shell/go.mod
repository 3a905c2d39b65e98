module admission-engine/shell_parser

go 1.26.0

tool admission-engine/shell_parser

require mvdan.cc/sh/v3 v3.14.1
