"""Reads the results of batches, and renders them in the form of the batch's API."""
