"""`python -m gatehouse`: the command line."""

from gatehouse.cli import main

main()
