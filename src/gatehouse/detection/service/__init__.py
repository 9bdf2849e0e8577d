"""Where the two model tiers run, and how they are asked: in bounded time, off every event loop.

tiers       each tier's queue and its one thread; models are loaded on their first request
process     the process that holds both, one a home: it may hang, run out of memory or crash, and only it ends
guard       what ends it: a batch that takes too long, memory that is used up
wire        what goes over its socket
detectors   what all askers have in common: time budget, bound, cache
client      asks the process
in_process  asks threads of the own process, for the command line
"""
