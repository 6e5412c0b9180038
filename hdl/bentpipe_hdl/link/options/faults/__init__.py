"""Outages, and errors that come in bursts."""
