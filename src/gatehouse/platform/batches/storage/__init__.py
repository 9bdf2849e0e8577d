"""Rows of files, batches and their lines, and the encryption of their contents.

batch:  validating -> in_progress -> finalizing -> completed
        validating, in_progress -> cancelling -> finalizing -> cancelled
        in_progress -> finalizing -> failed   the creator's credential was revoked, or no storage is left
        in_progress -> finalizing -> expired  the time of the batch ended
line:   pending -> running -> succeeded, errored
        running -> errored    without a result: its process ended while it ran
        pending -> cancelled, expired
"""
