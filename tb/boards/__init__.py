"""What tests of boards share."""
