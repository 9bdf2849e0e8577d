"""The lines of the results, in the form of the batch's API."""
