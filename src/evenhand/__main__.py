"""``python -m evenhand`` is the command line."""

from evenhand.cli.app import main

main()
