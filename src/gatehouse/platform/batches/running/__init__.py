"""Runs the lines of batches in the workers. Each line is a call of the batch's creator, and passes the engine's
pipeline.

A batch runs in turns of `TURN_SECONDS`. Each turn is a job that one worker leases; the next turn is queued behind the
turns of other batches. So a batch continues after the end of a process, and a long batch does not delay others.

A line is marked as running before its call. If the process ends in the meantime, the next turn marks the line as
errored and does not run it again, because the provider may have received it. So no line has two usage records.
"""
