"""The one way out of a sandbox: a proxy for tunnels, each decided on by its host."""
