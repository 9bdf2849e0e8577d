"""Runs the lines of the pages in docs/clients with the newest version of each client."""
