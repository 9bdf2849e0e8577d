"""The portal as a server: the application, its middleware and its process."""
