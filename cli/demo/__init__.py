"""The demonstration dataset: small, made up, believable, and with four faults planted on purpose."""
