"""The hands: whatever touches disks, networks or processes of others, each under a permit."""
