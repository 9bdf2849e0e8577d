"""Data-loss prevention (docs/dlp.md).

decide      decides about findings; no other module does
labels      the labels that replace redacted values, and the values by label
channel     one text of an answer while it arrives: releases the text in pieces, and redacts where a rule requires it
stream      the events of a stream in order; each waits until its texts are released
inspection  the findings of one request, for its record
"""
