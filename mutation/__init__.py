"""Changes one condition after another and asks whether the tests notice; a tool of developers, not of the product."""
