"""The two model tiers: they run outside of every event loop, and answer in bounded time.

tiers       each tier's queue and its one thread; models are loaded on their first request
process     the process of both tiers, one for each home: if it hangs, crashes or runs out of memory, only it ends
guard       ends that process if a batch takes too long or the memory is used up
wire        the messages on its socket
detectors   the common part of all clients: time budget, bound, cache
client      the client of the process
in_process  the tiers in threads of the current process, for the command line
"""
