// The interface between the event loop and a node's model: its ports at fixed places, all ports by name, functions that are one clock.
#ifndef BENTPIPE_MODEL_H
#define BENTPIPE_MODEL_H
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wide.hpp"

namespace bp {
struct Receiving;
struct Sending;
}  // namespace bp

struct bp_clocks {
    void (*whole)(void* model);
    // The same, shorter: of a settled model, in a tick, without an access to registers, a post or `passed`; without a cell, with one.
    void (*shorter[2])(void* model);
};

// A node's entry in the event queue.
struct __attribute__((packed, aligned(2))) bp_ticket {
    union {
        uint64_t number;  // in a small event queue: the node's key in tick 0
        uint64_t due;     // in a timing wheel: the tick at which the node is due
    };
    uint16_t node;  // its number
};

// The ports that the event loop works with, at the beginning of each model; those that a node lacks stay 0. Beside them stands
// what the event loop itself needs of a node: all that every step needs is a cache line, a cell that comes and one that goes is
// one each. border.py reads the names of ports here, a line for each type.
struct alignas(64) bp_ports {
    // Members that are seldom used.
    uint8_t status_idle, report_own, report_consumed, drop_pti, gone_why, o_extra;
    uint32_t drop_vc, drop_reason, drop_accepted;
    uint8_t rst, csr_w_en, csr_r_en;
    uint32_t passed;
    uint64_t room;  // of a link
    uint32_t csr_addr, csr_w_data, csr_r_data;
    uint64_t later_tick;
    alignas(64) bp_ticket ticket;  // no ports, as others here that have no comment of their own: see Node
    uint8_t arrive_port, later_port, inputs;
    uint8_t i_valid, i_port, o_port;
    uint64_t arrive_tick, without_cell;
    const bp_clocks* clocks;
    uint64_t time_now, status_due;
    uint8_t time_tick, post_valid, settled, kind;  // the last two are no ports: `clocks.shorter` may be called; see StepKind
    uint8_t o_valid, error, drop, report_valid;
    // As in cell.hpp: payload, header, whether the HEC is wrong. The number of clocks in which a cell came is beside the cell that
    // comes; the tick in which its last bit leaves is beside the cell that goes, and 0 in a node that does not clock its line.
    W<6> i_payload;
    uint32_t i_header, i_hec_error;
    uint64_t with_cell;
    W<6> o_payload;
    uint32_t o_header, o_hec_error;
    uint64_t o_end;

    // o_valid, error, drop and report_valid; what they are if a cell goes and nothing else is to be said.
    uint32_t says() const {
        uint32_t all;
        std::memcpy(&all, &o_valid, sizeof all);
        return all;
    }
    static uint32_t a_cell() {
        const uint8_t alone[] = {1, 0, 0, 0};
        uint32_t all;
        std::memcpy(&all, alone, sizeof all);
        return all;
    }
};

// The members of a network interface. Those used for its cells take one cache line, too.
struct bp_nic : bp_ports {
    uint8_t post_taken, done, rx_last, oam_full;  // seldom
    uint8_t fetch, rx_valid, fetch_single, zero;  // the last is no port
    uint32_t fetch_vc, rx_vc;
    uint16_t rx_index, rx_length;
    bool many;  // and these three are none: see Nic
    bp::Sending* sending;
    bp::Receiving* receiving;
    uint8_t* to;
    uint8_t rx_status, rx_efci, cell_pti, post_uu, post_cpi;
    uint8_t post_single, done_single, oam_pti, oam_take;
    uint16_t post_length;
    uint32_t post_vc, done_vc, oam_vc;
    uint64_t oam_tick;
    // Those `around` and `between` are no ports: what writes or reads whole words may do so there (pattern.hpp).
    alignas(64) uint64_t around_block[1];
    W<6> block;
    uint64_t between_cells[1];
    W<6> rx_payload;
    uint64_t around_payload[1];
    W<6> oam_payload;

    bool says_what_is_seldom() const {
        uint32_t any;
        std::memcpy(&any, &post_taken, sizeof any);
        return any != 0;
    }
    // fetch, rx_valid and fetch_single; what they are if a cell of a PDU is fetched, or one came, and nothing else.
    uint32_t wants() const {
        uint32_t all;
        std::memcpy(&all, &fetch, sizeof all);
        return all;
    }
    static constexpr uint32_t FETCH = 1, TAKE = 1 << 8;
};
static_assert(offsetof(bp_ports, ticket) == 64 && offsetof(bp_ports, i_payload) == 128 && offsetof(bp_ports, o_payload) == 192 && sizeof(bp_ports) == 256,
              "each is a line of a cache");

struct bp_port {
    const char* name;
    void* data;      // the lowest octet first
    uint32_t width;  // bits
};

struct bp_model {
    // A bp_ports, of a network interface a bp_nic. In front of it are so many octets for the caller, which go with it; where they
    // begin, a cache line does.
    void* (*create)(size_t in_front);
    void (*destroy)(void* model);
    bp_clocks clocks;
    void (*reset)(void* model, int on);
    const bp_port* (*ports)(void* model, uint32_t* count);  // valid until the next call
    void* (*state)(void* model, uint64_t* length);  // all that clocks read and write, to be copied out or in; or none
};

#endif
