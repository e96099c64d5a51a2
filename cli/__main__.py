"""``python -m cli``: the command line by its module, for processes of ours that start others."""

from __future__ import annotations

from cli.main import main

main()
