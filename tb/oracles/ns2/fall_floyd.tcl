# One TCP transfer over one line, with losses by number: ns fall_floyd.tcl VARIANT DROPS TRACE SECONDS BUGFIX
#
# VARIANT: Tahoe, Reno, Newreno or Sack1. DROPS: data packets that are lost, from 0, as "14 26 28". BUGFIX: Tahoe's and
# Reno's bugFix_; false is as in 1996: fast retransmissions after another and after a time-out, too.
# Prints the times at which ns's nrexmit_ (time-outs) and ack_ (the highest packet acknowledged) change; TRACE gets ns's
# trace of the packets on the line.
#
# The line is that of K. Fall, S. Floyd, "Simulation-based comparisons of Tahoe, Reno and SACK TCP" (1996), section 4:
# 0.8 Mb/s, 100 ms, 1000 octets a packet, an ACK for each.

foreach {variant drops tracefile seconds bugfix} $argv break

Agent/TCP set packetSize_ 1000
Agent/TCP set overhead_ 0
Agent/TCP set window_ 105            ;# 100000 octets of 952
Agent/TCP set windowInit_ 1
Agent/TCP set syn_ false             ;# packets are numbered from the first with data
Agent/TCP set delay_growth_ false
Agent/TCP set singledup_ 0           ;# no limited transmit (RFC 3042)
Agent/TCP set tcpTick_ 0.5           ;# the clock of BSD
Agent/TCP set minrto_ 1.0            ;# two ticks of it
Agent/TCP set maxrto_ 64
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set timestamps_ false
Agent/TCP set bugFix_ $bugfix
Agent/TCP set slow_start_restart_ false
Agent/TCP/Newreno set bugFix_ true   ;# RFC 2582 section 5
Agent/TCP/Newreno set newreno_changes_ 0
Agent/TCP/Newreno set newreno_changes1_ 0        ;# slow-but-steady
Agent/TCP/Newreno set partial_window_deflation_ 1
Agent/TCP/Newreno set exit_recovery_fix_ 1       ;# cwnd = min(ssthresh, flight + 1)
Agent/TCP/Sack1 set bugFix_ true
Agent/TCP/Sack1 set partial_ack_ false           ;# a partial ACK takes 2 off pipe, as in 1996

set ns [new Simulator]
set source [$ns node]
set sink [$ns node]
$ns duplex-link $source $sink 0.8Mb 100ms DropTail
$ns queue-limit $source $sink 1000
set loss [new ErrorModel/List]
$loss unit pkt
$loss droplist $drops
$loss drop-target [new Agent/Null]
$ns lossmodel $loss $source $sink
$ns trace-queue $source $sink [set trace [open $tracefile w]]

if {$variant == "Tahoe"} { set tcp [new Agent/TCP] } else { set tcp [new Agent/TCP/$variant] }
if {$variant == "Sack1"} { set end [new Agent/TCPSink/Sack1] } else { set end [new Agent/TCPSink] }
$end set packetSize_ 48
$ns attach-agent $source $tcp
$ns attach-agent $sink $end
$ns connect $tcp $end
set ftp [new Application/FTP]
$ftp attach-agent $tcp

$tcp attach stdout
$tcp trace nrexmit_
$tcp trace ack_
$ns at 0.0 "$ftp produce 100"
$ns at $seconds "$ns flush-trace; close $trace; exit 0"
$ns run
