"""The sandboxes of this machine: the registry, the evidence of what each enforces, the installation of gVisor."""
