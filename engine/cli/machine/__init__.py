"""`engine doctor` and `engine sandbox`: what this machine offers."""
