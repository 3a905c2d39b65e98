"""The state of several engines in one PostgreSQL database. Needs the extra `postgres`; the only package with psycopg."""
