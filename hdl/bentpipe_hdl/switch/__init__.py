"""The shared-buffer cell switch and its parts."""
