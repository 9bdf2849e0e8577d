"""Routing: chooses the candidates of a call, and gets an answer from one of them."""
