// The border in C (network.h).
#include "network.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "net.hpp"
#include "parts.hpp"
#include "pattern.hpp"

bp_net* bp_new(void) { return new bp_net; }
void bp_free(bp_net* net) { delete net; }
const char* bp_error(bp_net* net) { return net->error.c_str(); }

int bp_add_node(bp_net* net, const char* path) {
    return net->attempt([&] { return net->loop.add(path); });
}

int bp_connect(bp_net* net, int from, int from_port, int to, int to_port, uint64_t delay, int sends, int merges) {
    return net->attempt([&] {
        net->loop.connect(from, from_port, to, to_port, delay, sends != 0, merges != 0);
        return 0;
    });
}

void bp_csr_write(bp_net* net, int index, uint32_t addr, uint32_t value) { net->loop.write(index, addr, value); }
void bp_csr_write_all(bp_net* net, int index, uint32_t addr, const uint32_t* values, uint32_t count) {
    for (uint32_t k = 0; k < count; ++k) net->loop.write(index, addr + k, values[k]);
}
uint32_t bp_csr_read(bp_net* net, int index, uint32_t addr) { return net->loop.read(index, addr); }
void bp_schedule(bp_net* net, const bp_scheduled_write* writes, uint64_t count) {
    static_assert(sizeof(bp_scheduled_write) == sizeof(bp::ScheduledWrite), "they are one");
    net->loop.schedule(reinterpret_cast<const bp::ScheduledWrite*>(writes), size_t(count));
}
uint64_t bp_made(bp_net* net) { return net->loop.made(); }
void bp_settle(bp_net* net, int index) { net->loop.node(index).settle(); }

void bp_send(bp_net* net, const uint8_t* octets) { net->ahead.send(octets); }
void bp_send_at(bp_net* net, uint64_t tick, const uint8_t* octets) { net->ahead.send_at(tick, octets); }

void bp_impair_frames(bp_net* net, int index, uint32_t lose, uint32_t duplicate, uint32_t reorder, uint64_t wait, uint64_t state) {
    net->loop.impair(index, {lose, duplicate, reorder, 0, wait, state});
}

uint64_t bp_frames(bp_net* net, int index, uint32_t vc, int what) {
    const bp::Nic& nic = net->loop.nic(index);
    return what == 0 ? nic.lost(vc) : what == 1 ? nic.duplicated(vc) : what == 2 ? nic.reordered(vc) : nic.held(vc);
}

int bp_send_cell(bp_net* net, int index, uint32_t vc, uint32_t pti, const uint8_t* octets) {
    bp::Nic& nic = net->loop.nic(index);
    if (!nic.takes_singles()) return 0;
    bp::Single cell;
    std::memcpy(cell.octets, octets, sizeof cell.octets);
    cell.pti = uint8_t(pti);
    nic.send_single(vc, cell);
    net->loop.wake(index);
    return 1;
}

void bp_ledger_vc(bp_net* net, int source, uint32_t vc, const bp_hop* hops, int count) {
    net->loop.vc(source, vc, reinterpret_cast<const bp::Ledger::Hop*>(hops), size_t(count));
}

int bp_ledger(bp_net* net, int place, bp_account* account, bp_loss* losses, int most) {
    bp::Loop& loop = net->loop;
    bp::Ledger& ledger = loop.ledger;
    ledger.look_after(loop.now());
    const bp::Ledger::Counts counts = ledger.counts(place);
    *account = {counts.sent, counts.delivered, counts.repeated, ledger.ends(place), 0, 0, ledger.astray(place)};
    ledger.each_hop(place, [&](const bp::Ledger::Hop& hop) {
        if (ledger.is_without_pdus(place)) return;
        bp::Node& node = loop.node(hop.node);
        if (hop.port >= 0) account->ends_there += node.in(hop.port).count(hop.key, hop.mask, true);
        else if (hop.kind == bp::Ledger::NIC) account->ends_there += node.nic->backlog(hop.number);
        if (hop.kind == bp::Ledger::ROOT) account->queued += node.read(hop.taken);
        if (hop.kind == bp::Ledger::SWITCH) account->queued += node.read(hop.taken) - node.read(hop.sent);
        if (hop.kind == bp::Ledger::PATH) account->queued += ledger.inside_path(place, hop);
        if (hop.kind == bp::Ledger::SONET) account->ends_there += ledger.ends_inside(hop);
    });
    int count = 0;
    for (const auto& [cause, pdus] : counts.lost) {
        if (count == most) break;
        losses[count++] = {cause.first, cause.second, pdus};
    }
    return count;
}

int bp_ledger_cells(bp_net* net, int place, bp_cell_account* account, bp_cell_loss* losses, int most) {
    bp::Ledger& ledger = net->loop.ledger;
    const bp::Ledger::CellCauses& causes = ledger.causes(place);
    const bp::Ledger::Hop& source = ledger.source(place);
    const bool alone = ledger.is_without_pdus(place);
    const uint64_t sent = alone ? ledger.sent(place) : net->loop.nic(source.node).user_cells(source.number);
    *account = {sent, ledger.received(place), causes.all_errored(), causes.tagged, causes.misinserted, causes.duplicated};
    int count = 0;
    for (const auto& [cause, lost] : causes.lost) {
        if (count == most) break;
        losses[count++] = {cause.first, cause.second, lost.all, lost.tagged};
    }
    return count;
}

void bp_count_tagged(bp_net* net, int place) { net->loop.count_tagged(place); }
void bp_without_pdus(bp_net* net, int place) { net->loop.ledger.without_pdus(place); }
void bp_record_losses(bp_net* net, uint64_t most) { net->loop.ledger.record(most); }

uint64_t bp_recorded_losses(bp_net* net, uint64_t* left_out) {
    *left_out = net->loop.ledger.not_recorded();
    return net->loop.ledger.recorded().size();
}

const bp_loss_record* bp_loss_records(bp_net* net) {
    static_assert(sizeof(bp_loss_record) == sizeof(bp::Ledger::LossRecord));
    return reinterpret_cast<const bp_loss_record*>(net->loop.ledger.recorded().data());
}

uint64_t bp_under_way(bp_net* net, int place, uint32_t stream) {
    net->loop.ledger.look_after(net->loop.now());
    const bp::Ledger::Hop& source = net->loop.ledger.source(place);
    return net->loop.ledger.under_way(place, stream) + net->loop.nic(source.node).held(source.number, stream);
}

uint64_t bp_ledger_seen(bp_net* net, int index, uint32_t what) { return net->loop.ledger.seen_at(index, what); }
uint64_t bp_ledger_records(bp_net* net) { return net->loop.ledger.records(); }

int bp_run(bp_net* net, uint64_t until) {
    if (net->attachment) net->attachment->run(until);
    else net->ahead.run_alone(until);
    return int(net->loop.inbox.events().size());
}

int bp_is_short(bp_net* net, uint64_t until) {
    // Ticks: 0.7 ms. Of many such runs in a row one counts as long, so that other threads get their turn.
    constexpr uint64_t SHORT = 4096, MANY = 64;
    if (net->attachment || until > net->loop.now() + SHORT) return 0;
    return ++net->short_runs % MANY != 0;
}

int bp_may_run_ahead(bp_net* net) { return !net->attachment && net->loop.may_run_ahead(); }
void bp_begin_ahead(bp_net* net) { net->ahead.begin(); }
int bp_run_ahead(bp_net* net, uint64_t until, uint64_t limit, uint64_t reaction) {
    return int(net->ahead.run(until, limit, reaction));
}
void bp_end_ahead(bp_net* net, int is_whole) { net->ahead.end(is_whole != 0); }

int bp_cut(bp_net* net, const uint32_t* part_of, uint64_t threads) {
    return net->attempt([&] {
        net->loop.cut(part_of, size_t(threads));
        return 0;
    });
}

const char* bp_why_whole(bp_net* net) { return net->loop.parts() ? net->loop.parts()->why_whole() : "it was not cut"; }
uint64_t bp_parts(bp_net* net) { return net->loop.parts() ? net->loop.parts()->count() : 1; }
uint64_t bp_threads(bp_net* net) { return net->loop.parts() ? net->loop.parts()->threads() : 1; }
uint64_t bp_windows(bp_net* net) { return net->loop.parts() ? net->loop.parts()->windows() : 0; }

void bp_record_windows(bp_net* net) {
    if (net->loop.parts()) net->loop.parts()->record();
}

uint64_t bp_recorded_windows(bp_net* net, bp_window* into, uint64_t most) {
    if (!net->loop.parts()) return 0;
    const auto& found = net->loop.parts()->recorded();
    std::copy_n(found.begin(), std::min<uint64_t>(most, found.size()), into);
    return found.size();
}

uint64_t bp_dependences(bp_net* net, bp_dependence* into, uint64_t most) {
    if (!net->loop.parts()) return 0;
    const auto found = net->loop.parts()->dependences();
    std::copy_n(found.begin(), std::min<uint64_t>(most, found.size()), into);
    return found.size();
}

void bp_share(bp_net* net, uint32_t threads, uint32_t* first, uint64_t* turn) {
    if (!net->loop.parts()) return;
    const bp::Share found = net->loop.parts()->share(threads);
    std::copy(found.first.begin(), found.first.end(), first);
    std::copy(found.turn.begin(), found.turn.end(), turn);
}

const bp_event* bp_events(bp_net* net) { return net->inbox().events().data(); }
uint64_t bp_now(bp_net* net) { return net->loop.now(); }
uint64_t bp_next_tick(bp_net* net, int index) { return net->loop.next_tick(index); }
void bp_act_after_runs(bp_net* net) { net->loop.act_after_runs(); }

int bp_check(bp_net* net, uint32_t handle, uint32_t start, uint32_t key, uint64_t offset, uint32_t length) {
    const bp::Octets& sdu = net->inbox().sdu(handle);
    return size_t(start) + length <= sdu.size() && bp::pattern_equal(sdu.data() + start, key, offset, length);
}

uint32_t bp_checksum(bp_net* net, uint32_t handle, uint32_t start, uint32_t length) {
    return bp::internet_sum(net->inbox().sdu(handle).data() + start, length);
}

const uint8_t* bp_sdu(bp_net* net, uint32_t handle) { return net->inbox().sdu(handle).data(); }

void bp_source(bp_net* net, int index, uint32_t vc, uint32_t length, uint32_t key) {
    net->loop.nic(index).source(vc, length, key);
    net->loop.wake(index);
}

void bp_sink(bp_net* net, int index, uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length,
             uint32_t every) {
    net->loop.nic(index).sink(vc, key, reply_vc, reply_length, every);
}

void bp_sink_counts(bp_net* net, int index, uint32_t vc, uint64_t* good, uint64_t* bad) {
    *good = net->loop.nic(index).good(vc);
    *bad = net->loop.nic(index).bad(vc);
}

void bp_stats(bp_net* net, int index, bp_node_stats* stats) {
    const bp::Node& node = net->loop.node(index);
    *stats = {node.evaluations(), node.cells_in() + node.bypassed(), node.cells_out() + node.bypassed(), 0, node.ingress_most, node.ingress_lost};
    for (uint32_t p = 0; p < bp::Node::PORTS; ++p) stats->in_flight += node.in(p).in_all();
}

uint64_t bp_wire_most(bp_net* net, int index, int port) {
    net->loop.node(index).apply_bypassed();
    return net->loop.node(index).in(port).most();
}
uint64_t bp_backlog(bp_net* net, int index, uint32_t vc) {
    return net->loop.nic(index).backlog(vc) + net->loop.nic(index).singles(vc);
}
uint64_t bp_user_cells_sent(bp_net* net, int index, uint32_t vc) { return net->loop.nic(index).user_cells(vc); }
uint64_t bp_cells_due(bp_net* net, int index, uint32_t vc) { return net->loop.nic(index).cells_due(vc); }

int bp_capture(bp_net* net, const char* path, uint32_t link, uint64_t from) {
    net->captures.push_back(std::make_unique<bp::Capture>(path, link, from));
    return int(net->captures.size()) - 1;
}

uint64_t bp_capture_length(bp_net* net, int capture) { return net->captures[size_t(capture)]->length(); }

void bp_capture_host(bp_net* net, int capture, int index) {
    net->loop.nic(index).captures.push_back(net->captures[size_t(capture)].get());
}

void bp_capture_input(bp_net* net, int capture, int index, int port, int back) {
    net->loop.capture_input(index, {port, back != 0, net->captures[size_t(capture)].get()});
}

int bp_capture_end(bp_net* net, int capture) { return net->captures[size_t(capture)]->close(); }

int bp_monitor(bp_net* net, int index, uint32_t port, const bp_monitored_vc* vcs, int count, uint64_t late_from) {
    return net->attempt([&] {
        std::vector<bp::QueueMonitor::Vc> monitored;
        for (int k = 0; k < count; ++k) {
            const bp_monitored_vc& vc = vcs[k];
            monitored.push_back({vc.port, vc.key, vc.mask, vc.number, vc.out_key, vc.out_mask});
        }
        net->loop.measure(index, port, std::move(monitored), late_from);
        return 0;
    });
}

void bp_monitor_arm(bp_net* net, uint64_t level, int empty) { net->loop.monitor().arm(level, empty != 0); }

void bp_monitor_read(bp_net* net, bp_monitor_counts* counts) {
    const bp::QueueMonitor::Counts& now = net->loop.monitor().counts();
    *counts = {now.queue, now.came, now.lost, now.cycles, now.most, now.late, net->loop.monitor().armed()};
}

int bp_monitor_heights(bp_net* net, uint64_t* heights, int most) {
    bp::QueueMonitor& monitor = net->loop.monitor();
    const int count = int(monitor.heights().size());
    if (count <= most) {
        std::copy(monitor.heights().begin(), monitor.heights().end(), heights);
        monitor.clear_heights();
    }
    return count;
}

int bp_watch_arrivals(bp_net* net, int index, const bp_arrival_place* place) {
    return net->loop.watch_arrivals(index, {place->port, place->key, place->mask, place->period, place->limit});
}

void bp_arrivals(bp_net* net, int number, bp_arrival_counts* counts) {
    const bp::ArrivalMonitor::Counts& now = net->loop.arrivals(number).counts();
    *counts = {now.cells, now.nonconforming, now.most, now.least};
}

void bp_trace(bp_net* net, int from, int from_port, int on) {
    net->loop.trace(from, from_port, on != 0, on == 2);
}

uint64_t bp_digest(bp_net* net, int from, int from_port) { return net->loop.node(from).digests[from_port]; }

int bp_record(bp_net* net, int index) {
    return net->attempt([&] {
        net->loop.record(index);
        return 0;
    });
}

const char* bp_recorded_ports(bp_net* net, int index) { return net->loop.node(index).recording->ports().c_str(); }

const uint8_t* bp_recorded(bp_net* net, int index, uint64_t* length) {
    const std::vector<uint8_t>& octets = net->loop.node(index).recording->octets();
    *length = octets.size();
    return octets.data();
}

const uint8_t* bp_model_state(bp_net* net, int index, uint64_t* length) {
    return static_cast<const uint8_t*>(net->loop.node(index).state(length));
}

int bp_save(bp_net* net) {
    return net->attempt([&] {
        bp::Archive out;
        net->archive(out);
        net->saved = out.taken();
        return 0;
    });
}

const uint8_t* bp_saved(bp_net* net, uint64_t* length) {
    *length = net->saved.size();
    return net->saved.data();
}

int bp_restore(bp_net* net, const uint8_t* octets, uint64_t length) {
    return net->attempt([&] {
        bp::Archive in(octets, length);
        net->archive(in);
        in.end();
        return 0;
    });
}
