#include "loop.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "pattern.hpp"

namespace bp {

namespace {

bool rarely(bool what) { return __builtin_expect(what, 0); }

// A cell in a node's faces.
uint8_t* i_cell(bp_face& face) { return reinterpret_cast<uint8_t*>(&face) + offsetof(bp_face, i_payload); }
const uint8_t* o_cell(const bp_face& face) {
    return reinterpret_cast<const uint8_t*>(&face) + offsetof(bp_face, o_payload);
}

// What every evaluation of a node reads first. In place: the compiler leaves out calls of what only fetches.
[[gnu::always_inline]] inline void fetch_ahead(bp_face& face) {
    const char* const first = reinterpret_cast<const char*>(&face);
    __builtin_prefetch(first + 64);
    __builtin_prefetch(first + 256);
}

}  // namespace

int Loop::add(const char* path) {
    const int index = int(nodes_.size());
    Node::Owner made = Node::make(path, index, inbox, ledger);
    agenda_.add(made->face().ticket);
    nodes_.push_back(std::move(made));
    faces_.insert(faces_.end() - 2, &nodes_.back()->face());
    if (agenda_.few()) std::copy(faces_.begin(), faces_.end() - 1, few_);
    if (nodes_.back()->link) links_.push_back(nodes_.back().get());
    ways_known_ = false;
    return index;
}

void Loop::connect(int from, int from_port, int to, int to_port, uint64_t delay, bool sends) {
    Output& output = node(from).out(from_port);
    Node& target = node(to);
    Wire& wire = target.in(to_port);
    if (output.to || wire.connected) throw std::runtime_error("the face is connected already");
    if (delay > NEVER / 2) throw std::runtime_error("the wire's delay is out of all bounds");  // sums fit the agenda
    wire.connected = true;
    wire.had_one();  // one that never waits on it, too
    target.face().inputs = std::max(target.face().inputs, uint8_t(to_port + 1));
    output.to = &target;
    output.to_port = uint32_t(to_port);
    output.wire = &wire;
    output.delay = delay;
    output.sends = sends ? ~0ull : 0;
    ways_known_ = false;
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
    }
    ways_known_ = false;
    nic(source).sends_in(place, number);
    nic(hops[count - 1].node).receives_in(place, number);
}

void Loop::measure(int index, uint32_t port, std::vector<Gauge::Vc> vcs) {
    if (gauge_) throw std::runtime_error("the network has a gauge already");
    gauge_ = std::make_unique<Gauge>(uint32_t(index), port, std::move(vcs), inbox);
    node(index).gauge = gauge_.get();
    node(index).watched = true;
    ways_known_ = false;
}

void Loop::record(int index) {
    node(index).record(now_);
    ways_known_ = false;
}

void Loop::trace(int from, int from_port, bool on) {
    node(from).out(from_port).traced = on;
    ways_known_ = false;
}

void Loop::capture_input(int index, const Tap& tap) {
    Node& its = node(index);
    its.taps.push_back(tap);
    its.tapped = its.watched = true;
    its.look_at_room();
    ways_known_ = false;
}

// What steps need to ask of each node, and of each cell that it gives.
void Loop::look_at_ways() {
    for (const auto& node : nodes_) {
        const bool more = node->link || node->tapped || node->path || node->gauge || node->recording;
        node->face().kind = more ? Turn::APART : node->line ? Turn::LINE : node->nic ? Turn::NIC : Turn::ANY;
    }
    lines_ = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->line; });
    for (const auto& node : nodes_)
        for (uint32_t p = 0; p < Node::PORTS; ++p) node->out(p).way = way(*node, node->out(p));
    ways_known_ = true;
}

Output::Way Loop::way(const Node& node, const Output& output) {
    const Node* to = output.to;
    if (!to || output.traced) return Output::MORE;
    if (to->link) return to->out(0).traced ? Output::MORE : Output::BY_LINK;
    return output.delay == 0 && to != &node && to->face().kind != Turn::APART ? Output::BESIDE : Output::WIRE;
}

void Loop::write(int index, uint32_t addr, uint32_t value) {
    node(index).write(addr, value);
    wake(index);
}

void Loop::wake(int index) { agenda_.set(node(index).face().ticket, std::max(node(index).next(), now_)); }

void Loop::run(uint64_t until) {
    inbox.clear();
    if (!ways_known_) look_at_ways();
    until = std::max(until, now_);  // time doesn't go back
    if (!agenda_.few()) now_ = advance<Many::Run, true>(until);
    else now_ = lines_ ? advance<Few::Run, true>(until) : advance<Few::Run, false>(until);
    for (const auto& node : nodes_)
        if (Node::faces(node->face())) take_back(*node);
    for (Node* link : links_)
        if (link->passed() && comes_later(*link)) call_back(*link);
}

void Loop::archive(Archive& a) {
    a.same(nodes_.size());
    for (auto& node : nodes_) a(*node);
    a(agenda_, now_, ledger);
    a.same(gauge_ != nullptr);
    if (gauge_) a(*gauge_);
    if (a.gives()) inbox.clear();
    ways_known_ = false;
}

// The ledger sees the cell that a line of SONET has taken, and the one that it gives.
[[gnu::always_inline]] inline void Loop::line_in(const Node& node, uint64_t tick) {
    const bp_face& face = node.face();
    ledger.line_in(int(node.index), face.i_port, tick, face.i_header, face.i_payload, face.i_hec_error != 0);
}

[[gnu::always_inline]] inline void Loop::line_out(const Node& node) {
    const bp_face& face = node.face();
    ledger.line_out(int(node.index), face.o_port, face.o_header, face.o_payload, face.o_hec_error != 0);
}

[[gnu::always_inline]] inline void Loop::count(bp_face& face, bool with_cell) {
    ++(with_cell ? face.with_cell : face.without_cell);
}

template <bool nic, class Run>
[[gnu::always_inline]] inline void Loop::step(Node& node, bp_face& face, uint64_t tick, Run& run) {
    face.time_now = tick;
    if (nic) Nic::finish(static_cast<bp_nic&>(face));
    if (face.arrive_tick <= tick) {
        take<true, nic>(node, face, tick);
        face.i_valid = 1;
        ++face.with_cell;
        face.clocks->shorter[1](&face);
    } else {
        face.i_valid = 0;
        ++face.without_cell;
        face.clocks->shorter[0](&face);
    }
    const uint32_t says = face.says();
    if (says == bp_face::a_cell()) {
        give(node, node.out(nic ? 0 : face.o_port), face, tick, run);
    } else if (rarely(says)) {
        if (face.o_valid) {
            Run apart = run;
            give_apart(node, tick, apart);
            run.follow(apart);
        }
        if (face.error | face.drop | face.tells) tell(node, false);
    }
    if (nic && rarely(node.nic->after(static_cast<bp_nic&>(face), tick))) {
        if (!inbox.events().empty()) run.stop(tick);
        run.taken(face.ticket, node.next(), tick);
        return;
    }
    run.taken(face.ticket, Node::next_unless_posting(face, tick), tick);
}

// The same for a line of SONET, which has no port error, drop or tells: the ledger sees what comes and goes.
template <class Run>
[[gnu::always_inline]] inline void Loop::step_line(Node& node, bp_face& face, uint64_t tick, Run& run) {
    face.time_now = tick;
    const bool comes = face.arrive_tick <= tick;
    face.i_valid = comes;
    if (comes) {
        take<true>(node, face, tick);
        line_in(node, tick);
    }
    count(face, comes);
    face.clocks->shorter[comes](&face);
    if (face.o_valid) {
        give(node, node.out(face.o_port), face, tick, run);
        line_out(node);
    }
    run.taken(face.ticket, Node::next_unless_posting(face, tick), tick);
}

// The same for a node of which more is to be done or looked at.
template <class Run>
[[gnu::noinline]] void Loop::step_apart(Node& node, uint64_t tick, Run& run) {
    bp_face& face = node.face();
    now_ = tick;  // a recording's, too
    if (node.link) node.catch_up();
    if (node.nic) Nic::finish(static_cast<bp_nic&>(face));
    face.time_now = tick;
    const bool comes = face.arrive_tick <= tick;
    face.i_valid = comes;
    if (comes) take<false>(node, face, tick);
    if (comes && node.line) line_in(node, tick);
    count(face, comes);
    node.clock(comes);
    if (face.o_valid) give_apart(node, tick, run);
    if (face.o_valid && node.line) line_out(node);
    if (face.error | face.drop | face.tells) tell(node, false);
    if (node.nic) node.nic->after(static_cast<bp_nic&>(face), tick);
    else if (node.link) after_link(node, comes, tick, run);
    else if (node.gauge) node.gauge->look(tick);
    if (!inbox.events().empty()) run.stop(tick);
    run.taken(face.ticket, node.next(), tick);
}

// The tick at whose end the run ends. `lines`: there may be lines of SONET.
template <class Run, bool lines>
uint64_t Loop::advance(uint64_t until) {
    Run run = agenda_.run<Run>(until);
    constexpr bool few = std::is_same_v<Run, Few::Run>;
    bp_face* const* const faces = faces_.data();
    for (;;) {
        const uint64_t tick = run.tick();
        const size_t number = run.node();
        bp_face& face = few ? *few_[number] : *faces[number];
        const uint32_t how = Turn::how(face);
        if (how == Turn::plain(Turn::ANY)) {
            run.take();
            if (!few) fetch_ahead(*faces[run.node()]);
            Node& node = Node::of(face);
            if (run.due(face.ticket, tick)) step<false>(node, face, tick, run);
        } else if (how == Turn::plain(Turn::NIC)) {
            run.take();
            if (!few) fetch_ahead(*faces[run.node()]);
            Node& node = Node::of(face);
            if (run.due(face.ticket, tick)) step<true>(node, face, tick, run);
        } else if (&face == &at_end_) {
            if (run.ends(number)) {
                run.leave(tick);
                return tick;
            }
            run.turn();
        } else {
            run.take();
            Node& node = Node::of(face);
            if (!run.due(face.ticket, tick)) continue;
            if (lines && how == Turn::plain(Turn::LINE)) {
                step_line(node, face, tick, run);
                continue;
            }
            Run apart = run;  // what is known by its address is kept in no register
            step_apart(node, tick, apart);
            run.follow(apart);
        }
    }
}

// The node gets the cell that came first.
template <bool plain, bool nic>
[[gnu::always_inline]] inline void Loop::take(Node& node, bp_face& face, uint64_t tick) {
    const uint32_t port = face.arrive_port;
    if (port == Node::FACE) {  // all others come later
        Node::arrive(face, Node::later(face));
        return;
    }
    if (!nic && rarely(port == Node::CROWD)) {
        take_from_crowd(node, tick);
        return;
    }
    Flying* const second = node.in(nic ? 0 : port).second();
    if (nic) {
        node.first[0] = key_of(second, 0);
        take_from<plain>(node, face, 0, second, {second ? second->tick : Node::NO_CELL, 0}, tick);
        return;
    }
    uint64_t least = node.first[port] = key_of(second, port);
    if (face.inputs > 1) least = node.least();
    const Node::Arrival next = Node::Arrival::of(least);
    if (rarely(next.tick <= tick)) {
        node.first[port] = Node::key(face.arrive_tick, port);
        take_in_turn(node, tick);
    } else {
        take_from<plain>(node, face, port, second, next, tick);
    }
}

// Of several cells that came at once one in turn; the others wait.
[[gnu::noinline]] void Loop::take_in_turn(Node& node, uint64_t tick) {
    const uint32_t port = in_turn(node);
    Flying* const second = node.in(port).second();
    node.first[port] = key_of(second, port);
    take_from<false>(node, node.face(), port, second, Node::Arrival::of(node.least()), tick);
    node.turn = uint8_t(port + 1);
    wait(node, tick);
}

// The same where one of them is in the face: it stays there if it is the one in turn.
[[gnu::noinline]] void Loop::take_from_crowd(Node& node, uint64_t tick) {
    bp_face& face = node.face();
    const uint32_t port = face.i_port;
    const uint64_t behind = node.first[port];
    node.first[port] = Node::key(face.arrive_tick, port);
    if (in_turn(node) != port) {
        take_back(node);
        take_in_turn(node, tick);
        return;
    }
    node.first[port] = behind;
    Node::arrive(face, Node::later(face));
    node.turn = uint8_t(port + 1);
    wait(node, tick);
}

// A wire's first cell, of which the second is looked up; then this comes next.
template <bool plain>
[[gnu::always_inline]] inline void Loop::take_from(Node& node, bp_face& face, uint32_t port, Flying* second,
                                                   Node::Arrival next, uint64_t tick) {
    Wire& from = node.in(port);
    const Flying& cell = from.front();
    Node::arrive(face, next);
    face.i_port = uint8_t(port);
    std::memcpy(i_cell(face), &cell, Flying::OCTETS);
    if (!plain && node.watched) watch(node, port, tick, cell);
    from.pop_front(second);
    from.fetch_ahead();
}

// Of a cell that comes to an input, or of none.
[[gnu::always_inline]] inline uint64_t Loop::key_of(const Flying* cell, uint32_t port) {
    return cell ? Node::key(cell->tick, port) : Node::NO_CELL;
}

// What comes out of the node goes to the wire behind an output.
template <class Run>
[[gnu::always_inline]] inline void Loop::give(Node& node, Output& output, const bp_face& face, uint64_t tick, Run& run) {
    ++output.cells;
    if (output.way == Output::BESIDE) {
        hand_over(output, face, tick, run);
    } else if (output.way == Output::BY_LINK) {
        if (lets_by(*output.to, face)) go_by(output, face, tick, run);
        else put(output, face, tick, arrival(output, face, tick), run);
    } else if (output.way == Output::WIRE) {
        put(output, face, tick, arrival(output, face, tick), run);
    } else {
        if (output.traced) trace(node.digests[face.o_port], face, tick);
        if (output.to && output.to->link && lets_by(*output.to, face)) go_by(output, face, tick, run);
        else if (output.to) put(output, face, tick, arrival(output, face, tick), run);
    }
}

template <class Run>
[[gnu::noinline]] void Loop::give_apart(Node& node, uint64_t tick, Run& run) {
    const bp_face& face = node.face();
    Output& output = node.out(face.o_port);
    give(node, output, face, tick, run);
    if (node.watched) watch_out(node, output);
}

// The ledger sees the cell that goes.
void Loop::watch_out(const Node& node, const Output& output) {
    const bp_face& face = node.face();
    if (node.path && output.to) ledger.path_out(int(output.to->index), int(output.to_port), face.o_header);
    if (node.gauge) node.gauge->leaves(face.o_port);
}

// What a link lets go by from now on; the cell that came may be gone. The next one may have been given before this tick's step of
// the link, while the line that is full was sending the one that came: it goes by now.
template <class Run>
void Loop::after_link(Node& link, bool came, uint64_t tick, Run& run) {
    link.look_at_room();
    if (came && !link.face().o_valid) tell(link, true);
    Output& output = link.out(0);
    Wire& wire = link.in(0);
    if (wire.empty() || wire.front().tick <= tick || wire.front().hec_error || output.room < Node::CELL_BITS) return;
    const Flying cell = wire.front();
    wire.pop_front();
    link.first[0] = key_of(wire.empty() ? nullptr : &wire.front(), 0);
    Node::arrive(link.face(), Node::Arrival::of(link.first[0]));
    output.room -= Node::CELL_BITS;
    if (rarely(output.traced)) {
        link.digest_before = link.digests[0];
        trace(link.digests[0], cell, cell.tick);
    }
    std::memcpy(&next_on(output, cell.tick + 1 + output.delay, tick, run), &cell, Flying::OCTETS);
}

void Loop::trace(uint64_t& digest, const bp_face& face, uint64_t tick) {
    Flying cell;
    std::memcpy(&cell, o_cell(face), Flying::OCTETS);
    trace(digest, cell, tick);
}

void Loop::trace(uint64_t& digest, const Flying& cell, uint64_t tick) {
    digest = mix64(digest ^ tick);
    digest = mix64(digest ^ cell.header ^ uint64_t(cell.hec_error) << 32);
    for (uint64_t pair : cell.payload.w) digest = mix64(mix64(digest ^ uint32_t(pair)) ^ pair >> 32);
}

// When the cell that a node gives in this tick arrives at the end of the wire: its last bit has been sent, and the wire's delay
// has passed. No cell arrives in the tick in which it is given, whatever a line's clock makes up for.
[[gnu::always_inline]] inline uint64_t Loop::arrival(const Output& output, const bp_face& face, uint64_t tick) {
    return std::max(face.o_end & output.sends, tick + 1) + output.delay;
}

// A cell goes to the wire behind an output.
template <class Run>
[[gnu::always_inline]] inline void Loop::put(const Output& output, const bp_face& face, uint64_t tick, uint64_t arrives,
                                             Run& run) {
    std::memcpy(&next_on(output, arrives, tick, run), o_cell(face), Flying::OCTETS);
}

// The cell that arrives next behind an output, at this tick, to be filled in.
template <class Run>
[[gnu::always_inline]] inline Flying& Loop::next_on(const Output& output, uint64_t arrives, uint64_t tick, Run& run) {
    Wire& wire = *output.wire;
    Flying& cell = wire.push_back();
    cell.tick = arrives;
    if (wire.size() == 1 && announce(*output.to, output.to_port, arrives)) run.sooner(output.to->face().ticket, arrives, tick);
    return cell;
}

// A cell goes into the face of the node that it reaches, ahead of its time, if as far as is known none reaches the node before it
// or with it. If one turns out to, the cell goes to its wire (announce, take_back), or is one of a crowd.
template <class Run>
[[gnu::always_inline]] inline void Loop::hand_over(const Output& output, const bp_face& face, uint64_t tick, Run& run) {
    bp_face& its = output.to->face();
    const uint64_t arrives = arrival(output, face, tick);
    if (its.arrive_tick <= arrives) {
        put(output, face, tick, arrives, run);
        return;
    }
    if (rarely(Node::faces(its))) take_back(*output.to);
    run.sooner(its.ticket, arrives, tick);
    Node::later(its, Node::arrive(its));
    Node::arrive(its, {arrives, Node::FACE});
    its.i_port = uint8_t(output.to_port);
    std::memcpy(i_cell(its), o_cell(face), Flying::OCTETS);
}

// The cell in a node's face goes to the wire that it would have come by.
[[gnu::noinline]] void Loop::take_back(Node& node) {
    bp_face& face = node.face();
    const uint32_t port = face.i_port;
    Flying& cell = node.in(port).push_front();
    std::memcpy(&cell, i_cell(face), Flying::OCTETS);
    cell.tick = face.arrive_tick;
    node.first[port] = Node::key(cell.tick, port);
    Node::arrive(face, Node::Arrival::of(std::min(node.first[port], Node::later(face).as_key())));
}

// Whether a cell may go by a link: none is before it, and no error reaches it.
[[gnu::always_inline]] inline bool Loop::lets_by(const Node& link, const bp_face& face) {
    return link.out(0).room >= Node::CELL_BITS && link.face().arrive_tick == Node::NO_CELL && !face.o_hec_error;
}

// A cell goes by a link that has no cell before it: nothing of it would change there but what passed() tells.
template <class Run>
[[gnu::always_inline]] inline void Loop::go_by(const Output& before, const bp_face& face, uint64_t tick, Run& run) {
    Node& link = *before.to;
    Output& output = link.out(0);
    const uint64_t there = arrival(before, face, tick);
    output.room -= Node::CELL_BITS;
    if (rarely(output.traced)) {
        link.digest_before = link.digests[0];
        trace(link.digests[0], face, there);
    }
    put(output, face, tick, there + 1 + output.delay, run);
}

// Whether the last cell that went by a link comes to it in a later tick.
bool Loop::comes_later(const Node& link) const {
    const Output& output = link.out(0);
    return !output.wire->empty() && output.wire->back().tick - 1 - output.delay > now_;
}

// The last cell that went by a link comes to it only now, when settings may change.
void Loop::call_back(Node& link) {
    Output& output = link.out(0);
    Node& to = *output.to;
    Flying& cell = link.in(0).push_back();
    cell = output.wire->back();
    cell.tick -= 1 + output.delay;
    output.wire->pop_back();
    if (output.wire->empty()) {
        to.first[output.to_port] = Node::NO_CELL;
        Node::arrive(to.face(), Node::Arrival::of(to.least()));
        wake(int(to.index));
    }
    if (output.traced) link.digests[0] = link.digest_before;
    output.room += Node::CELL_BITS;
    if (announce(link, 0, cell.tick)) wake(int(link.index));
}

// The first cell of a wire comes to an input at a tick. Whether the node is to be due sooner than it is.
[[gnu::always_inline]] inline bool Loop::announce(Node& to, uint32_t port, uint64_t tick) {
    to.first[port] = Node::key(tick, port);
    bp_face& its = to.face();
    const bool in_face = Node::faces(its);
    if (tick > its.arrive_tick || (tick == its.arrive_tick && !in_face)) {
        if (in_face && tick < its.later_tick) Node::later(its, {tick, port});
        return false;
    }
    if (rarely(in_face)) {
        if (tick == its.arrive_tick) {
            its.arrive_port = Node::CROWD;
            if (tick < its.later_tick) Node::later(its, {tick, port});
            return false;  // it is due by then as it is
        }
        take_back(to);
    }
    Node::arrive(its, {tick, port});
    return true;
}

// Of the inputs whose cells came at once and first.
uint32_t Loop::in_turn(const Node& node) {
    uint32_t port = node.turn;
    for (;; ++port) {
        if (port >= node.face().inputs) port = 0;
        if (node.first[port] >> Node::PORT_BITS == node.face().arrive_tick) return port;
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
    for (uint32_t p = 0; p < node.face().inputs; ++p) {
        if (node.first[p] >> Node::PORT_BITS > tick) continue;
        uint64_t count = node.in(p).waiting(tick);
        if (count > Wire::PLACES) {
            node.in(p).erase(Wire::PLACES);
            ++node.ingress_lost;
            --count;
        }
        node.ingress_most = std::max(node.ingress_most, count);
    }
}

// The ledger gets what the node says of the cell that it took in this step.
void Loop::tell(Node& node, bool gone) {
    const bp_face& face = node.face();
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
    if (Node::faces(to.face()) && to.face().i_port == port) take_back(to);
    return to.in(port).count(key, mask);
}

}  // namespace bp
