"""Keeping an installation: what is wrong with it (`gatehouse doctor`), saving it and bringing it back."""
