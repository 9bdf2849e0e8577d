"""Totals of the requests in a batch: by minute, hour, day, model, model alias and budget."""
