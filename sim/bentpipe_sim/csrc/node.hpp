// A Verilated node: its model's ports, the wires to its inputs and from its outputs, what is counted of it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture.hpp"
#include "model.h"
#include "network.h"
#include "nic.hpp"
#include "wire.hpp"

namespace bp {

struct Output {  // what is behind an output port
    int to = -1, to_port = 0;
    uint64_t delay = 0;
    bool traced = false;
    uint64_t digest = 0;
};

struct Tap {  // a capture at an input port
    int port;
    bool back;
    Capture* capture;
};

struct Node {
    static constexpr int PORTS = 16;
    static constexpr uint64_t NEVER_DUE = (1ull << 48) - 1;

    // std::runtime_error: it can't be loaded, or lacks a port. `index` is its place in the network.
    Node(const char* path, int index, Inbox& inbox, Ledger& ledger);

    // The clock of a tick, once its inputs are there.
    void clock() {
        if (__builtin_expect(face->settled && !posting(), 1)) (face->i_valid ? cell_ : turn_)(face);
        else clock_(face);
    }
    void quiet();   // a clock without time passing
    void settle();  // as many of them as it needs to be idle
    void write(uint32_t addr, uint32_t value);
    uint32_t read(uint32_t addr);
    void archive(Archive& a);  // std::runtime_error: its model gives no state

    // The tick of its first cell or of work of its own, whichever comes first; NEVER if there is none.
    uint64_t due() const {
        uint64_t tick = face->status_due >= NEVER_DUE ? NEVER : face->status_due;
        for (uint32_t p = 0; p < inputs; ++p) tick = std::min(tick, first[p]);
        return tick;
    }

  private:
    std::unique_ptr<void, int (*)(void*)> library_;
    const bp_model* model_;
    std::unique_ptr<void, void (*)(void*)> instance_;
    void (*clock_)(void*);
    void (*cell_)(void*);
    void (*turn_)(void*);
    bool posting() const { return nic && nic->posting(); }

  public:
    bp_face* const face;
    bool link = false, line = false, path = false;  // line: of SONET; path: it passes virtual paths
    bool makes_cells;                               // a switch: what it drops may be one of these

    uint64_t last = NEVER;  // tick of the last evaluation
    uint32_t inputs = 0;    // ports with a wire are below this
    uint32_t turn = 0;      // the first of them to be asked
    uint64_t first[PORTS];  // when the first cell of each wire arrives
    std::unique_ptr<Wire> in[PORTS];
    Output out[PORTS];
    std::vector<Tap> taps;
    std::unique_ptr<Nic> nic;  // if it is one
    bp_node_stats stats{};
};

}  // namespace bp
