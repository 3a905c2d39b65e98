"""The state of several engines in one PostgreSQL database; needs the extra `postgres`."""
