"""What is done about findings: one decision, redaction with labels, whole bodies and streams (reference 3, DLP rule;
decisions of the contract: DLP, filters, compliance, policy).

decide      findings to actions: the one place
labels      what stands in the place of a redacted value, and the way back
channel     one text of an answer as it comes: what may go on, changed where it must be
stream      a stream's events in order, held back until their texts may go on
inspection  what one request has been found to hold, for its record
"""
