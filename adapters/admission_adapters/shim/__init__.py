"""Adapters: tools of this program offered to others under an admitted manifest. Read `host`, then `server`."""
