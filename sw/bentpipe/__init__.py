"""bentpipe: an ATM cell switch and link emulator in hardware, with the hosts in software."""

from bentpipe.compiled import install as _install_compiled_hosts

_install_compiled_hosts()
