"""Facts about URLs, hosts and addresses, in their only canonical form."""
