"""Facts that gather computes from what others wrote, one source of facts a file; nothing is judged."""
