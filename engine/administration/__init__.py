"""Administrative acts, and the control socket on which a running engine accepts them."""
