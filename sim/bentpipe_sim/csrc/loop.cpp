#include "loop.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "pattern.hpp"

namespace bp {

namespace {

uint64_t clock_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

bool rarely(bool what) { return __builtin_expect(what, 0); }

}  // namespace

int Loop::add(const char* path) {
    const int index = int(nodes_.size());
    nodes_.push_back(std::make_unique<Node>(path, index, inbox, ledger));
    next_.push_back(NEVER);
    return index;
}

void Loop::connect(int from, int from_port, int to, int to_port, uint64_t delay) {
    Output& output = node(from).out[from_port];
    Node& target = node(to);
    if (output.to >= 0 || target.in[to_port]) throw std::runtime_error("the face is connected already");
    output.to = to;
    output.to_port = to_port;
    output.delay = delay;
    target.in[to_port] = std::make_unique<Wire>();
    target.inputs = std::max(target.inputs, uint32_t(to_port) + 1);
}

void Loop::vc(int source, uint32_t number, const Ledger::Hop* hops, size_t count) {
    if (ledger.empty()) ledger.nodes(nodes_.size());
    const int place = ledger.add(hops, count);
    for (size_t k = 0; k < count; ++k) {
        if (hops[k].kind == Ledger::SONET) node(hops[k].node).line = true;
        if (hops[k].kind == Ledger::PATH) node(hops[k].node).path = true;
    }
    nic(source).sends_in(place, number);
    nic(hops[count - 1].node).receives_in(place, number);
}

void Loop::write(int index, uint32_t addr, uint32_t value) {
    node(index).write(addr, value);
    wake(index);
}

void Loop::wake(int index) { next_[size_t(index)] = std::max(next_of(node(index)), now_); }

void Loop::run(uint64_t until, uint64_t most) {
    inbox.clear();
    uint64_t left = most ? most : NEVER;
    const size_t count = next_.size();
    for (;;) {
        size_t first = 0;
        uint64_t tick = NEVER;
        for (size_t k = 0; k < count; ++k)
            if (next_[k] < tick) {
                tick = next_[k];
                first = k;
            }
        if (!inbox.events().empty() && tick > now_) return;
        if (tick > until) {
            now_ = until;
            return;
        }
        now_ = tick;
        step(first, tick);
        if (--left == 0 && inbox.events().empty()) return;
    }
}

void Loop::archive(Archive& a) {
    a.same(nodes_.size());
    for (auto& node : nodes_) a(*node);
    a(next_, now_, ledger);
    if (a.gives()) inbox.clear();
}

// The first tick at which a node has work of its own or a cell to take, not before the tick after the last.
[[gnu::always_inline]] inline uint64_t Loop::next_of(const Node& node) const {
    uint64_t tick = node.nic && node.nic->has_posts() ? now_ : node.due();
    if (tick != NEVER && node.last != NEVER) tick = std::max(tick, node.last + 1);
    return tick;
}

[[gnu::always_inline]] inline void Loop::step(size_t index, uint64_t tick) {
    Node& node = *nodes_[index];
    node.face->time_now = tick;
    node.face->time_tick = 1;
    take(node, index, tick);
    if (node.nic) node.nic->before();
    if (timing) {
        const uint64_t start = clock_ns();
        node.clock();
        node.stats.nanoseconds += clock_ns() - start;
    } else {
        node.clock();
    }
    ++node.stats.evaluations;
    node.last = tick;
    give(node, index, tick);
    if (node.nic) node.nic->after(tick);
    next_[index] = next_of(node);
}

// The node gets the cell that came first; of several that came at once, in turn.
[[gnu::always_inline]] inline void Loop::take(Node& node, size_t index, uint64_t tick) {
    uint32_t port = 0, ready = 0;
    uint64_t earliest = NEVER;
    const auto look = [&](uint32_t from, uint32_t to) {
        for (uint32_t p = from; p < to; ++p) {
            ready += node.first[p] <= tick;
            if (node.first[p] < earliest) {
                earliest = node.first[p];
                port = p;
            }
        }
    };
    if (node.inputs == 1) {
        look(0, 1);
    } else {
        look(node.turn, node.inputs);
        look(0, node.turn);
    }
    bp_face& face = *node.face;
    face.i_valid = earliest <= tick;
    if (earliest > tick) return;
    Wire& from = *node.in[port];
    const Flying& cell = from.front();
    face.i_payload = cell.payload;
    face.i_header = cell.header;
    face.i_hec_error = uint8_t(cell.hec_error);
    face.i_port = uint8_t(port);
    if (rarely(!node.taps.empty())) tap(node, int(port), tick, cell);
    if (node.line) ledger.line_in(int(index), int(port), tick, cell.header, cell.payload, cell.hec_error != 0);
    if (rarely(node.path)) ledger.path_in(int(index), int(port), cell.header, cell.hec_error != 0);
    from.pop_front();
    node.first[port] = from.first();
    ++node.stats.cells_in;
    if (ready > 1 || node.first[port] <= tick) {
        node.turn = port + 1;
        wait(node, tick);
    }
}

// What comes out of the node goes to the wire behind it.
[[gnu::always_inline]] inline void Loop::give(Node& node, size_t index, uint64_t tick) {
    const bp_face& face = *node.face;
    if (face.o_valid) {
        Output& output = node.out[face.o_port];
        const uint32_t hec_error = face.o_hec_error;
        ++node.stats.cells_out;
        if (rarely(output.traced)) {
            uint64_t digest = mix64(output.digest ^ tick);
            digest = mix64(digest ^ face.o_header ^ uint64_t(hec_error) << 32);
            for (uint64_t pair : face.o_payload.w) digest = mix64(mix64(digest ^ uint32_t(pair)) ^ pair >> 32);
            output.digest = digest;
        }
        if (output.to >= 0) {
            if (rarely(node.path)) ledger.path_out(output.to, output.to_port, face.o_header);
            Node& to = *nodes_[size_t(output.to)];
            Flying& cell = to.in[output.to_port]->push_back();
            cell.payload = face.o_payload;
            cell.header = face.o_header;
            cell.hec_error = hec_error;
            cell.tick = tick + 1 + output.delay;
            uint64_t& first = to.first[output.to_port];
            if (first == NEVER) {
                first = cell.tick;
                uint64_t& next = next_[size_t(output.to)];
                if (first < next) next = to.last == NEVER ? first : std::max(first, to.last + 1);
            }
        }
        if (node.line) ledger.line_out(int(index), face.o_port, face.o_header, face.o_payload, hec_error != 0);
    } else if (node.link && face.i_valid) {
        tell(node, int(index), true);
    }
    if (rarely(face.error | face.drop | face.tells)) tell(node, int(index), false);
}

// Cells that have arrived and have to wait: one that finds no place at its input is lost.
void Loop::wait(Node& node, uint64_t tick) {
    for (uint32_t p = 0; p < node.inputs; ++p) {
        if (node.first[p] > tick) continue;
        uint64_t count = node.in[p]->waiting(tick);
        if (count > Wire::PLACES) {
            node.in[p]->erase(Wire::PLACES);
            ++node.stats.ingress_lost;
            --count;
        }
        node.stats.ingress_most = std::max(node.stats.ingress_most, count);
    }
}

void Loop::tap(Node& node, int port, uint64_t tick, const Flying& cell) {
    uint8_t payload[48];
    std::memcpy(payload, &cell.payload, 48);
    for (const Tap& each : node.taps)
        if (each.port == port) each.capture->cell(tick, cell.header, payload, cell.hec_error != 0, each.back);
}

// The ledger gets what the node says of the cell that it took in this step.
void Loop::tell(Node& node, int index, bool gone) {
    if (ledger.empty()) return;
    const bp_face& face = *node.face;
    const uint32_t header = face.i_header;
    if (!node.link) {
        const uint32_t vc = face.drop_vc, reason = face.drop_reason, accepted = face.drop_accepted;
        const uint32_t its = node.makes_cells ? (header & ~14u) | uint32_t(face.drop_pti) << 1 : header;
        if (face.drop) ledger.seen(index, vc * 64 + reason);
        if (face.took) ledger.took(index, vc, accepted);
        else if (!face.own) ledger.dropped(index, vc, reason, accepted, its);
        else if (!face.drop) ledger.made(index, vc, accepted);
        return;
    }
    ledger.seen(index, gone);
    if (gone || face.o_valid) {  // one that has errors and is gone comes here twice
        ledger.changed(index, header, face.i_hec_error, face.i_payload, face.o_header, face.o_hec_error,
                       face.o_payload, gone ? WHY_GONE[face.gone_why] : WHY_NONE);
    }
}

uint64_t Loop::on_wire(int index, int port, uint32_t key, uint32_t mask) {
    return node(index).in[port]->count(key, mask);
}

}  // namespace bp
