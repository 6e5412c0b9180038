/* The border of the native harness: C functions, no globals. Times are ticks. */
#ifndef BENTPIPE_NETWORK_H
#define BENTPIPE_NETWORK_H
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef struct bp_net bp_net;

typedef struct {
    uint64_t tick;
    uint32_t nic, vc;
    uint16_t status, congested; /* congested: the PDU's last cell had EFCI */
    uint32_t length, handle, head_length;
    uint8_t head[128];
    uint32_t sum; /* of all its octets: ones' complement (RFC 1071), not complemented */
} bp_event;

/* A PDU to send: a head, whose octets follow, and behind it `length` octets of a pattern (Sdu in nic.hpp). */
typedef struct {
    uint32_t nic, vc, key, length;
    uint64_t offset;
    int32_t checksum_start, checksum_at;
    uint32_t head_length;
    uint16_t uu, notify;
} bp_post;

typedef struct {
    uint64_t evaluations, cells_in, cells_out, in_flight;
    uint64_t ingress_most, ingress_lost; /* cells that waited at an input at once, and that found no place there */
} bp_node_stats;

bp_net* bp_new(void);
void bp_free(bp_net*);
const char* bp_error(bp_net*);

/* These return -1 with bp_error set if they fail; the first, else, a node's index. */
int bp_add_node(bp_net*, const char* model_path);
/* `sends`: a cell arrives `delay` ticks after its last bit has been sent by the node's line clock; else after it was given.
   `merges`: cells may overtake others. */
int bp_connect(bp_net*, int from, int from_port, int to, int to_port, uint64_t delay, int sends, int merges);

void bp_csr_write(bp_net*, int node, uint32_t addr, uint32_t value);
void bp_csr_write_all(bp_net*, int node, uint32_t addr, const uint32_t* values, uint32_t count); /* from `addr` on, in order */
uint32_t bp_csr_read(bp_net*, int node, uint32_t addr);
/* Register writes that are made while time passes, in the order of their ticks, each before its tick. They replace those
   that were not made yet. All up to the tick `made` are made. */
typedef struct {
    uint64_t tick;
    uint32_t node, addr, value, unused;
} bp_scheduled_write;
void bp_schedule(bp_net*, const bp_scheduled_write* writes, uint64_t count);
uint64_t bp_made(bp_net*);
void bp_settle(bp_net*, int node); /* clocks without time passing until the node is idle */

void bp_send(bp_net*, const uint8_t* post); /* a bp_post, and its head */
/* A single cell of 48 octets with this PTI, between those of the VC's PDUs; 0 if the NIC is built without. */
/* What a NIC does to PDUs that it is given from now on (FrameImpairments): limits of draws of 31 bits, ticks, the generator's state
   as it begins. What it has done: PDUs of a VC that it lost (0), sent twice (1), put behind the next one (2), holds now (3). */
void bp_impair_frames(bp_net*, int nic, uint32_t lose, uint32_t duplicate, uint32_t reorder, uint64_t wait, uint64_t state);
uint64_t bp_frames(bp_net*, int nic, uint32_t vc, int what);
int bp_send_cell(bp_net*, int nic, uint32_t vc, uint32_t pti, const uint8_t* octets);
/* The loss ledger. A VC's hops from its source's NIC to its sink's: what kind of node (0 NIC, 1 switch, 2 link, 3 SONET
   line, 4 a switch that passes a virtual path with it, 5 a switch that copies another VC's cells for it, before its own
   hop there), the port at which the VC comes in (-1: the source, or as copies), its number there, header >> 4 of its
   cells there with the bits that count (CellHead::names), the addresses of its counters there: of cells taken to be sent
   (switch) or waiting to be copied, of cells sent (NIC, switch); the reasons (bits) for which a drop concerns it; the address of the
   count of cells in its buffer (0: none).
   What became of its PDUs: sent, delivered, and the others by node (-1: none) and reason (`Why` in
   ledger.hpp). `ends` are the ends of PDUs that are still to come; `ends_there` of them are in queues of NICs and on
   lines, and the others must be among the `queued` cells in switches. */
typedef struct {
    int32_t kind, node, port;
    uint32_t number, key, mask, taken, sent, reasons, queue;
} bp_hop;
typedef struct {
    uint64_t sent, delivered, repeated, ends, ends_there, queued, astray;
} bp_account;
typedef struct {
    int32_t node, why;
    uint64_t pdus;
} bp_loss;
void bp_ledger_vc(bp_net*, int source, uint32_t vc, const bp_hop* hops, int count); /* in order of their places */
int bp_ledger(bp_net*, int place, bp_account*, bp_loss* losses, int most);          /* number of losses */
/* What became of the cells of its PDUs: those lost by node and reason, with CLP = 1 among them (the number of rows is returned);
   those received, hit in their payload, and user cells of other VCs that came among them. */
typedef struct {
    uint64_t sent, received, errored, tagged; /* tagged: that came to the sink with CLP = 1; where bp_count_tagged was called before the first cell */
    int64_t misinserted;
    uint64_t duplicated; /* duplicates that links made of its cells; those that came are among the misinserted */
} bp_cell_account;
void bp_count_tagged(bp_net*, int place);
void bp_without_pdus(bp_net*, int place); /* the source's interface makes the VC's cells itself; before the first cell */
typedef struct {
    int32_t node, why;
    uint64_t cells, tagged;
} bp_cell_loss;
int bp_ledger_cells(bp_net*, int place, bp_cell_account*, bp_cell_loss* losses, int most);
/* Each lost cell (LossRecord in ledger.hpp), up to so many of a run; `left_out` further ones are only counted. */
typedef struct {
    uint64_t tick, cell, pdu, offset;
    int32_t place, node;
    uint32_t position, cells, queue, vc_queue;
    uint8_t why, tagged, user, unused[5];
} bp_loss_record;
void bp_record_losses(bp_net*, uint64_t most);
uint64_t bp_recorded_losses(bp_net*, uint64_t* left_out);                  /* how many there are */
const bp_loss_record* bp_loss_records(bp_net*); /* valid until the next bp_run */
uint64_t bp_under_way(bp_net*, int place, uint32_t stream); /* PDUs with this key that are neither delivered nor lost */
uint64_t bp_ledger_seen(bp_net*, int node, uint32_t what); /* cells told of: see Ledger::seen_at */
uint64_t bp_ledger_records(bp_net*);                       /* records held now */

int bp_run(bp_net*, uint64_t until); /* number of events */
int bp_is_short(bp_net*, uint64_t until); /* the next run takes so little time that other threads of Python can wait for it */
/* Instead of bp_run, from bp_begin_ahead to bp_end_ahead: the same, while a thread of its own runs the network on (run_ahead.hpp). Until
   bp_end_ahead nothing else is called but bp_send, bp_send_at, bp_events, bp_check, bp_checksum and bp_sdu. */
int bp_may_run_ahead(bp_net*);
void bp_begin_ahead(bp_net*);
int bp_run_ahead(bp_net*, uint64_t until, uint64_t limit, uint64_t reaction);
void bp_end_ahead(bp_net*, int is_whole); /* 0: after an error, and the network may be ahead */
void bp_send_at(bp_net*, uint64_t tick, const uint8_t* post); /* as bp_send at the end of a later tick */
/* From now on run in parts where that is possible: the part of each node, in order, numbered from 0 on without gaps. It returns -1
   with bp_error set if a wire between two parts cannot be cut. bp_why_whole: why the last run was of one event loop; empty: it was
   in parts. */
int bp_cut(bp_net*, const uint32_t* part_of, uint64_t threads);
const char* bp_why_whole(bp_net*);
uint64_t bp_parts(bp_net*);   /* how many there are */
uint64_t bp_threads(bp_net*);
uint64_t bp_windows(bp_net*); /* how often a part went on, so far */
/* What a simulation of the threads' schedule needs. A window: a part ran from tick `first` to `last`. A dependence: it may be ahead
   of the ticks that part `on` has done by less than `ahead`. From bp_record_windows on runs are on one thread, and their windows are
   recorded. Both functions return how many there are, and give `most` of them at most. */
typedef struct {
    uint32_t part, nanoseconds;
    uint64_t first, last;
} bp_window;
typedef struct {
    uint32_t part, on;
    uint64_t ahead;
} bp_dependence;
void bp_record_windows(bp_net*);
uint64_t bp_recorded_windows(bp_net*, bp_window*, uint64_t most);
uint64_t bp_dependences(bp_net*, bp_dependence*, uint64_t most);
/* Of each of so many threads its first part, then the number of parts; of each part the ticks that it is given in a turn at most. */
void bp_share(bp_net*, uint32_t threads, uint32_t* first, uint64_t* turn);
const bp_event* bp_events(bp_net*); /* in the same place until a run has more of them than any before */
uint64_t bp_now(bp_net*);
uint64_t bp_next_tick(bp_net*, int node); /* the first one in which the node sees what it is given now */
void bp_act_after_runs(bp_net*); /* from now on that is the one after a run's last, as on a board, for all nodes */

int bp_check(bp_net*, uint32_t handle, uint32_t start, uint32_t key, uint64_t offset, uint32_t length);
uint32_t bp_checksum(bp_net*, uint32_t handle, uint32_t start, uint32_t length);
const uint8_t* bp_sdu(bp_net*, uint32_t handle);

void bp_source(bp_net*, int nic, uint32_t vc, uint32_t length, uint32_t key);   /* PDUs without end, made here */
/* Checks PDUs here; to be called while none is under way on the VC, which would be found wrong. */
void bp_sink(bp_net*, int nic, uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length, uint32_t every);
void bp_sink_counts(bp_net*, int nic, uint32_t vc, uint64_t* good, uint64_t* bad);

void bp_stats(bp_net*, int node, bp_node_stats*);
uint64_t bp_wire_most(bp_net*, int node, int port); /* cells that were at once on the wire to an input or waited there */
uint64_t bp_backlog(bp_net*, int nic, uint32_t vc); /* PDUs queued or in work, and single cells */
uint64_t bp_user_cells_sent(bp_net*, int nic, uint32_t vc); /* cells of PDUs that went */
uint64_t bp_cells_due(bp_net*, int nic, uint32_t vc); /* cells of the PDUs handed over so far, and single ones */

/* A pcap file of a link type of capture.hpp, from now to bp_capture_end, which returns the error number of the first write
   that failed (0: none). It takes the SDUs of hosts, or the cells that nodes take at input ports. */
int bp_capture(bp_net*, const char* path, uint32_t link, uint64_t from); /* from 0: a new file; else what is behind that goes */
uint64_t bp_capture_length(bp_net*, int capture); /* of the file so far */
void bp_capture_host(bp_net*, int capture, int nic);
void bp_capture_input(bp_net*, int capture, int node, int port, int back);
int bp_capture_end(bp_net*, int capture);

/* The queue at a port of a switch, in cells of these VCs, which are all that leave by it (queue_monitor.hpp). bp_monitor returns -1
   with bp_error set if there is one already. It is armed to tell, by an event of the switch with status 64, when so many
   cells are queued (0: never), or with 65 when none is left: the first of both. `heights` are of the cycles that ended, by the most that
   were queued; they are cleared as they are given. `late` counts cells that leave after waiting for
   `late_from` ticks or more; 0: none. */
typedef struct {
    uint32_t port, key, mask, number, out_key, out_mask;
} bp_monitored_vc;
typedef struct {
    uint64_t queue, came, lost, cycles, most, late, armed; /* armed: for something that has not come */
} bp_monitor_counts;
int bp_monitor(bp_net*, int node, uint32_t port, const bp_monitored_vc* vcs, int count, uint64_t late_from);
void bp_monitor_arm(bp_net*, uint64_t level, int empty);
void bp_monitor_read(bp_net*, bp_monitor_counts*);
int bp_monitor_heights(bp_net*, uint64_t* heights, int most); /* how many there are; with room for all they are cleared */

/* 1-point cell delay variation of a VC where its cells arrive at a node (arrival_monitor.hpp). Times are in 2^-16 ticks. */
typedef struct {
    uint32_t port, key, mask;
    uint64_t period, limit;
} bp_arrival_place;
typedef struct {
    uint64_t cells, nonconforming;
    int64_t most, least;
} bp_arrival_counts;
int bp_watch_arrivals(bp_net*, int node, const bp_arrival_place*); /* the monitor's number; before the first cell */
void bp_arrivals(bp_net*, int number, bp_arrival_counts*);

void bp_trace(bp_net*, int from, int from_port, int on); /* 1: digest of the cells that leave a port; 2: their signature, as a board's wires have it */
uint64_t bp_digest(bp_net*, int from, int from_port);

/* From now on each clock of a node is recorded: the tick that it is now, then all ports as they are after the clock, the
   lowest octet first, in as many octets as they need. bp_record returns -1 with bp_error set if the model gives no state. */
int bp_record(bp_net*, int node);
const char* bp_recorded_ports(bp_net*, int node);                       /* "NAME WIDTH" each, with commas between */
const uint8_t* bp_recorded(bp_net*, int node, uint64_t* length);        /* valid until the next bp_run, as what follows */
const uint8_t* bp_model_state(bp_net*, int node, uint64_t* length);     /* as it is now */

/* The state of nodes, wires, queues, ledger and captures between two runs; it goes into a network with the same nodes,
   wires, paths and captures. These return -1 with bp_error set if they fail; after bp_restore the network is of no use then. */
int bp_save(bp_net*);
const uint8_t* bp_saved(bp_net*, uint64_t* length); /* valid until the next bp_save */
int bp_restore(bp_net*, const uint8_t* octets, uint64_t length);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
