"""Data-loss prevention: the decision about findings, redaction with labels, whole bodies and streams (docs/dlp.md).

decide      the decision about findings, made only here
labels      labels that replace redacted values, and the way back to the values
channel     one text of an answer while it arrives: releases it piece by piece, redacted where a rule demands it
stream      the events of a stream in order, each held back until its texts are released
inspection  the findings of one request, for its record
"""
