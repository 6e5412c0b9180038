#include "loop.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "crc32.hpp"
#include "parts.hpp"
#include "pattern.hpp"

namespace bp {

namespace {

bool rarely(bool what) { return __builtin_expect(what, 0); }

// A cell in a node's ports.
uint8_t* i_cell(bp_ports& ports) { return reinterpret_cast<uint8_t*>(&ports) + offsetof(bp_ports, i_payload); }
const uint8_t* o_cell(const bp_ports& ports) {
    return reinterpret_cast<const uint8_t*>(&ports) + offsetof(bp_ports, o_payload);
}

// Prefetch what every evaluation of a node reads first. Must be inlined: GCC 12 removes calls to a function whose only effect is a
// prefetch (tb/unit/sim/test_build.py counts the instructions).
[[gnu::always_inline]] inline void fetch_ahead(bp_ports& ports) {
    const char* const first = reinterpret_cast<const char*>(&ports);
    __builtin_prefetch(first + 64);
    __builtin_prefetch(first + 256);
}

}  // namespace

Loop::Loop() = default;
Loop::Loop(Ledger& entered) : feed(entered) {}
Loop::~Loop() = default;

int Loop::add(const char* path) {
    const int index = int(nodes_.size());
    Node::Owner made = Node::make(path, index, inbox, feed);
    queue_.add(made->ports().ticket);
    nodes_.push_back(std::move(made));
    delivered_.resize(nodes_.size() / 64 + 1);
    node_ports_.insert(node_ports_.end() - 2, &nodes_.back()->ports());
    if (queue_.is_small()) std::copy(node_ports_.begin(), node_ports_.end() - 1, small_node_ports_);
    if (nodes_.back()->link) links_.push_back(nodes_.back().get());
    classified_ = false;
    return index;
}

void Loop::connect(int from, int from_port, int to, int to_port, uint64_t delay, bool sends, bool merges) {
    Output& output = node(from).out(from_port);
    Node& target = node(to);
    Wire& wire = target.in(to_port);
    if (output.to || wire.connected) throw std::runtime_error("the port is connected already");
    if (delay > NEVER / 2) throw std::runtime_error("the wire's delay is out of all bounds");  // sums are valid ticks
    wire.connected = true;
    if (merges) wire.merges();
    wire.had_one();  // one that never waits on it, too
    target.ports().inputs = std::max(target.ports().inputs, uint8_t(to_port + 1));
    output.to = &target;
    output.to_port = uint32_t(to_port);
    output.wire = &wire;
    output.delay = delay;
    output.sends = sends ? ~0ull : 0;
    classified_ = false;
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
    classified_ = false;
    nic(source).sends_in(place, number);
    nic(hops[count - 1].node).receives_in(place, number);
}

void Loop::count_tagged(int place) {
    Node& sink = node(ledger.sink(place));
    ledger.count_tagged(place);
    sink.tags = sink.watched = true;
    classified_ = false;
}

void Loop::measure(int index, uint32_t port, std::vector<QueueMonitor::Vc> vcs, uint64_t late_from) {
    if (monitor_) throw std::runtime_error("the network has a queue monitor already");
    monitor_ = std::make_unique<QueueMonitor>(uint32_t(index), port, std::move(vcs), late_from, inbox);
    node(index).monitor = monitor_.get();
    node(index).watched = true;
    classified_ = false;
}

int Loop::watch_arrivals(int index, const ArrivalMonitor::Place& place) {
    arrivals_.push_back(std::make_unique<ArrivalMonitor>(place));
    node(index).arrivals.push_back(arrivals_.back().get());
    node(index).watched = true;
    classified_ = false;
    return int(arrivals_.size()) - 1;
}

void Loop::record(int index) {
    node(index).record(now_);
    classified_ = false;
}

void Loop::trace(int from, int from_port, bool on, bool signs) {
    signs_ = signs;
    node(from).out(from_port).traced = on;
    classified_ = false;
}

void Loop::capture_input(int index, const Tap& tap) {
    Node& tapped = node(index);
    tapped.taps.push_back(tap);
    tapped.tapped = tapped.watched = true;
    tapped.look_at_room();
    classified_ = false;
}

// Decide which code steps each node, and where the cells of each output go.
void Loop::classify_outputs() {
    for (const auto& node : nodes_) {
        const bool more = node->link || node->watched || node->recording;
        node->ports().kind =
            more ? StepKind::SLOW_PATH : node->line ? StepKind::SONET : node->nic ? StepKind::NIC : StepKind::PLAIN;
    }
    lines_ = std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->line; });
    for (const auto& node : nodes_)
        for (uint32_t p = 0; p < Node::PORTS; ++p) node->out(p).route = route_of(*node, node->out(p));
    classified_ = true;
    if (parts_) parts_->classify();
}

Output::Route Loop::route_of(const Node& node, const Output& output) {
    const Node* to = output.to;
    if (output.wire && output.wire->merged()) return Output::MERGED;
    if (!to || output.traced) return Output::GENERAL;
    if (to->link) return to->out(0).traced ? Output::GENERAL : Output::BYPASS;
    return output.delay == 0 && to != &node && to->ports().kind != StepKind::SLOW_PATH ? Output::DIRECT : Output::WIRE;
}

void Loop::send(const uint8_t* octets) {
    bp_post post;
    std::memcpy(&post, octets, sizeof post);
    nic(int(post.nic)).send(now_, post.vc,
                            {octets + sizeof post, post.head_length, post.key, post.offset, post.length, post.checksum_start,
                             post.checksum_at, uint8_t(post.uu), post.notify != 0});
    wake(int(post.nic));
}

size_t Loop::octets_of(const uint8_t* octets) {
    bp_post post;
    std::memcpy(&post, octets, sizeof post);
    return sizeof post + post.head_length;
}

void Loop::write(int index, uint32_t addr, uint32_t value) {
    node(index).write(addr, value);
    wake(index);
}

void Loop::wake(int index) { queue_.set(node(index).ports().ticket, std::max(node(index).next(), now_ + after_)); }

void Loop::run(uint64_t until) {
    inbox.clear();
    if (!classified_) classify_outputs();
    after_ = acts_after_;
    until = std::max(until, now_);  // time doesn't go back
    if (rarely(!impaired_.empty())) {
        bool reported = false;
        for (Node* each : impaired_) reported |= each->nic->report_lost(now_);
        if (reported) return;
        release_held();
    }
    for (;;) {
        const uint64_t write = rarely(next_write_ < writes_.size()) ? writes_[next_write_].tick : ~0ull;
        const uint64_t first = std::min(write, held_until());
        if (first > until) break;
        run_in_stretches(first - 1);
        release_held();
        if (!inbox.events().empty()) return;
    }
    run_in_stretches(until);
}

// The ledger counts cells that interfaces make themselves between two stretches: fewer than 2^32 - 2^24.
void Loop::run_in_stretches(uint64_t until) {
    constexpr uint64_t LONGEST = 1ull << 31;  // ticks, and at most a cell a tick
    while (rarely(until > now_ + LONGEST)) {
        run_to(now_ + LONGEST);
        if (!inbox.events().empty()) return;
    }
    run_to(until);
}

void Loop::impair(int index, const FrameImpairments& how) {
    FrameImpairments& frames = nic(index).frames;
    const uint64_t state = frames.ever ? frames.state : how.state;
    frames = how;
    frames.state = state;
    frames.ever = 1;
    find_impaired();
}

void Loop::find_impaired() {
    impaired_.clear();
    for (const auto& node : nodes_)
        if (node->nic && node->nic->frames.ever) impaired_.push_back(node.get());
}

uint64_t Loop::held_until() const {
    uint64_t found = ~0ull;
    for (const Node* each : impaired_) found = std::min(found, each->nic->held_until());
    return found;
}

// PDUs that have waited long enough are sent from the next tick on.
void Loop::release_held() {
    for (Node* each : impaired_) {
        if (each->nic->held_until() > now_ + 1) continue;
        each->nic->release(now_ + 1);
        wake(int(each->index));
    }
}

void Loop::schedule(const ScheduledWrite* writes, size_t count) {
    writes_.assign(writes, writes + count);
    next_write_ = 0;
    make_writes();
}

void Loop::make_writes() {
    for (; next_write_ < writes_.size() && writes_[next_write_].tick <= made_; ++next_write_) {
        const ScheduledWrite& each = writes_[next_write_];
        write(int(each.node), each.addr, each.value);
    }
}

void Loop::run_to(uint64_t until) {
    if (!parts_ || !parts_->run(until)) {
        advance_to(until);
        undeliver_all();
    }
    for (Node* link : links_)
        if (link->bypassed() && arrives_later(*link)) undo_bypass(*link);
    made_ = now_ + 1;
    make_writes();
    ledger.advance();
}

void Loop::advance_to(uint64_t until) {
    if (!queue_.is_small()) now_ = advance<TimingWheel::Cursor, true>(until);
    else now_ = lines_ ? advance<SmallEventQueue::Cursor, true>(until) : advance<SmallEventQueue::Cursor, false>(until);
}

// Parts

void Loop::cut(const uint32_t* part_of, size_t threads) {
    parts_.reset();
    parts_ = std::make_unique<Parts>(*this, part_of, threads);
    classified_ = false;
}

// Be the event loop of these nodes, from begin() on.
void Loop::hold(std::vector<Node*> nodes) {
    node_ports_.clear();
    for (Node* node : nodes) {
        node_ports_.push_back(&node->ports());
        if (node->link) links_.push_back(node);
    }
    node_ports_.insert(node_ports_.end(), 2, &at_end_);
    if (nodes.size() <= SmallEventQueue::MOST) std::copy(node_ports_.begin(), node_ports_.end() - 1, small_node_ports_);
    delivered_.assign(nodes.size() / 64 + 1, 0);
}

// Each node is due in its tick. Between two calls of advance_to() a cell may be in a node's ports.
void Loop::begin(const std::vector<uint64_t>& due, uint64_t now) {
    now_ = now;
    std::vector<Ticket*> tickets;
    for (size_t k = 0; k < held(); ++k) {
        tickets.push_back(&node_ports_[k]->ticket);
        if (Node& node = Node::of(*node_ports_[k]); node.nic) node.nic->report_to(inbox, feed);
    }
    queue_.refill(tickets, due, now);
}

// A cell of another part arrives.
void Loop::arrive(Node& to, uint32_t port, const CellInFlight& cell) {
    to.in(port).append(cell);
    if (to.in(port).size() == 1 && announce(to, port, cell.tick)) queue_.set(to.ports().ticket, std::max(to.next(), now_));
}

void Loop::archive(Archive& a) {
    a.same(nodes_.size());
    for (auto& node : nodes_) a(*node);
    a(queue_, now_, made_, ledger);
    a.same(monitor_ != nullptr);
    if (monitor_) a(*monitor_);
    a.same(arrivals_.size());
    for (const auto& each : arrivals_) a(*each);
    if (a.gives()) {
        inbox.clear();
        find_impaired();
        schedule(nullptr, 0);
    }
    classified_ = false;
}

// The ledger sees the cell that a line of SONET has taken, and the one that it gives.
[[gnu::always_inline]] inline void Loop::line_in(const Node& node, uint64_t tick) {
    const bp_ports& ports = node.ports();
    ledger.line_in(int(node.index), ports.i_port, tick, ports.i_header, ports.i_payload, ports.i_hec_error != 0);
}

[[gnu::always_inline]] inline void Loop::line_out(const Node& node) {
    const bp_ports& ports = node.ports();
    ledger.line_out(int(node.index), ports.o_port, ports.o_header, ports.o_payload, ports.o_hec_error != 0);
}

[[gnu::always_inline]] inline void Loop::count(bp_ports& ports, bool with_cell) {
    ++(with_cell ? ports.with_cell : ports.without_cell);
}

template <bool nic, class Cursor>
[[gnu::always_inline]] inline void Loop::step(Node& node, bp_ports& ports, uint64_t tick, Cursor& cursor) {
    ports.time_now = tick;
    if (nic) Nic::finish(static_cast<bp_nic&>(ports));
    if (ports.arrive_tick <= tick) {
        take<true, nic>(node, ports, tick);
        ports.i_valid = 1;
        ++ports.with_cell;
        ports.clocks->shorter[1](&ports);
    } else {
        ports.i_valid = 0;
        ++ports.without_cell;
        ports.clocks->shorter[0](&ports);
    }
    const uint32_t says = ports.says();
    if (says == bp_ports::a_cell()) {
        give(node, node.out(nic ? 0 : ports.o_port), ports, tick, cursor);
    } else if (rarely(says)) {
        if (ports.o_valid) {
            Cursor slow = cursor;
            give_slow(node, tick, slow);
            cursor.assign(slow);
        }
        if (ports.error | ports.drop | ports.report_valid) tell(node, false);
    }
    if (nic && rarely(node.nic->after(static_cast<bp_nic&>(ports), tick))) {
        if (!inbox.events().empty()) cursor.stop(tick);
        cursor.reschedule(ports.ticket, node.next(), tick);
        return;
    }
    cursor.reschedule(ports.ticket, Node::next_unless_posting(ports, tick), tick);
}

// Step a SONET line, which has no ports error, drop and report_valid. The ledger sees each cell that arrives or leaves.
template <class Cursor>
[[gnu::always_inline]] inline void Loop::step_sonet(Node& node, bp_ports& ports, uint64_t tick, Cursor& cursor) {
    ports.time_now = tick;
    const bool comes = ports.arrive_tick <= tick;
    ports.i_valid = comes;
    if (comes) {
        take<true>(node, ports, tick);
        line_in(node, tick);
    }
    count(ports, comes);
    ports.clocks->shorter[comes](&ports);
    if (ports.o_valid) {
        give(node, node.out(ports.o_port), ports, tick, cursor);
        line_out(node);
    }
    cursor.reschedule(ports.ticket, Node::next_unless_posting(ports, tick), tick);
}

// Step a node of kind SLOW_PATH, or one whose short clock will not do: a PDU is posted, or its state is not settled.
template <class Cursor>
[[gnu::noinline]] void Loop::step_slow(Node& node, uint64_t tick, Cursor& cursor) {
    bp_ports& ports = node.ports();
    now_ = tick;  // a recording's, too
    if (node.link) node.apply_bypassed();
    if (node.nic) Nic::finish(static_cast<bp_nic&>(ports));
    ports.time_now = tick;
    const bool comes = ports.arrive_tick <= tick;
    ports.i_valid = comes;
    if (comes) take<false>(node, ports, tick);
    if (comes && node.line) line_in(node, tick);
    count(ports, comes);
    node.clock(comes);
    if (ports.o_valid) give_slow(node, tick, cursor);
    if (ports.o_valid && node.line) line_out(node);
    if (ports.error | ports.drop | ports.report_valid) tell(node, false);
    if (ports.o_extra) tell_extra(node);
    if (node.nic) node.nic->after(static_cast<bp_nic&>(ports), tick);
    else if (node.link) after_link(node, comes, tick, cursor);
    else if (node.monitor) node.monitor->look(tick);
    if (!inbox.events().empty()) cursor.stop(tick);
    cursor.reschedule(ports.ticket, node.next(), tick);
}

// Run, and return the tick at whose end the run ended. `lines`: the network has SONET lines.
template <class Cursor, bool lines>
uint64_t Loop::advance(uint64_t until) {
    Cursor cursor = queue_.cursor<Cursor>(until);
    constexpr bool is_small = std::is_same_v<Cursor, SmallEventQueue::Cursor>;
    bp_ports* const* const node_ports = node_ports_.data();
    for (;;) {
        const uint64_t tick = cursor.tick();
        const size_t number = cursor.node();
        bp_ports& ports = is_small ? *small_node_ports_[number] : *node_ports[number];
        const uint32_t flags = StepKind::flags(ports);
        if (flags == StepKind::fast(StepKind::PLAIN)) {
            cursor.pop();
            if (!is_small) fetch_ahead(*node_ports[cursor.node()]);
            Node& node = Node::of(ports);
            if (cursor.due(ports.ticket, tick)) step<false>(node, ports, tick, cursor);
        } else if (flags == StepKind::fast(StepKind::NIC)) {
            cursor.pop();
            if (!is_small) fetch_ahead(*node_ports[cursor.node()]);
            Node& node = Node::of(ports);
            if (cursor.due(ports.ticket, tick)) step<true>(node, ports, tick, cursor);
        } else if (&ports == &at_end_) {
            if (cursor.ends(number)) {
                cursor.finish(tick);
                return tick;
            }
            cursor.begin_block();
        } else {
            cursor.pop();
            Node& node = Node::of(ports);
            if (!cursor.due(ports.ticket, tick)) continue;
            if (lines && flags == StepKind::fast(StepKind::SONET)) {
                step_sonet(node, ports, tick, cursor);
                continue;
            }
            Cursor slow = cursor;  // a cursor whose address is taken cannot stay in registers
            step_slow(node, tick, slow);
            cursor.assign(slow);
        }
    }
}

// The node takes the cell that arrived first.
template <bool plain, bool nic>
[[gnu::always_inline]] inline void Loop::take(Node& node, bp_ports& ports, uint64_t tick) {
    const uint32_t port = ports.arrive_port;
    if (port == Node::IN_PORTS) {  // all others come later
        Node::arrive(ports, Node::later(ports));
        return;
    }
    if (!nic && rarely(port == Node::CONTENDED)) {
        take_contended(node, tick);
        return;
    }
    CellInFlight* const second = node.in(nic ? 0 : port).second();
    if (nic) {
        node.first[0] = key_of(second, 0);
        take_from<plain>(node, ports, 0, second, {second ? second->tick : Node::NO_CELL, 0}, tick);
        return;
    }
    uint64_t least = node.first[port] = key_of(second, port);
    if (ports.inputs > 1) least = node.least();
    const Node::Arrival next = Node::Arrival::of(least);
    if (rarely(next.tick <= tick)) {
        node.first[port] = Node::key(ports.arrive_tick, port);
        take_in_turn(node, tick);
    } else {
        take_from<plain>(node, ports, port, second, next, tick);
    }
}

// Several cells arrived in one tick: the node takes one, by round robin over its inputs, and the others wait.
[[gnu::noinline]] void Loop::take_in_turn(Node& node, uint64_t tick) {
    const uint32_t port = in_turn(node);
    CellInFlight* const second = node.in(port).second();
    node.first[port] = key_of(second, port);
    take_from<false>(node, node.ports(), port, second, Node::Arrival::of(node.least()), tick);
    node.turn = uint8_t(port + 1);
    wait(node, tick);
}

// The same where one of the cells is in the node's ports already. It stays there if it is the one to be taken.
[[gnu::noinline]] void Loop::take_contended(Node& node, uint64_t tick) {
    bp_ports& ports = node.ports();
    const uint32_t port = ports.i_port;
    const uint64_t behind = node.first[port];
    node.first[port] = Node::key(ports.arrive_tick, port);
    if (in_turn(node) != port) {
        undeliver(node);
        take_in_turn(node, tick);
        return;
    }
    node.first[port] = behind;
    Node::arrive(ports, Node::later(ports));
    node.turn = uint8_t(port + 1);
    wait(node, tick);
}

// The node takes the first cell of a wire, whose second cell is known; `next` arrives after it.
template <bool plain>
[[gnu::always_inline]] inline void Loop::take_from(Node& node, bp_ports& ports, uint32_t port, CellInFlight* second,
                                                   Node::Arrival next, uint64_t tick) {
    Wire& from = node.in(port);
    const CellInFlight& cell = from.front();
    Node::arrive(ports, next);
    ports.i_port = uint8_t(port);
    std::memcpy(i_cell(ports), &cell, CellInFlight::OCTETS);
    if (!plain && node.watched) watch(node, port, tick, cell);
    if (rarely(from.merged() != nullptr)) check_order(node, port, cell);
    from.pop_front(second);
    from.fetch_ahead();
}

// The key of a cell that arrives at an input, or of none.
[[gnu::always_inline]] inline uint64_t Loop::key_of(const CellInFlight* cell, uint32_t port) {
    return cell ? Node::key(cell->tick, port) : Node::NO_CELL;
}

// A cell leaves the node: it goes to the wire of an output, into the next node's ports, or past a link.
template <class Cursor>
[[gnu::always_inline]] inline void Loop::give(Node& node, Output& output, const bp_ports& ports, uint64_t tick, Cursor& cursor) {
    ++output.cells;
    if (output.route == Output::DIRECT) {
        deliver_direct(output, ports, tick, cursor);
    } else if (output.route == Output::BYPASS) {
        if (can_bypass(*output.to, ports)) bypass<false>(output, ports, tick, cursor);
        else enqueue(output, ports, tick, arrival(output, ports, tick), cursor);
    } else if (output.route == Output::WIRE) {
        enqueue(output, ports, tick, arrival(output, ports, tick), cursor);
    } else {
        Cursor slow = cursor;  // as in advance()
        give_general(node, output, tick, slow);
        cursor.assign(slow);
    }
}

// The same for an output that is traced, that has no line, or whose cells overtake others.
template <class Cursor>
[[gnu::noinline]] void Loop::give_general(Node& node, const Output& output, uint64_t tick, Cursor& cursor) {
    const bp_ports& ports = node.ports();
    if (output.traced) trace(node.digests[ports.o_port], ports, tick);
    if (output.route == Output::MERGED) merge(output, ports, tick, cursor);
    else if (output.to && output.to->link && can_bypass(*output.to, ports)) bypass<true>(output, ports, tick, cursor);
    else if (output.to) enqueue(output, ports, tick, arrival(output, ports, tick), cursor);
}

template <class Cursor>
[[gnu::noinline]] void Loop::give_slow(Node& node, uint64_t tick, Cursor& cursor) {
    const bp_ports& ports = node.ports();
    Output& output = node.out(ports.o_port);
    give(node, output, ports, tick, cursor);
    if (node.watched) watch_out(node, output);
}

// The ledger and the queue monitor see the cell that leaves.
void Loop::watch_out(const Node& node, const Output& output) {
    const bp_ports& ports = node.ports();
    if (node.path && output.to)
        feed.path_out({ports.time_now, int(node.index)}, int(output.to->index), int(output.to_port), ports.o_header);
    if (node.monitor) node.monitor->leaves(ports.o_port, ports.time_now, ports.o_header);
}

// After a step of a link: more cells may bypass it now; the cell that arrived may be lost. On a full line the next cell may be on
// the link's wire already: it was given before the link's step in this tick. It bypasses the link now.
template <class Cursor>
void Loop::after_link(Node& link, bool came, uint64_t tick, Cursor& cursor) {
    link.look_at_room();
    if (came && !link.ports().o_valid) tell(link, true);
    Output& output = link.out(0);
    Wire& wire = link.in(0);
    if (wire.empty() || wire.front().tick <= tick || wire.front().hec_error || output.room < Node::CELL_BITS) return;
    const CellInFlight cell = wire.front();
    wire.pop_front();
    link.first[0] = key_of(wire.empty() ? nullptr : &wire.front(), 0);
    Node::arrive(link.ports(), Node::Arrival::of(link.first[0]));
    output.room -= Node::CELL_BITS;
    if (rarely(output.traced)) {
        link.digest_before = link.digests[0];
        trace(link.digests[0], cell, cell.tick);
    }
    std::memcpy(&next_on(output, cell.tick + 1 + output.delay, tick, cursor), &cell, CellInFlight::OCTETS);
}

// A multiple-input signature register after one more word: multiplied by x modulo the generator of CRC-32, the word added.
static uint32_t signed_word(uint32_t signature, uint32_t word) {
    return signature << 1 ^ (signature >> 31 ? crc32::POLYNOMIAL : 0) ^ word;
}

// Not inlined: its local cell is aligned to a cache line, and a function with such a local loses a register to its frame pointer.
[[gnu::noinline]] void Loop::trace(uint64_t& digest, const bp_ports& ports, uint64_t tick) const {
    CellInFlight cell;
    std::memcpy(&cell, o_cell(ports), CellInFlight::OCTETS);
    trace(digest, cell, tick);
}

void Loop::trace(uint64_t& digest, const CellInFlight& cell, uint64_t tick) const {
    if (signs_) {
        // A board sees the cell on its line in the tick after (bentpipe_boards.wire)
        const uint64_t end = (tick + 1) & NEVER;
        uint32_t signature = signed_word(uint32_t(digest), cell.header);
        for (uint64_t pair : cell.payload.w)
            signature = signed_word(signed_word(signature, uint32_t(pair)), uint32_t(pair >> 32));
        signature = signed_word(signature, uint32_t(end));
        digest = signed_word(signature, uint32_t(end >> 32) | uint32_t(cell.hec_error != 0) << 16);
        return;
    }
    digest = mix64(digest ^ tick);
    digest = mix64(digest ^ cell.header ^ uint64_t(cell.hec_error) << 32);
    for (uint64_t pair : cell.payload.w) digest = mix64(mix64(digest ^ uint32_t(pair)) ^ pair >> 32);
}

// The tick at which a cell that a node gives now arrives: its last bit has been sent, and the wire's delay has passed. It is never
// the tick in which the cell is given, even if the line's clock makes up for lost time.
[[gnu::always_inline]] inline uint64_t Loop::arrival(const Output& output, const bp_ports& ports, uint64_t tick) {
    return std::max(ports.o_end & output.sends, tick + 1) + output.delay;
}

// Put a cell on the wire of an output.
template <class Cursor>
[[gnu::always_inline]] inline void Loop::enqueue(const Output& output, const bp_ports& ports, uint64_t tick, uint64_t arrives,
                                             Cursor& cursor) {
    std::memcpy(&next_on(output, arrives, tick, cursor), o_cell(ports), CellInFlight::OCTETS);
}

// Put a cell on a wire on which it may overtake others.
template <class Cursor>
[[gnu::noinline]] void Loop::merge(const Output& output, const bp_ports& ports, uint64_t tick, Cursor& cursor) {
    CellInFlight cell;
    std::memcpy(&cell, o_cell(ports), CellInFlight::OCTETS);
    cell.tick = arrival(output, ports, tick);
    if (output.wire->merge(cell) && announce(*output.to, output.to_port, cell.tick))
        cursor.schedule_earlier(output.to->ports().ticket, cell.tick, tick);
}

// A cell is about to leave a wire of two paths: was it sent as the next one of its VC?
void Loop::check_order(Node& node, uint32_t port, const CellInFlight& cell) {
    MergedPaths& paths = *node.in(port).merged();
    if (cell.hec_error) return;
    MergedPaths::Vc& vc = paths.vcs[MergedPaths::key(cell.header)];
    const MergedPaths::Sent expected = vc.sent.front();
    const bool last = CellHead::last(cell.header);
    if (!feed.empty() && (expected.tick != cell.tick || expected.last != last))
        for (Node* link : links_)
            if (link->out(0).to == &node && link->out(0).to_port == port)
                feed.disordered({node.ports().time_now, int(node.index)}, int(link->index), cell.header, expected.last);
    vc.sent.pop_front();
    vc.lasts -= expected.last;
}

// Append a cell, to be filled in, to the wire of an output, and schedule the node that it arrives at.
template <class Cursor>
[[gnu::always_inline]] inline CellInFlight& Loop::next_on(const Output& output, uint64_t arrives, uint64_t tick, Cursor& cursor) {
    Wire& wire = *output.wire;
    CellInFlight& cell = wire.push_back();
    cell.tick = arrives;
    if (wire.size() == 1 && announce(*output.to, output.to_port, arrives))
        cursor.schedule_earlier(output.to->ports().ticket, arrives, tick);
    return cell;
}

// Put a cell into the ports of the node at which it arrives, ahead of the tick of its arrival. This saves the wire. It is possible
// if no cell is known that arrives there earlier or in the same tick. If one is given later that arrives earlier, the first goes
// back to its wire (undeliver); if it arrives in the same tick, the cell in the ports is contended (announce).
template <class Cursor>
[[gnu::always_inline]] inline void Loop::deliver_direct(const Output& output, const bp_ports& ports, uint64_t tick,
                                                                Cursor& cursor) {
    bp_ports& target = output.to->ports();
    const uint64_t arrives = arrival(output, ports, tick);
    if (target.arrive_tick <= arrives) {
        enqueue(output, ports, tick, arrives, cursor);
        return;
    }
    if (rarely(Node::has_cell_in_ports(target))) undeliver(*output.to);
    cursor.schedule_earlier(target.ticket, arrives, tick);
    if constexpr (!std::is_same_v<Cursor, SmallEventQueue::Cursor>)
        delivered_[target.ticket.node / 64] |= uint64_t(1) << target.ticket.node % 64;
    Node::later(target, Node::arrive(target));
    Node::arrive(target, {arrives, Node::IN_PORTS});
    target.i_port = uint8_t(output.to_port);
    std::memcpy(i_cell(target), o_cell(ports), CellInFlight::OCTETS);
}

// The cell in a node's ports goes back to the wire of its input.
[[gnu::noinline]] void Loop::undeliver(Node& node) {
    bp_ports& ports = node.ports();
    const uint32_t port = ports.i_port;
    CellInFlight& cell = node.in(port).push_front();
    std::memcpy(&cell, i_cell(ports), CellInFlight::OCTETS);
    cell.tick = ports.arrive_tick;
    node.first[port] = Node::key(cell.tick, port);
    Node::arrive(ports, Node::Arrival::of(std::min(node.first[port], Node::later(ports).as_key())));
}

// At the end of a run no cell is in a node's ports. Only the nodes to which the run delivered directly are examined: a large
// network has few of them in a short run. A small one has no marks, and all its nodes are examined.
void Loop::undeliver_all() {
    if (queue_.is_small()) {
        for (size_t k = 0; k < held(); ++k)
            if (Node::has_cell_in_ports(*node_ports_[k])) undeliver(Node::of(*node_ports_[k]));
        return;
    }
    for (size_t word = 0; word < delivered_.size(); ++word)
        for (uint64_t marks = std::exchange(delivered_[word], 0); marks; marks &= marks - 1) {
            Node& node = Node::of(*node_ports_[64 * word + size_t(__builtin_ctzll(marks))]);
            if (Node::has_cell_in_ports(node.ports())) undeliver(node);
        }
}

// Returns whether a cell can bypass a link: no cell is before it, and no error reaches it.
[[gnu::always_inline]] inline bool Loop::can_bypass(const Node& link, const bp_ports& ports) {
    return link.out(0).room >= Node::CELL_BITS && link.ports().arrive_tick == Node::NO_CELL && !ports.o_hec_error;
}

// A cell bypasses a link: the link is not evaluated. The only change of its state is the count of bits (Node::bypassed).
template <bool may_be_traced, class Cursor>
[[gnu::always_inline]] inline void Loop::bypass(const Output& before, const bp_ports& ports, uint64_t tick, Cursor& cursor) {
    Node& link = *before.to;
    Output& output = link.out(0);
    const uint64_t there = arrival(before, ports, tick);
    output.room -= Node::CELL_BITS;
    if (may_be_traced && output.traced) {
        link.digest_before = link.digests[0];
        trace(link.digests[0], ports, there);
    }
    enqueue(output, ports, tick, there + 1 + output.delay, cursor);
}

// Returns whether the last cell that bypassed a link arrives at it in a later tick.
bool Loop::arrives_later(const Node& link) const {
    const Output& output = link.out(0);
    return !output.wire->empty() && output.wire->back().tick - 1 - output.delay > now_;
}

// The last cell that bypassed a link has not arrived there yet, and settings may change before: it goes back to the link's wire.
void Loop::undo_bypass(Node& link) {
    Output& output = link.out(0);
    Node& to = *output.to;
    CellInFlight& cell = link.in(0).push_back();
    cell = output.wire->back();
    cell.tick -= 1 + output.delay;
    output.wire->pop_back();
    if (output.wire->empty()) {
        to.first[output.to_port] = Node::NO_CELL;
        Node::arrive(to.ports(), Node::Arrival::of(to.least()));
        wake(int(to.index));
    }
    if (output.traced) link.digests[0] = link.digest_before;
    output.room += Node::CELL_BITS;
    if (announce(link, 0, cell.tick)) wake(int(link.index));
}

// The first cell of a wire arrives at an input at a tick. Return whether the node is due earlier by that.
[[gnu::always_inline]] inline bool Loop::announce(Node& to, uint32_t port, uint64_t tick) {
    to.first[port] = Node::key(tick, port);
    bp_ports& ports = to.ports();
    const bool in_ports = Node::has_cell_in_ports(ports);
    if (tick > ports.arrive_tick || (tick == ports.arrive_tick && !in_ports)) {
        if (in_ports && tick < ports.later_tick) Node::later(ports, {tick, port});
        return false;
    }
    if (rarely(in_ports)) {
        if (tick == ports.arrive_tick) {
            ports.arrive_port = Node::CONTENDED;
            if (tick < ports.later_tick) Node::later(ports, {tick, port});
            return false;  // the node is due in that tick already
        }
        undeliver(to);
    }
    Node::arrive(ports, {tick, port});
    return true;
}

// The input whose cell is taken, of those whose cells arrived in the first tick: the next one by round robin.
uint32_t Loop::in_turn(const Node& node) {
    uint32_t port = node.turn;
    for (;; ++port) {
        if (port >= node.ports().inputs) port = 0;
        if (node.first[port] >> Node::PORT_BITS == node.ports().arrive_tick) return port;
    }
}

// Captures, monitors and the ledger see the cell that arrives.
void Loop::watch(Node& node, uint32_t port, uint64_t tick, const CellInFlight& cell) {
    for (const Tap& each : node.taps) {
        if (each.port != int(port)) continue;
        uint8_t payload[48];
        std::memcpy(payload, &cell.payload, 48);
        each.capture->cell(tick, cell.header, payload, cell.hec_error != 0, each.back);
    }
    if (node.monitor) node.monitor->comes(port, tick, cell);
    for (ArrivalMonitor* each : node.arrivals) each->comes(port, tick, cell);
    if (node.path) feed.path_in({tick, int(node.index)}, int(port), cell.header, cell.hec_error != 0);
    if (node.tags && CellHead::tagged(cell.header)) feed.tagged_in({tick, int(node.index)}, int(port), cell.header, cell.hec_error != 0);
}

// Count the cells that wait at the inputs. A cell that finds no place there is lost.
void Loop::wait(Node& node, uint64_t tick) {
    for (uint32_t p = 0; p < node.ports().inputs; ++p) {
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

// The ledger gets the node's report of the cell that it took in this step.
void Loop::tell(Node& node, bool gone) {
    const bp_ports& ports = node.ports();
    if (node.monitor && ports.drop) node.monitor->drops(ports.drop_vc);
    if (feed.empty()) return;
    const LedgerFeed::Place here{ports.time_now, int(node.index)};
    const uint32_t header = ports.i_header;
    if (!node.link) {
        const uint32_t vc = ports.drop_vc, reason = ports.drop_reason, accepted = ports.drop_accepted;
        const uint32_t drop_header = node.makes_cells ? (header & ~14u) | uint32_t(ports.drop_pti) << 1 : header;
        if (ports.drop) feed.seen(here.node, vc * 64 + reason);
        if (ports.report_consumed) feed.took(here, vc, accepted);
        else if (!ports.report_own) feed.dropped(here, vc, reason, accepted, drop_header);
        else if (!ports.drop) feed.made(here, vc, accepted);
        return;
    }
    feed.seen(here.node, gone);
    if (gone || ports.o_valid) {  // one that has errors and is gone comes here twice
        feed.changed(here, {header, ports.o_header, ports.i_hec_error != 0, ports.o_hec_error != 0,
                            ports.i_payload == ports.o_payload, gone ? WHY_GONE[ports.gone_why] : WHY_NONE, 0, 0});
    }
}

// The ledger gets the report of a cell that a link made.
void Loop::tell_extra(const Node& node) {
    const bp_ports& ports = node.ports();
    if (ledger.empty()) return;
    ledger.seen(int(node.index), 2);
    ledger.inserted(int(node.index), ports.o_header, ports.o_hec_error, ports.o_extra == 1);
}

uint64_t Loop::on_wire(int index, int port, uint32_t key, uint32_t mask) {
    Node& to = node(index);
    if (Node::has_cell_in_ports(to.ports()) && to.ports().i_port == port) undeliver(to);
    return to.in(port).count(key, mask);
}

}  // namespace bp
