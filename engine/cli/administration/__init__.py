"""`engine approvals`, `engine tokens`, and how the command line performs administrative acts."""
