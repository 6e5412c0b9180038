"""The fourth step: an experiment runs, is saved, goes on from a state, and splits.

Start reading with :mod:`~bentpipe.experiment.run.perform`, which writes a run folder.
"""
