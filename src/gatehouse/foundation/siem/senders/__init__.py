"""Senders, one module for each type of receiver. A batch is sent whole and in order, and counts as sent once the
receiver has it."""
