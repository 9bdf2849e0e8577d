"""Senders: one module for each type of receiver. A batch is sent completely and in order, and is treated as sent when
the receiver has received it."""
