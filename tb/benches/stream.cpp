// Drives a compiled node with an array of cells, and collects those that it gives: for millions of cells. The node is one of
// benches/compiled.py, or a model of the native engine; its ports are known by their addresses.
#include <cstdint>
#include <cstring>

namespace {

struct Ports {
    void* node;
    void (*eval)(void*);  // Verilator: with each level of the clock; native: a whole clock
    uint8_t *clk, *tick, *i_valid, *i_soc, *i_hec_error, *o_valid, *o_soc;  // clk: none in a native model
    uint64_t* now;
    uint32_t *i_header, *i_payload, *i_word, *o_header, *o_payload, *o_word;  // the words only where it is narrow
};

struct Cell {
    uint64_t tick;
    uint32_t header, hec_error;
    uint32_t payload[12];
};

struct Collected {
    Cell* cells;
    uint64_t count, most;
    uint32_t place;  // words of a cell so far
};

void clock(const Ports& p) {
    if (p.clk) {
        *p.clk = 0;
        p.eval(p.node);
        *p.clk = 1;
    }
    p.eval(p.node);
}

void wide_tick(const Ports& p, uint64_t now, const Cell* cell, Collected& out) {
    *p.now = now;
    *p.tick = 1;
    *p.i_valid = cell != nullptr;
    if (cell) {
        *p.i_header = cell->header;
        *p.i_hec_error = uint8_t(cell->hec_error);
        std::memcpy(p.i_payload, cell->payload, 48);
    }
    clock(p);
    if (*p.o_valid && out.count < out.most) {
        Cell& made = out.cells[out.count++];
        made = {now, *p.o_header, 0, {}};
        std::memcpy(made.payload, p.o_payload, 48);
    }
    *p.tick = 0;
    *p.i_valid = 0;
}

void narrow_tick(const Ports& p, uint64_t now, const Cell* cell, Collected& out) {
    *p.now = now;
    for (uint32_t k = 0; k < 13; ++k) {
        *p.tick = k == 0;
        *p.i_valid = cell != nullptr;
        *p.i_soc = cell && k == 0;
        if (cell) {
            *p.i_hec_error = uint8_t(cell->hec_error);
            *p.i_word = k ? cell->payload[k - 1] : cell->header;
        }
        // Outputs of a register are those before the edge
        if (p.clk) {
            *p.clk = 0;
            p.eval(p.node);
        }
        if (*p.o_valid && out.count < out.most) {
            if (*p.o_soc) {
                out.cells[out.count] = {now - 1, *p.o_word, 0, {}};
                out.place = 0;
            } else {
                out.cells[out.count].payload[out.place++] = *p.o_word;
                if (out.place == 12) ++out.count;
            }
        }
        if (p.clk) *p.clk = 1;
        p.eval(p.node);
    }
    *p.tick = 0;
    *p.i_valid = *p.i_soc = 0;
}

}  // namespace

// Run from tick `from` to before `until`, with these cells, at most one a tick; returns how many came out.
extern "C" uint64_t stream(const Ports* ports, int wide, uint64_t from, uint64_t until, const Cell* cells, uint64_t count,
                           Cell* out, uint64_t most, uint32_t* place) {
    Collected collected{out, 0, most, *place};
    uint64_t next = 0;
    for (uint64_t now = from; now < until; ++now) {
        const Cell* cell = next < count && cells[next].tick == now ? &cells[next++] : nullptr;
        (wide ? wide_tick : narrow_tick)(*ports, now, cell, collected);
    }
    *place = collected.place;
    return next == count ? collected.count : ~0ull;
}
