/* The border in C, of attached ends: hosts of some NICs are outside, and time passes with the machine's clock. */
#ifndef BENTPIPE_ATTACH_H
#define BENTPIPE_ATTACH_H
#include "network.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { BP_BINS = 1216 }; /* 0 to 31 ns have one each, then each octave 32 */
typedef struct {
    uint64_t count;
    int64_t least, most, sum; /* ns */
    uint64_t bins[1216];
} bp_histogram;
typedef struct {
    uint64_t arrived, arrived_octets; /* frames, packets or cells that came, whatever they were */
    uint64_t malformed, too_long, hec_errors, no_vc, no_vlan, oam, pdu_wrong, early, queue_full, kernel_full; /* of these: gone before the network */
    uint64_t injected, injected_octets, refused, late, late_dropped; /* SDUs given to the network; the NIC's queue was full; late ones */
    uint64_t received, not_ours, wrong[8]; /* whole SDUs from the network; of another encapsulation; PDUs by status */
    uint64_t out_late, out_late_dropped, out_full;
    uint64_t released, released_octets, unsent; /* SDUs that left; that the interface did not take */
    int32_t gone; /* the error by which its interface went away, or 0 */
} bp_end_counts;
typedef struct {
    uint32_t nic, carries, transport; /* carries 0 frames, 1 packets, 2 cells, 3 dynamips' cells; transport 0 packet socket, 1 device, 2 datagrams */
    int32_t fd;
    uint32_t longest, queue; /* octets of a frame or packet, PDUs at the NIC */
} bp_end;

/* Time: `computing` ns behind the clock; what leaves is released `lag` ns after its simulated time. Late: 0 reported, 1
   dropped, 2 ends the run. */
int bp_attach(bp_net*, uint64_t computing, uint64_t lag, uint32_t late);
int bp_attach_end(bp_net*, const bp_end*); /* its number */
typedef struct {
    uint32_t from, to, vc, vpi, vpi_there, vci;
    uint64_t delay; /* ns that it is to take */
    int32_t vlan, vlan_there; /* VLAN of its frames at either end, as bp::End::Vc */
} bp_attached_vc;
void bp_attach_vc(bp_net*, const bp_attached_vc*); /* from an end's NIC to another's, with its VPIs on their lines */
int bp_attach_record(bp_net*, const char* path); /* what is injected goes there, from now on */
int bp_attach_close(bp_net*);                    /* ends that file and the threads; the error number of its failed write */
int bp_attach_failed(bp_net*);                   /* the same so far; nothing is written behind it */
/* Simulated time 0 is now, or at this time of day (ns since 1970; what comes before is dropped); the ids of the threads
   that read and release. Until then nothing may run. */
int bp_attach_begin(bp_net*, uint64_t at, int32_t threads[2]);
int64_t bp_attach_now(bp_net*); /* ns since simulated time 0 by the clock; negative before. It follows the time of day until then. */
int bp_attach_replay(bp_net*, const char* path);  /* instead: without a clock, what such a file has */
/* Instead, for tests: a clock that moves when it is waited for, and may stand `length` ns at a time; what comes at an end, and is read later. */
void bp_attach_by_hand(bp_net*);
void bp_attach_stall(bp_net*, uint64_t at, uint64_t length);
void bp_attach_arrive(bp_net*, uint32_t end, uint64_t at, uint64_t read, const uint8_t* octets, uint32_t length);
typedef struct {
    uint32_t end, length;
    uint64_t due, at; /* ns */
    const uint8_t* octets;
} bp_release;
int bp_attach_released(bp_net*, uint32_t number, bp_release*); /* by hand: what left, in order; 0: no more */

void bp_attach_counts(bp_net*, uint32_t end, bp_end_counts*);
/* PDUs that the full queue of its NIC refused on a VC out of it; that came on a VC to it with EFCI in their last cell. */
uint64_t bp_attach_refused(bp_net*, uint32_t end, uint32_t vc);
uint64_t bp_attach_congested(bp_net*, uint32_t end, uint32_t vc);
/* 0 injected so late, 1 computed so late, 2 released so long after their time, 3 on the way to `end` from arrival to release beyond the VC's delay */
void bp_attach_histogram(bp_net*, uint32_t what, uint32_t end, bp_histogram*);
uint64_t bp_attach_behind(bp_net*, int most); /* ns by which simulated time is behind its own now; the most so far */
int bp_attach_over(bp_net*); /* 1: a late packet has ended the run, 2: an interface is gone */

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
