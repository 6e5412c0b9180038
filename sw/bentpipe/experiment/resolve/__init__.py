"""The second step: what tables say of each other. The result is an ``Experiment``.

Start reading with :mod:`~bentpipe.experiment.resolve.parse`; the parts of an experiment are in
:mod:`~bentpipe.experiment.resolve.specs`.
"""
