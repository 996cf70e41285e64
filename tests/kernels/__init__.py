"""The notebook surface in kernels of other versions than the one that is installed."""
