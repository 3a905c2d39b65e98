# Many requests in one: what is wrong with each of `input.items`, in their order.
package deny_set.batch

license := [deny |
	some item in input.items
	deny := data.deny_set.license.deny with input as item
]

source := [deny |
	some item in input.items
	deny := data.deny_set.source.deny with input as item
]
