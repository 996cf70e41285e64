"""The impure half: performs what the core decides, and puts it on disk first."""
