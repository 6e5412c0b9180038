"""The network interface: AAL5 both ways."""
