"""Exit codes of commands that a signal ended (:mod:`bentpipe.signals`)."""

import signal

import pytest

from bentpipe import signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_exit_code_is_that_of_the_last_signal(number):
    with pytest.raises(signals.Interrupted, match=signal.Signals(number).name), signals.heeded():
        signal.raise_signal(number)
    assert signals.exit_code() == 128 + number


def test_a_signal_of_an_earlier_command_of_the_process_does_not_count():
    with pytest.raises(signals.Interrupted), signals.heeded():
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), signals.heeded():
        raise KeyboardInterrupt
    assert signals.exit_code() == 130
