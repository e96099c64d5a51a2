"""The command line: who asks."""
