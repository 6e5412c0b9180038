"""Histograms of queues and delays."""
