"""Runs the two model tiers outside of all event loops, and answers requests in bounded time.

tiers       the queue and the single thread of each tier; a model is loaded at its first request
process     the detection process, which runs both tiers; there is one for each `GATEHOUSE_HOME`, and no other process
            is affected if it hangs, crashes or runs out of memory
guard       ends the detection process if a batch takes too long or memory is exhausted
wire        the messages on the socket of the detection process
detectors   the base class of all clients: time budget, limit of waiting texts, cache
client      the client of the detection process
"""
