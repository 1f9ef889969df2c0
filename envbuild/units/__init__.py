"""Systemd units of an environment: rendered from its recipe, compared with what is there."""
