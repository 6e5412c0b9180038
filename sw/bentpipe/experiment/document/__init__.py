"""The first step from a file to an experiment: a document's text, its tables, each by itself, and values put into it.

Start reading with :mod:`~bentpipe.experiment.document.tables`.
"""
