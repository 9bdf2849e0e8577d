"""Runs the examples on the pages in docs/clients with the newest version of each client."""
