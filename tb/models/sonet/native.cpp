// Two ends of a SONET line, Verilated, with a channel each way: what long tests and measurements run on.
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

namespace {

struct Random {
    uint64_t s;
    uint64_t next() {
        uint64_t z = (s += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    double unit() { return (double)(next() >> 11) * 0x1p-53; }
};

// Cell `seq` of a sender: header as 32-bit number, then 12 words of payload.
void make_cell(uint32_t seq, uint32_t* cell) {
    Random r{seq * 0x1234567ull + 99};
    for (int k = 0; k < 12; k += 2) {
        uint64_t v = r.next();
        cell[k] = (uint32_t)v;
        cell[k + 1] = (uint32_t)(v >> 32);
    }
    cell[0] = seq;
    cell[12] = (uint32_t)(r.next() & 0x0FFFFFFF) | 0x00000400;
}

int distance(const uint32_t* a, const uint32_t* b) {
    int d = 0;
    for (int k = 0; k < 12; ++k) d += __builtin_popcount(a[k] ^ b[k]);
    return d;
}

struct Counts {  // of what one end received
    uint64_t cells, payload_bad, header_bad, lost, repeated, alien, discarded, corrected, errors;
    uint64_t first_cell, last_bad, last_cell;  // words
};

struct End {
    void* model;
    uint8_t *enable, *signal, *tx_valid, *tx_ready, *rx_valid, *rx_error, *rx_corrected, *w_en, *r_en;
    uint32_t *addr, *w_data, *r_data, *tx_cell, *rx_cell;
    uint8_t *in, *out, *interrupt;
    uint32_t sent, expected;
    double load;
    // the channel into this end
    double ber;
    uint64_t gap;  // bits to the next error
    uint64_t zero_from, zero_to;  // bytes
    int shift;
    uint8_t before[48];  // the word before, for the shift
    Counts counts;
    Random random;
};

struct Line {
    const bp_model* kind;
    int bytes;
    uint64_t now;
    End end[2];
};

void* port(const bp_model* kind, void* model, const char* name) {
    uint32_t count;
    const bp_port* ports = kind->ports(model, &count);
    for (uint32_t k = 0; k < count; ++k)
        if (!strcmp(ports[k].name, name)) return ports[k].data;
    abort();
}

uint64_t draw_gap(End& e) { return e.ber > 0 ? (uint64_t)(log(1.0 - e.random.unit()) / log1p(-e.ber)) : ~0ull; }

void channel(Line* l, End& e, const uint8_t* from) {
    uint8_t* to = e.in;
    int n = l->bytes;
    const uint64_t first = l->now * uint64_t(n);  // byte
    if (first >= e.zero_from && first + uint64_t(n) <= e.zero_to) {
        memset(to, 0, n);
    } else {
        memcpy(to, from, n);
        if (first + uint64_t(n) > e.zero_from && first < e.zero_to)
            for (int k = 0; k < n; ++k)
                if (first + uint64_t(k) >= e.zero_from && first + uint64_t(k) < e.zero_to) to[k] = 0;
        if (e.ber > 0) {
            uint64_t bits = 8ull * n;
            while (e.gap < bits) {
                to[e.gap / 8] ^= 0x80 >> (e.gap % 8);
                ++e.counts.errors;
                bits -= 0;
                e.gap += 1 + draw_gap(e);
            }
            e.gap -= bits;
        }
    }
    if (e.shift) {
        uint8_t both[96];
        memcpy(both, e.before, n);
        memcpy(both + n, to, n);
        memcpy(e.before, to, n);
        const uint8_t* late = both + n - e.shift / 8;
        const int bits = e.shift % 8;
        for (int k = 0; k < n; ++k) to[k] = bits ? uint8_t(late[k - 1] << (8 - bits) | late[k] >> bits) : late[k];
    }
}

void offer(End& e) {
    if (!*e.tx_ready) {
        *e.tx_valid = 0;
        return;
    }
    if (e.load >= 1 || e.random.unit() < e.load) {
        make_cell(e.sent++, e.tx_cell);
        *e.tx_valid = 1;
    } else
        *e.tx_valid = 0;
}

void take(Line* l, End& e, uint32_t sent_by_other) {
    if (!*e.rx_valid) return;
    Counts& c = e.counts;
    if (*e.rx_error) {
        ++c.discarded;
        return;
    }
    if (*e.rx_corrected) ++c.corrected;
    uint32_t want[13];
    for (uint32_t k = 0; k < 4000 && e.expected + k < sent_by_other; ++k) {
        make_cell(e.expected + k, want);
        int d = distance(want, e.rx_cell);
        if (d < 100) {
            if (!c.cells) c.first_cell = l->now;
            c.last_cell = l->now;
            ++c.cells;
            c.lost += k;
            e.expected += k + 1;
            if (d) ++c.payload_bad;
            if (want[12] != e.rx_cell[12]) ++c.header_bad, c.last_bad = l->now;
            return;
        }
    }
    for (uint32_t k = 1; k <= 100 && k <= e.expected; ++k) {
        make_cell(e.expected - k, want);
        if (distance(want, e.rx_cell) < 100) {
            ++c.repeated;
            return;
        }
    }
    ++c.alien;
    c.last_bad = l->now;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API void* line_open(const char* path, int bytes) {
    void* so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so) return nullptr;
    Line* l = (Line*)calloc(1, sizeof(Line));
    l->kind = (const bp_model*)dlsym(so, "bentpipe_model");
    l->bytes = bytes;
    for (int k = 0; k < 2; ++k) {
        End& e = l->end[k];
        e.model = l->kind->create(0);
        l->kind->reset(e.model, 1);
        l->kind->clocks.whole(e.model);
        l->kind->reset(e.model, 0);
#define P(field, name) e.field = (decltype(e.field))port(l->kind, e.model, name)
        P(enable, "enable"), P(signal, "signal"), P(in, "line_in"), P(out, "line_out"), P(tx_cell, "tx_cell");
        P(tx_valid, "tx_valid"), P(tx_ready, "tx_ready"), P(rx_cell, "rx_cell"), P(rx_valid, "rx_valid");
        P(rx_error, "rx_hec_error"), P(rx_corrected, "rx_corrected"), P(interrupt, "irq");
        P(addr, "csr_addr"), P(w_en, "csr_w_en"), P(w_data, "csr_w_data"), P(r_en, "csr_r_en"), P(r_data, "csr_r_data");
        *e.enable = 1;
        *e.signal = 1;
        e.gap = ~0ull;
        e.random.s = 1000 + k;
    }
    return l;
}

API void line_close(void* h) {
    Line* l = (Line*)h;
    for (End& e : l->end) l->kind->destroy(e.model);
    free(l);
}

API void line_seed(void* h, uint64_t seed) {
    for (int k = 0; k < 2; ++k) ((Line*)h)->end[k].random.s = seed * 2 + k;
}

API void line_load(void* h, int end, double load) { ((Line*)h)->end[end].load = load; }

// The channel into `end`: error rate, zeros between two times (in bytes), delay in bits (less than a word).
API void line_channel(void* h, int end, double ber, uint64_t zero_from, uint64_t zero_to, int shift) {
    End& e = ((Line*)h)->end[end];
    e.ber = ber;
    e.gap = draw_gap(e);
    e.zero_from = zero_from;
    e.zero_to = zero_to;
    e.shift = shift;
}

API uint64_t line_now(void* h) { return ((Line*)h)->now; }

API void line_run(void* h, uint64_t words) {
    Line* l = (Line*)h;
    End &a = l->end[0], &b = l->end[1];
    for (uint64_t k = 0; k < words; ++k) {
        channel(l, a, b.out);
        channel(l, b, a.out);
        offer(a);
        offer(b);
        l->kind->clocks.whole(a.model);
        l->kind->clocks.whole(b.model);
        take(l, a, b.sent);
        take(l, b, a.sent);
        ++l->now;
    }
}

// Whether the end's interrupt came within `words`; stops at it.
API uint64_t line_run_until_interrupt(void* h, int end, uint64_t words) {
    Line* l = (Line*)h;
    for (uint64_t k = 0; k < words; ++k) {
        if (*l->end[end].interrupt) return k;
        line_run(h, 1);
    }
    return words;
}

API void line_counts(void* h, int end, Counts* out) { *out = ((Line*)h)->end[end].counts; }
API void line_clear(void* h, int end) { memset(&((Line*)h)->end[end].counts, 0, sizeof(Counts)); }
API uint32_t line_sent(void* h, int end) { return ((Line*)h)->end[end].sent; }

API void line_write(void* h, int end, uint32_t address, uint32_t value) {
    Line* l = (Line*)h;
    End& e = l->end[end];
    uint8_t valid = *e.tx_valid;
    *e.enable = 0;
    *e.tx_valid = 0;
    *e.addr = address, *e.w_data = value, *e.w_en = 1;
    l->kind->clocks.whole(e.model);
    *e.w_en = 0;
    *e.enable = 1;
    *e.tx_valid = valid;
}

API uint32_t line_read(void* h, int end, uint32_t address) {
    Line* l = (Line*)h;
    End& e = l->end[end];
    *e.enable = 0;
    *e.addr = address, *e.r_en = 1;
    l->kind->clocks.whole(e.model);
    *e.r_en = 0;
    for (int k = 0; k < 4; ++k) l->kind->clocks.whole(e.model);
    *e.enable = 1;
    return *e.r_data;
}

// `words` words of one end alone: what it sends into `sent`, and what it is given from `line` (either may be null). Of
// each cell that comes, 64 octets into `cells`: the word, 8 octets; HEC error and corrected; 2 of none; header, payload.
API uint64_t line_octets(void* h, int end, const uint8_t* line, uint8_t* sent, uint64_t words, uint8_t* cells,
                         uint64_t room) {
    Line* l = (Line*)h;
    End& e = l->end[end];
    uint64_t count = 0;
    for (uint64_t k = 0; k < words; ++k) {
        if (line) memcpy(e.in, line + k * l->bytes, l->bytes);
        offer(e);
        l->kind->clocks.whole(e.model);
        if (sent) memcpy(sent + k * l->bytes, e.out, l->bytes);
        if (*e.rx_valid && cells && count < room) {
            uint8_t* to = cells + 64 * count++;
            memcpy(to, &k, 8);
            to[8] = *e.rx_error, to[9] = *e.rx_corrected;
            for (int i = 0; i < 4; ++i) to[12 + i] = uint8_t(e.rx_cell[12] >> (24 - 8 * i));
            memcpy(to + 16, e.rx_cell, 48);
        }
    }
    return count;
}

// Cell `sequence` of any sender: header, payload.
API void line_cell(uint32_t sequence, uint8_t* cell) {
    uint32_t made[13];
    make_cell(sequence, made);
    for (int i = 0; i < 4; ++i) cell[i] = uint8_t(made[12] >> (24 - 8 * i));
    memcpy(cell + 4, made, 48);
}
