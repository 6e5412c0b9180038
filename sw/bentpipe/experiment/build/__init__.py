"""The third step: nodes, lines, VCs, hosts and flows of an experiment.

Start reading with :mod:`~bentpipe.experiment.build.network` and :mod:`~bentpipe.experiment.build.hosts`.
"""
