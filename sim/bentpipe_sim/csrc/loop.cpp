#include "loop.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "pattern.hpp"

namespace bp {

namespace {

constexpr uint64_t CELL_BITS = 424;  // with its HEC

bool rarely(bool what) { return __builtin_expect(what, 0); }

// A cell in a node's faces.
uint8_t* i_cell(bp_face& face) { return reinterpret_cast<uint8_t*>(&face) + offsetof(bp_face, i_payload); }
const uint8_t* o_cell(const bp_face& face) {
    return reinterpret_cast<const uint8_t*>(&face) + offsetof(bp_face, o_payload);
}

}  // namespace

int Loop::add(const char* path) {
    const int index = int(nodes_.size());
    nodes_.push_back(std::make_unique<Node>(path, index, inbox, ledger));
    agenda_.add();
    for (const auto& node : nodes_) node->ticket = agenda_.ticket(node->index);
    return index;
}

void Loop::connect(int from, int from_port, int to, int to_port, uint64_t delay) {
    Output& output = node(from).out[from_port];
    Node& target = node(to);
    Wire& wire = target.in[to_port];
    if (output.to || wire.connected) throw std::runtime_error("the face is connected already");
    if (delay > NEVER / 2) throw std::runtime_error("the wire's delay is out of all bounds");  // sums fit the agenda
    wire.connected = true;
    wire.had_one();  // one that never waits on it, too
    target.inputs = std::max(target.inputs, uint32_t(to_port) + 1);
    output.to = &target;
    output.to_port = uint32_t(to_port);
    output.wire = &wire;
    output.delay = 1 + delay;
    output.look_whether_straight(node(from));
    target.adjacent = delay == 0;
    node(from).look_at_room();
    target.look_at_room();
}

void Loop::vc(int source, uint32_t number, const Ledger::Hop* hops, size_t count) {
    if (ledger.empty()) ledger.nodes(nodes_.size());
    const int place = ledger.add(hops, count);
    for (size_t k = 0; k < count; ++k) {
        Node& there = node(hops[k].node);
        there.line |= hops[k].kind == Ledger::SONET;
        there.path |= hops[k].kind == Ledger::PATH;
        there.watched |= there.path;
        there.look_whether_apart();
    }
    nic(source).sends_in(place, number);
    nic(hops[count - 1].node).receives_in(place, number);
}

void Loop::measure(int index, uint32_t port, std::vector<Gauge::Vc> vcs) {
    if (gauge_) throw std::runtime_error("the network has a gauge already");
    gauge_ = std::make_unique<Gauge>(uint32_t(index), port, std::move(vcs), inbox);
    node(index).gauge = gauge_.get();
    node(index).watched = true;
    node(index).look_whether_apart();
}

void Loop::write(int index, uint32_t addr, uint32_t value) {
    node(index).write(addr, value);
    wake(index);
}

void Loop::wake(int index) { agenda_.set(node(index).ticket, std::max(node(index).next(), now_)); }

void Loop::run(uint64_t until) {
    inbox.clear();
    if (agenda_.one_row()) advance<true>(until);
    else advance<false>(until);
    for (const auto& node : nodes_) {
        if (node->faces()) take_back(*node);
        if (node->passes > now_) call_back(*node);
    }
}

template <bool few>
void Loop::advance(uint64_t until) {
    const std::unique_ptr<Node>* const nodes = nodes_.data();
    end_ = until;
    for (;;) {
        const uint64_t key = agenda_.first(), tick = Agenda::tick(key);
        if (rarely(tick > end_)) break;
        Node& node = *nodes[Agenda::node(key)];
        agenda_.take<few>(key);
        step<few>(node, tick);
    }
    now_ = end_;
}

void Loop::archive(Archive& a) {
    a.same(nodes_.size());
    for (auto& node : nodes_) a(*node);
    a(agenda_, now_, ledger);
    a.same(gauge_ != nullptr);
    if (gauge_) a(*gauge_);
    if (a.gives()) inbox.clear();
}

template <bool few>
[[gnu::always_inline]] inline void Loop::step(Node& node, uint64_t tick) {
    bp_face& face = *node.face;
    if (rarely(!node.plain())) {
        if (face.apart == Node::LINE && face.settled) step_line<few>(node, tick);
        else step_apart<few>(node, tick);
        return;
    }
    face.time_now = tick;
    if (node.arrive >> Node::PORT_BITS <= tick) {
        take<true>(node, tick);
        face.i_valid = 1;
        node.short_clock[1](&face);
    } else {
        face.i_valid = 0;
        node.short_clock[0](&face);
    }
    ++node.evaluations;
    const uint32_t says = face.says();
    if (says == bp_face::a_cell()) {
        give<few, true>(node, face, tick);
    } else if (rarely(says)) {
        if (face.o_valid) give_apart<few>(node, tick);
        if (face.error | face.drop | face.tells) tell(node, false);
    }
    if (node.nic && rarely(node.nic->after(static_cast<bp_nic&>(face), tick))) {
        if (!inbox.events().empty()) end_ = tick;
        agenda_.set_taken<few>(node.ticket, node.next());
        return;
    }
    agenda_.set_taken<few>(node.ticket, node.next_unless_posting(face, tick));
}

// The same for a line of SONET, which has no port error, drop or tells: the ledger sees what comes and goes.
template <bool few>
[[gnu::noinline]] void Loop::step_line(Node& node, uint64_t tick) {
    bp_face& face = *node.face;
    face.time_now = tick;
    const bool comes = node.arrive >> Node::PORT_BITS <= tick;
    face.i_valid = comes;
    if (comes) {
        take<true>(node, tick);
        line_in(node, tick);
    }
    node.short_clock[comes](&face);
    ++node.evaluations;
    if (face.o_valid) {
        give<few, true>(node, face, tick);
        line_out(node);
    }
    agenda_.set_taken<few>(node.ticket, node.next_unless_posting(face, tick));
}

// The same for a node of which more is to be done or looked at.
template <bool few>
[[gnu::noinline]] void Loop::step_apart(Node& node, uint64_t tick) {
    bp_face& face = *node.face;
    now_ = tick;  // a recording's, too
    if (node.link) node.catch_up();
    face.time_now = tick;
    const bool comes = node.arrive >> Node::PORT_BITS <= tick;
    face.i_valid = comes;
    if (comes) take<false>(node, tick);
    if (comes && node.line) line_in(node, tick);
    node.clock(comes);
    ++node.evaluations;
    if (face.o_valid) give_apart<few>(node, tick);
    if (face.o_valid && node.line) line_out(node);
    if (face.error | face.drop | face.tells) tell(node, false);
    if (node.nic) node.nic->after(static_cast<bp_nic&>(face), tick);
    else if (node.link) after_link(node, comes);
    else if (node.gauge) node.gauge->look(tick);
    if (!inbox.events().empty()) end_ = tick;
    agenda_.set_taken<few>(node.ticket, node.next());
}

// The node gets the cell that came first.
template <bool plain>
[[gnu::always_inline]] inline void Loop::take(Node& node, uint64_t tick) {
    const uint64_t key = node.arrive;
    const uint32_t port = Node::port_of(key);
    if (port == Node::FACE) {  // all others come later
        node.arrive = node.later;
        ++node.cells_in;
        return;
    }
    Flying* const second = node.in[port].second();
    uint64_t least = node.first[port] = key_of(second, port);
    if (node.inputs > 1) least = node.least();
    if (rarely(least >> Node::PORT_BITS <= tick)) {
        node.first[port] = key;
        take_in_turn(node, tick);
    } else {
        take_from<plain>(node, port, second, least, tick);
    }
}

// Of several cells that came at once one in turn; the others wait.
[[gnu::noinline]] void Loop::take_in_turn(Node& node, uint64_t tick) {
    const uint32_t port = in_turn(node);
    Flying* const second = node.in[port].second();
    node.first[port] = key_of(second, port);
    take_from<false>(node, port, second, node.least(), tick);
    node.turn = port + 1;
    wait(node, tick);
}

// A wire's first cell, of which the second is looked up; then the least of the inputs' keys is this.
template <bool plain>
[[gnu::always_inline]] inline void Loop::take_from(Node& node, uint32_t port, Flying* second, uint64_t least, uint64_t tick) {
    Wire& from = node.in[port];
    const Flying& cell = from.front();
    node.arrive = least;
    node.face->i_port = uint8_t(port);
    std::memcpy(i_cell(*node.face), &cell, Flying::OCTETS);
    if (!plain && node.watched) watch(node, port, tick, cell);
    from.pop_front(second);
    from.fetch_ahead();
    ++node.cells_in;
}

// Of a cell that comes to an input, or of none.
[[gnu::always_inline]] inline uint64_t Loop::key_of(const Flying* cell, uint32_t port) {
    return cell ? Node::key(cell->tick, port) : Node::NO_CELL;
}

// What comes out of the node goes to the wire behind it.
template <bool few, bool plain>
[[gnu::always_inline]] inline void Loop::give(Node& node, const bp_face& face, uint64_t tick) {
    Output& output = node.out[face.o_port];
    ++node.cells_out;
    if (output.beside) {
        hand_over<few>(output, face, tick);
    } else if (output.straight) {
        put<few>(output, face, tick);
    } else {
        if (rarely(output.traced)) trace(output, face, tick);
        if (Node* to = output.to) {
            if (to->room >= CELL_BITS && to->arrive == Node::NO_CELL && !face.o_hec_error) go_by<few>(*to, face, tick + 1);
            else put<few>(output, face, tick);
        }
    }
    if (!plain && node.watched) watch_out(node, output);
}

template <bool few>
[[gnu::noinline]] void Loop::give_apart(Node& node, uint64_t tick) {
    give<few, false>(node, *node.face, tick);
}

// The ledger sees the cell that goes.
void Loop::watch_out(const Node& node, const Output& output) {
    const bp_face& face = *node.face;
    if (node.path && output.to) ledger.path_out(int(output.to->index), int(output.to_port), face.o_header);
    if (node.gauge) node.gauge->leaves(face.o_port);
}

// The ledger sees the cell that a line of SONET has taken, and the one that it gives.
void Loop::line_in(const Node& node, uint64_t tick) {
    const bp_face& face = *node.face;
    ledger.line_in(int(node.index), face.i_port, tick, face.i_header, face.i_payload, face.i_hec_error != 0);
}

void Loop::line_out(const Node& node) {
    const bp_face& face = *node.face;
    ledger.line_out(int(node.index), face.o_port, face.o_header, face.o_payload, face.o_hec_error != 0);
}

// What a link lets go by from now on; the cell that came may be gone.
void Loop::after_link(Node& link, bool came) {
    link.look_at_room();
    if (came && !link.face->o_valid) tell(link, true);
}

void Loop::trace(Output& output, const bp_face& face, uint64_t tick) {
    uint64_t digest = mix64(output.digest ^ tick);
    digest = mix64(digest ^ face.o_header ^ uint64_t(face.o_hec_error) << 32);
    for (uint64_t pair : face.o_payload.w) digest = mix64(mix64(digest ^ uint32_t(pair)) ^ pair >> 32);
    output.digest = digest;
}

// A cell goes to the wire behind an output.
template <bool few>
[[gnu::always_inline]] inline void Loop::put(const Output& output, const bp_face& face, uint64_t tick) {
    Wire& wire = *output.wire;
    Flying& cell = wire.push_back();
    std::memcpy(&cell, o_cell(face), Flying::OCTETS);
    cell.tick = tick + output.delay;
    if (wire.size() == 1) announce<few>(*output.to, output.to_port, cell.tick);
}

// A cell goes to a node that it reaches in the next tick: into its face if nothing happens there until then, nor another
// cell comes.
template <bool few>
[[gnu::always_inline]] inline void Loop::hand_over(const Output& output, const bp_face& face, uint64_t tick) {
    Node& to = *output.to;
    const uint64_t key = Node::key(tick + 1, Node::FACE);
    if (to.arrive <= key || to.face->apart == Node::APART) {
        put<few>(output, face, tick);
        return;
    }
    agenda_.set_sooner<few>(to.ticket, tick + 1);
    to.later = to.arrive;
    to.arrive = key;
    to.face->i_port = uint8_t(output.to_port);
    std::memcpy(i_cell(*to.face), o_cell(face), Flying::OCTETS);
}

// The cell in a node's face goes to the wire that it would have come by.
[[gnu::noinline]] void Loop::take_back(Node& node) {
    const uint32_t port = node.face->i_port;
    Flying& cell = node.in[port].push_front();
    std::memcpy(&cell, i_cell(*node.face), Flying::OCTETS);
    cell.tick = node.arrive >> Node::PORT_BITS;
    node.first[port] = Node::key(cell.tick, port);
    node.arrive = std::min(node.first[port], node.later);
}

// A cell goes by a link, to which it would come at a tick: nothing of it would change there but what `passed` tells.
template <bool few>
[[gnu::always_inline]] inline void Loop::go_by(Node& link, const bp_face& face, uint64_t tick) {
    Output& output = link.out[0];
    link.room -= CELL_BITS;
    ++link.passed;
    link.passes = tick;
    if (rarely(output.traced)) {
        link.digest_before = output.digest;
        trace(output, face, tick);
    }
    put<few>(output, face, tick);
}

// The last cell that went by a link comes to it only now, when settings may change.
void Loop::call_back(Node& link) {
    Output& output = link.out[0];
    Node& to = *output.to;
    Flying& cell = link.in[0].push_back();
    cell = output.wire->back();
    cell.tick = link.passes;
    output.wire->pop_back();
    if (output.wire->empty()) {
        to.first[output.to_port] = Node::NO_CELL;
        to.arrive = to.least();
        wake(int(to.index));
    }
    if (output.traced) output.digest = link.digest_before;
    link.room += CELL_BITS;
    --link.passed;
    link.passes = 0;
    agenda_.one_row() ? announce<true>(link, 0, cell.tick) : announce<false>(link, 0, cell.tick);
}

// The first cell of a wire comes to an input at a tick.
template <bool few>
[[gnu::always_inline]] inline void Loop::announce(Node& to, uint32_t port, uint64_t tick) {
    const uint64_t key = Node::key(tick, port);
    to.first[port] = key;
    if (key >= to.arrive) {
        if (to.faces()) to.later = std::min(to.later, key);
        return;
    }
    if (rarely(to.faces())) take_back(to);
    to.arrive = std::min(to.arrive, key);
    agenda_.set_sooner<few>(to.ticket, tick);
}

// Of the inputs whose cells came at once and first.
uint32_t Loop::in_turn(const Node& node) {
    uint32_t port = node.turn;
    for (;; ++port) {
        if (port >= node.inputs) port = 0;
        if (node.first[port] >> Node::PORT_BITS == node.arrive >> Node::PORT_BITS) return port;
    }
}

// Captures and the ledger see the cell that comes.
void Loop::watch(Node& node, uint32_t port, uint64_t tick, const Flying& cell) {
    for (const Tap& each : node.taps) {
        if (each.port != int(port)) continue;
        uint8_t payload[48];
        std::memcpy(payload, &cell.payload, 48);
        each.capture->cell(tick, cell.header, payload, cell.hec_error != 0, each.back);
    }
    if (node.gauge) node.gauge->comes(port, cell);
    if (node.path) ledger.path_in(int(node.index), int(port), cell.header, cell.hec_error != 0);
}

// Cells that have arrived and have to wait: one that finds no place at its input is lost.
void Loop::wait(Node& node, uint64_t tick) {
    for (uint32_t p = 0; p < node.inputs; ++p) {
        if (node.first[p] >> Node::PORT_BITS > tick) continue;
        uint64_t count = node.in[p].waiting(tick);
        if (count > Wire::PLACES) {
            node.in[p].erase(Wire::PLACES);
            ++node.ingress_lost;
            --count;
        }
        node.ingress_most = std::max(node.ingress_most, count);
    }
}

// The ledger gets what the node says of the cell that it took in this step.
void Loop::tell(Node& node, bool gone) {
    const bp_face& face = *node.face;
    if (node.gauge && face.drop) node.gauge->drops(face.drop_vc);
    if (ledger.empty()) return;
    const int index = int(node.index);
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
    Node& to = node(index);
    if (to.faces() && to.face->i_port == port) take_back(to);
    return to.in[port].count(key, mask);
}

}  // namespace bp
