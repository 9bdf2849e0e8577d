"""Types of receivers, a module each. A batch is sent whole and in its order; it counts once the receiver has it."""
