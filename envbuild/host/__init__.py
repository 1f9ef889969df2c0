"""What this machine is: its driver and cards, its kernel and devices, as they say themselves."""
