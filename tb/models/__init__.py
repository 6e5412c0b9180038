"""Reference models, written from the standards and never from the RTL: they judge the RTL."""
