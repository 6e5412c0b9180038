#include "ledger.hpp"

#include <algorithm>
#include <utility>

namespace bp {

namespace {

uint64_t place(int node, int port) { return uint64_t(node) << 8 | uint64_t(port); }
uint64_t row(int node, uint32_t number) { return uint64_t(node) << 32 | number; }

// The most cells that a VC without PDUs sends until it is looked how many it has sent: numbers of 32 bits are told apart by that.
constexpr uint64_t AHEAD = (1ull << 32) - (1ull << 24);

template <class Item>
Item& at(std::vector<Item>& list, size_t index) {
    if (list.size() <= index) list.resize(index + 1);
    return list[index];
}

}  // namespace

void Ledger::nodes(size_t count) {
    by_number_.resize(count);
    lines_.resize(count);
    seen_.resize(count);
}

int Ledger::add(const Hop* hops, size_t count) {
    const int index = int(vcs_.size());
    vcs_.emplace_back();
    Vc& vc = vcs_.back();
    for (size_t k = 0; k < count; ++k) {
        const Hop& hop = hops[k];
        vc.stages.emplace_back();
        vc.stages.back().hop = hop;
        if (hop.kind == LINK || hop.kind == SONET) {
            auto& there = passing_[place(hop.node, hop.port)];
            const size_t same = there.named.emplace(uint64_t(hop.key) << 32 | hop.mask, there.all.size()).first->second;
            at(there.all, same).push_back({index, k});
        } else if (k == 0 || hop.kind == SWITCH || hop.kind == ROOT) {
            at(by_number_[size_t(hop.node)], hop.number).push_back({index, k});
        }
        if (hop.kind == PATH) {
            note(entering_, hop, {index, k});
            path_port_[row(hop.node, hop.number)] = hop.port;
        }
        if (k && hops[k - 1].kind == PATH) note(leaving_, hop, {index, k - 1});
    }
    return index;
}

// Reports of hosts and nodes

void Ledger::enqueue(int index, uint32_t stream, uint32_t length, uint64_t cells, uint64_t offset) {
    for (const Passing& each : sources(index)) {
        Vc& vc = vcs_[size_t(each.vc)];
        vc.cells += cells;
        ++vc.counts.sent;
        vc.pdus.push_back(
            {vc.cells, offset, stream, length, uint8_t(1 + vc.early_ends), vc.early_why, vc.early_copies, 0, vc.early_node, false, false});
        vc.early_ends = vc.early_copies = 0;
        vc.early_why = WHY_NONE;
    }
}

void Ledger::without_pdus(int index) {
    Vc& vc = vcs_[size_t(index)];
    vc.without_pdus = true;
    vc.cells = AHEAD;
    alone_.push_back(index);
}

void Ledger::single(int index, uint64_t before) {
    for (const Passing& each : sources(index)) {
        if (vcs_[size_t(each.vc)].without_pdus) continue;
        add_foreign(vcs_[size_t(each.vc)].stages[0], before, before);
        ++vcs_[size_t(each.vc)].causes.foreign;
    }
}

void Ledger::ended(int index, uint32_t status, uint32_t length) {
    Vc& vc = vcs_[size_t(index)];
    settle_lost(vc);
    if (status == TIMEOUT) {  // no end has come: what there is of one or more PDUs is given up
        vc.joined = false;
        vc.given_up = true;
        return;
    }
    if (vc.pdus.empty()) {
        if (!vc.early_ends) vc.astray = true;
        else --vc.early_ends;
        if (status == 0) repeat(vc, vc.early_copies);
        return;
    }
    Pdu& pdu = vc.pdus.front();
    --pdu.ends;
    if (status == 0 && pdu.ends && pdu.copies) {  // the copy of a cell that was a PDU
        repeat(vc, pdu.copies);
    } else if (status == 0) {
        if (pdu.delivered) ++vc.whole;
        pdu.delivered = true;
        vc.astray |= length != pdu.length && pdu.why != WHY_ORDER;
    } else if (pdu.why == WHY_NONE && pdu.ends == 0) {
        // Whole, but what was left of the PDU before was still there, or its beginning was given up; or longer than
        // the VC's sink takes.
        const bool known = vc.joined || vc.given_up || status == OVERLENGTH;
        const uint32_t verdict = vc.given_up ? TIMEOUT : status;
        pdu.why = known ? uint8_t(WHY_VERDICT + verdict) : uint8_t(WHY_UNEXPLAINED);
        pdu.node = vc.stages.back().hop.node;
    }
    if (pdu.ends) return;
    vc.joined = pdu.cut;
    vc.given_up = false;
    const uint64_t end = pdu.end;
    settle(vc);
    settle_lost(vc);
    // All cells before this PDU have passed. Not yet all of its own, if an error in a header made its end.
    const uint64_t passed = std::exchange(vc.passed, end);
    for (Stage& stage : vc.stages) stage.forget(passed);
    vc.causes.settle(passed);
}

void Ledger::dropped(int node, uint32_t number, uint32_t reason, uint32_t accepted, uint32_t header) {
    if (const auto path = path_port_.find(row(node, number)); path != path_port_.end()) {
        const Paths* found = named(entering_, node, path->second, header);
        for (size_t k = 0; found && k < found->size(); ++k) {
            const Passing at = (*found)[k];
            Vc& vc = vcs_[size_t(at.vc)];
            lose(vc, at.stage, vc.stages[at.stage].came - 1, header, uint8_t(WHY_DROPPED + reason));
        }
        return;
    }
    const Paths* at = switched(node, number);
    if (!at) return;
    const uint32_t next = next_in(*at, accepted);
    for (const Passing& each : *at)
        if (hop(each).reasons >> reason & 1) lose(each, next, header, uint8_t(WHY_DROPPED + reason));
}

void Ledger::made(int node, uint32_t number, uint32_t accepted) {
    const Paths* at = switched(node, number);
    if (!at) return;
    const uint32_t next = next_in(*at, accepted);
    for (const Passing& each : *at) {
        if (hop(each).kind == ROOT) continue;  // it is not copied there, only at switches behind
        Vc& vc = vcs_[size_t(each.vc)];
        insert(vc, each.stage, widened(vc, each.stage, next), CellHead::OAM);
    }
}

void Ledger::took(int node, uint32_t number, uint32_t accepted) {
    const Paths* at = switched(node, number);
    if (!at) return;
    const uint32_t next = next_in(*at, accepted);  // a PDU's cell it can only be by errors in its header
    for (const Passing& each : *at) lose(each, next, CellHead::OAM, WHY_ASTRAY);
}

bool Ledger::read_counters(int node, Change& change) const {
    if (change.was_bad) return false;  // lost where its header became bad
    const Paths* at = find(node, 0, change.was);
    const Paths* to = change.gone || change.is_bad ? nullptr : find(node, 0, change.is);
    if (at) change.came_was = read_came(vcs_[size_t(at->front().vc)], at->front().stage);
    if (to && to != at) change.came_is = read_came(vcs_[size_t(to->front().vc)], to->front().stage);
    return at || to;
}

void Ledger::inserted(int node, uint32_t header, bool bad, bool copy) {
    if (bad) return;
    const Paths* to = find(node, 0, header);
    if (!to) return;
    const uint64_t next = came(to->front());
    for (const Passing& each : *to) insert(vcs_[size_t(each.vc)], each.stage, next, header, copy ? WHY_COPY : WHY_FOREIGN);
}

void Ledger::changed(int node, const Change& change) {
    const auto number = [&](const Paths* paths, uint32_t came) {
        const Vc& vc = vcs_[size_t(paths->front().vc)];
        const size_t stage = paths->front().stage;
        return widened(vc, stage, came + known_came(vc, stage));
    };
    const Paths* at = find(node, 0, change.was);
    const Paths* to = change.gone || change.is_bad ? nullptr : find(node, 0, change.is);
    const uint64_t ordinal = at ? number(at, change.came_was) - 1 : 0;
    if (change.gone) lose(*at, ordinal, change.was, change.gone);
    else arrive(node, 0, at, ordinal,
                {change.was, change.is, change.is_bad, change.same_payload, to && to != at ? number(to, change.came_is) : 0});
}

bool Ledger::read_counters(int node, uint32_t header, uint32_t& came) const {
    const Paths* at = find(node, 0, header);
    if (at) came = read_came(vcs_[size_t(at->front().vc)], at->front().stage + 1);
    return at;
}

void Ledger::disordered(int node, uint32_t header, bool expected_last, uint32_t came) {
    const Paths* at = find(node, 0, header);
    if (!at) return;
    for (const Passing& each : *at) {
        Vc& vc = vcs_[size_t(each.vc)];
        Run* foreign = nullptr;
        const size_t stage = each.stage + 1;
        const uint64_t cell = source(vc, stage, widened(vc, stage, came + known_came(vc, stage)), &foreign);
        if (!foreign) mark(vc, cell, node, WHY_ORDER);
        const int more = int(CellHead::last(header)) - int(expected_last);
        if (more) end(vc, foreign ? foreign->source : cell, more);
    }
}

void Ledger::look_after(uint64_t tick) {
    for (size_t node = 0; node < lines_.size(); ++node)
        for (int port = 0; port < 2; ++port) lose_overdue(int(node), port, tick);
}

void Ledger::seen(int node, uint32_t what) { ++at(seen_[size_t(node)], what); }

uint64_t Ledger::seen_at(int node, uint32_t what) const {
    const auto& counts = seen_[size_t(node)];
    return what < counts.size() ? counts[what] : 0;
}

// Results

Ledger::Counts Ledger::counts(int index) const {
    const Vc& vc = vcs_[size_t(index)];
    Counts found = vc.counts;
    for (const Pdu& pdu : vc.pdus) {
        if (pdu.delivered) ++found.delivered;
        else if (pdu.why) ++found.lost[{pdu.node, pdu.why}];
        else ++found.lost[{-1, WHY_UNDER_WAY}];
    }
    return found;
}

uint64_t Ledger::under_way(int index, uint32_t stream) const {
    uint64_t found = 0;
    for (const Pdu& pdu : vcs_[size_t(index)].pdus) found += pdu.open() && pdu.stream == stream;
    return found;
}

uint64_t Ledger::ends(int index) const {
    const Vc& vc = vcs_[size_t(index)];
    uint64_t found = vc.early_ends;
    for (const Pdu& pdu : vc.pdus) found += pdu.ends;
    return found;
}

uint64_t Ledger::records() const {
    uint64_t found = 0;
    for (const Vc& vc : vcs_) {
        found += vc.pdus.size();
        for (const Stage& stage : vc.stages) found += stage.runs.size();
    }
    return found;
}

void Ledger::archive(Archive& a) {
    a.same(vcs_.size());
    for (Vc& vc : vcs_) a(vc);
    if (a.gives()) {
        alone_.clear();
        for (size_t k = 0; k < vcs_.size(); ++k)
            if (vcs_[k].without_pdus) alone_.push_back(int(k));
    }
    a.same(lines_.size());
    for (Line& line : lines_)
        for (SonetInFlight& way : line.way) a(way);
    a(seen_, recorded_, most_recorded_, not_recorded_);
}

// Identification of a cell

const Ledger::Paths* Ledger::find(int node, int port, uint32_t header) const {
    const auto known = passing_.find(place(node, port));
    if (known != passing_.end())
        for (const Paths& each : known->second.all)
            if (hop(each.front()).names(header)) return &each;
    return nullptr;
}

void Ledger::note(Inputs& inputs, const Hop& there, const Passing& at) {
    Vcs& vcs = inputs[place(there.node, there.port)];
    vcs.mask = there.mask & ~CellHead::NOT_RM;
    vcs.named[there.key & vcs.mask].push_back(at);
}

const Ledger::Paths* Ledger::named(const Inputs& inputs, int node, int port, uint32_t header) {
    const auto known = inputs.find(place(node, port));
    if (known == inputs.end()) return nullptr;
    const auto found = known->second.named.find(header >> 4 & known->second.mask);
    return found == known->second.named.end() ? nullptr : &found->second;
}

uint64_t Ledger::inside_path(int index, const Hop& hop) const {
    for (const Stage& stage : vcs_[size_t(index)].stages)
        if (&stage.hop == &hop) return stage.came - stage.lost - stage.left;
    return 0;
}

// The VC whose cells a switch knows by a number; it makes and takes no cells of a path's VCs.
const Ledger::Paths* Ledger::switched(int node, uint32_t number) const {
    const auto& known = by_number_[size_t(node)];
    return number < known.size() && !known[number].empty() ? &known[number] : nullptr;
}

// The number, modulo 2^32, of the next cell that comes to a switch, which has accepted so many: accepted = came - lost +
// made there, all of them counted since the start.
uint32_t Ledger::next_in(const Paths& at, uint32_t accepted) const {
    return accepted + uint32_t(vcs_[size_t(at.front().vc)].stages[at.front().stage].shift());
}

// A cell is lost at a switch, on one of the paths there.
void Ledger::lose(const Passing& at, uint32_t ordinal, uint32_t header, uint8_t why) {
    Vc& vc = vcs_[size_t(at.vc)];
    lose(vc, at.stage, widened(vc, at.stage, ordinal), header, why);
}

// A number of cells at a stage's input, of which hardware knows 32 bits: there can't be more than the source's and those
// that came astray, less those lost.
uint64_t Ledger::widened(const Vc& vc, size_t stage, uint32_t low) const {
    uint64_t most = vc.cells;
    for (size_t k = 0; k < stage; ++k) most -= uint64_t(vc.stages[k].shift());
    return most - uint32_t(uint32_t(most) - low);
}

// The number of cells of the VC that came to a stage, modulo 2^32, is the sum of read_came() and known_came(). This one reads counters of
// nodes and wires, from the last switch or interface before the stage to the stage; they must be read in the tick that is meant.
uint32_t Ledger::read_came(const Vc& vc, size_t stage) const {
    const Hop& hop = vc.stages[stage].hop;
    if (hop.kind == PATH) return 0;
    return read_left(vc, stage - 1) - uint32_t(cells_.on_wire(hop.node, hop.port, hop.key, hop.mask));
}

uint32_t Ledger::read_left(const Vc& vc, size_t stage) const {
    const Hop& hop = vc.stages[stage].hop;
    if (hop.kind == PATH) return 0;
    if (hop.kind == NIC || hop.kind == SWITCH) return cells_.read(hop.node, hop.sent);
    const uint32_t came = read_came(vc, stage);
    return hop.kind == SONET ? came - uint32_t(inside(hop)) : came;
}

// The ledger's own part of that number, valid once all earlier reports are entered.
uint32_t Ledger::known_came(const Vc& vc, size_t stage) const {
    if (vc.stages[stage].hop.kind == PATH) return uint32_t(vc.stages[stage].came);
    return known_left(vc, stage - 1);
}

uint32_t Ledger::known_left(const Vc& vc, size_t stage) const {
    const Hop& hop = vc.stages[stage].hop;
    if (hop.kind == PATH) return uint32_t(vc.stages[stage].left);
    if (hop.kind == NIC || hop.kind == SWITCH) return 0;
    return known_came(vc, stage) - uint32_t(vc.stages[stage].shift());
}

// The number of the first of a VC's cells that are inside a SONET line.
uint64_t Ledger::first_inside(const Passing& at) const {
    const Vc& vc = vcs_[size_t(at.vc)];
    return came(vc, at.stage) - inside(vc.stages[at.stage].hop);
}

// The number at the source of a cell that a stage took in; NOWHERE if it is none of a PDU's, and `foreign` is its run then.
uint64_t Ledger::source(Vc& vc, size_t stage, uint64_t ordinal, Run** foreign) {
    for (size_t k = stage; k-- > 0;) {
        Stage& before = vc.stages[k];
        const auto next = std::upper_bound(before.runs.begin(), before.runs.end(), ordinal,
                                           [](uint64_t value, const Run& run) { return value < run.out; });
        if (next != before.runs.end() && next->out - ordinal <= next->foreign) {
            *foreign = &*next;
            return NOWHERE;
        }
        ordinal += uint64_t(next == before.runs.begin() ? before.shift_before : std::prev(next)->shift);
    }
    return ordinal;
}

// Cells that are not the VC's own, came out of a stage, and have not come to its sink.
uint64_t Ledger::foreign_under_way(const Vc& vc) const {
    if (vc.causes.foreign <= 0) return 0;
    uint64_t ordinal = came(vc, vc.stages.size() - 1), found = 0;
    for (size_t k = vc.stages.size() - 1; k-- > 0;) {
        const Stage& stage = vc.stages[k];
        int64_t shift = stage.shift_before;
        for (const Run& run : stage.runs) {
            if (run.out > ordinal) found += std::min(run.foreign, run.out - ordinal);
            // of a run of foreign cells that is passed in part, those count that have passed
            else shift = run.shift;
            if (run.out > ordinal && run.out - ordinal < run.foreign) ordinal = run.out - run.foreign;
        }
        ordinal += uint64_t(shift);
    }
    return std::min(found, uint64_t(vc.causes.foreign));
}

// The number at the source of the VC's own cell that comes to a stage with this number, or next after it.
uint64_t Ledger::next_own(Vc& vc, size_t stage, uint64_t ordinal) {
    for (;; ++ordinal) {
        Run* foreign = nullptr;
        const uint64_t own = source(vc, stage, ordinal, &foreign);
        if (!foreign) return own;
    }
}

// The PDU of a cell; of one whose PDU is settled, nullptr. Often it is that of the cell asked for before.
Ledger::Pdu* Ledger::pdu_of(Vc& vc, uint64_t source) {
    if (vc.recent && source >= vc.recent_first && source < vc.recent->end) return vc.recent;
    if (source < vc.settled || source >= vc.cells || vc.pdus.empty()) return nullptr;
    const auto found = std::upper_bound(vc.pdus.begin(), vc.pdus.end(), source,
                                        [](uint64_t value, const Pdu& pdu) { return value < pdu.end; });
    vc.recent_first = found == vc.pdus.begin() ? vc.settled : std::prev(found)->end;
    vc.recent_number = vc.settled_pdus + uint64_t(found - vc.pdus.begin());
    return vc.recent = &*found;
}

// Losses and errors of a cell

// A cell is lost where these paths are one.
void Ledger::lose(const Paths& at, uint64_t ordinal, uint32_t header, uint8_t why) {
    for (const Passing& each : at) lose(vcs_[size_t(each.vc)], each.stage, ordinal, header, why);
}

// A cell of the VC is lost at a stage.
void Ledger::lose(Vc& vc, size_t index, uint64_t ordinal, uint32_t header, uint8_t why) {
    Stage& stage = vc.stages[index];
    Run* foreign = nullptr;
    const uint64_t cell = source(vc, index, ordinal, &foreign);
    const uint64_t out = ordinal - uint64_t(stage.shift());
    const uint64_t upto = foreign ? foreign->source : cell;
    ++stage.lost;
    if (!stage.runs.empty() && stage.runs.back().out == out && !stage.runs.back().foreign) {
        ++stage.runs.back().shift;
        stage.runs.back().source = std::max(stage.runs.back().source, upto);
    } else {
        stage.runs.push_back({out, stage.shift() + 1, upto, 0});
    }
    if (!foreign) mark(vc, cell, stage.hop.node, why);
    if (foreign) count_lost_foreign(vc, stage.hop, header, why);
    else count_lost(vc, stage.hop, cell, header, why);
    if (CellHead::last(header)) end(vc, upto, -1);
    if (vc.without_pdus) settle_cells(vc);
}

// A cell of a PDU is lost.
void Ledger::count_lost(Vc& vc, const Hop& hop, uint64_t cell, uint32_t header, uint8_t why) {
    LostCells& lost = vc.causes.lost[{hop.node, why}];
    ++lost.all;
    lost.tagged += CellHead::tagged(header);
    if (!vc.causes.in_error.empty()) vc.causes.in_error.erase(cell);
    if (!most_recorded_) return;
    const Pdu* pdu = pdu_of(vc, cell);
    LossRecord made{};
    made.cell = cell;
    made.pdu = pdu ? vc.recent_number : NOWHERE;
    made.offset = pdu ? pdu->offset : NOWHERE;
    made.position = pdu ? uint32_t(cell - vc.recent_first) : ~0u;
    made.cells = pdu ? uint32_t(pdu->end - vc.recent_first) : 0;
    made.user = 1;
    record(vc, hop, made, header, why);
}

// A cell that is no PDU's of the VC is lost: an OAM cell, or one that came astray. What a switch takes is not lost.
void Ledger::count_lost_foreign(Vc& vc, const Hop& hop, uint32_t header, uint8_t why) {
    --vc.causes.foreign;
    if (CellHead::user(header)) --vc.causes.misinserted;
    if (!most_recorded_ || why == WHY_ASTRAY) return;
    LossRecord made{};
    made.cell = made.pdu = made.offset = NOWHERE;
    made.position = ~0u;
    record(vc, hop, made, header, why);
}

void Ledger::record(const Vc& vc, const Hop& hop, LossRecord made, uint32_t header, uint8_t why) {
    if (recorded_.size() >= most_recorded_) {
        ++not_recorded_;
        return;
    }
    made.tick = cells_.tick(hop.node);
    made.place = int32_t(&vc - vcs_.data());
    made.node = hop.node;
    made.queue = hop.queue ? cells_.read(hop.node, hop.queue) : ~0u;
    made.vc_queue = hop.kind == SWITCH ? cells_.read(hop.node, hop.taken) - cells_.read(hop.node, hop.sent) : ~0u;
    made.why = why;
    made.tagged = CellHead::tagged(header);
    recorded_.push_back(made);
}

// A cell goes out of a stage that did not come in, before the own one with this number at its input, and that at the source.
void Ledger::add_foreign(Stage& stage, uint64_t ordinal, uint64_t before) {
    const uint64_t out = ordinal - uint64_t(stage.shift());
    Run* last = stage.runs.empty() ? nullptr : &stage.runs.back();
    if (last && last->foreign && last->out == out && last->source == before) {
        ++last->out;
        --last->shift;
        ++last->foreign;
    } else {
        stage.runs.push_back({out + 1, stage.shift() - 1, before, 1});
    }
}

// A cell that is not the VC's own comes out of a stage, between its own.
void Ledger::insert(Vc& vc, size_t index, uint64_t ordinal, uint32_t header, Why why) {
    Stage& stage = vc.stages[index];
    const uint64_t cell = next_own(vc, index, ordinal);
    const bool last = CellHead::last(header);
    add_foreign(stage, ordinal, cell);
    ++vc.causes.foreign;
    if (CellHead::user(header)) {
        if (!last || why != WHY_COPY) mark(vc, cell, stage.hop.node, why);  // a copy of an end ends by itself
        ++vc.causes.misinserted;
        vc.causes.duplicated += why == WHY_COPY;
    }
    if (!last || vc.without_pdus) return;
    end(vc, cell, 1);
    if (why != WHY_COPY) return;
    Pdu* pdu = cell >= vc.cells ? nullptr : pdu_of(vc, std::max(cell, vc.settled));
    ++(pdu ? pdu->copies : vc.early_copies);
}

// A cell comes out of a link or a SONET line otherwise than it went in; `at` is none if nothing went in.
void Ledger::arrive(int node, int port, const Paths* at, uint64_t ordinal, const Arrived& cell) {
    const uint32_t was = cell.was, is = cell.is;
    const bool is_bad = cell.is_bad;
    const Paths* to = is_bad ? nullptr : find(node, port, is);
    if (at && at == to) {
        for (const Passing& each : *at) {
            Vc& vc = vcs_[size_t(each.vc)];
            Run* foreign = nullptr;
            const uint64_t own = source(vc, each.stage, ordinal, &foreign);
            if (!foreign && !cell.same_payload) {
                mark(vc, own, node, WHY_PAYLOAD);
                vc.causes.in_error[own] = 1;
                if (vc.without_pdus) settle_cells(vc);
            } else if (!foreign && was != is) mark(vc, own, node, WHY_ASTRAY);
            else if (foreign && CellHead::user(is) && !CellHead::user(was)) {
                mark(vc, next_own(vc, each.stage, ordinal), node, WHY_FOREIGN);
                ++vc.causes.misinserted;
            }
            const int more = int(CellHead::last(is)) - int(CellHead::last(was));
            if (more) end(vc, foreign ? foreign->source : own, more);
        }
        return;
    }
    if (at) lose(*at, ordinal, was, is_bad ? WHY_HEADER : WHY_ASTRAY);
    if (to) {
        const bool line = hop(to->front()).kind == SONET;
        const uint64_t next = line ? first_inside(to->front()) : cell.next;
        for (const Passing& each : *to) insert(vcs_[size_t(each.vc)], each.stage, next, is);
    }
}

// One end more, or less, will come to the sink before or with that of the cell's PDU.
void Ledger::end(Vc& vc, uint64_t source, int more) {
    if (vc.without_pdus) return;
    Pdu* pdu = source >= vc.cells ? nullptr : pdu_of(vc, std::max(source, vc.settled));
    uint8_t& ends = pdu ? pdu->ends : vc.early_ends;
    ends = uint8_t(ends + more);
    if (pdu && source + 1 == pdu->end) pdu->cut = more < 0;
    if (more < 0) settle_lost(vc);
}

void Ledger::mark(Vc& vc, uint64_t source, int node, uint8_t why) {
    Pdu* pdu = pdu_of(vc, source);
    if (pdu && pdu->why == WHY_NONE) {
        pdu->why = why;
        pdu->node = node;
    } else if (source >= vc.cells && vc.early_why == WHY_NONE) {
        vc.early_why = why;
        vc.early_node = node;
    }
}

void Ledger::settle(Vc& vc) {
    const Pdu& pdu = vc.pdus.front();
    if (pdu.delivered) ++vc.counts.delivered;
    else ++vc.counts.lost[{pdu.node, pdu.why}];
    for (auto& [cause, count] : vc.counts.lost)  // PDUs in disorder are not lost if as many came whole
        for (; vc.whole && count && cause.second == WHY_ORDER; --vc.whole, --count) ++vc.counts.delivered;
    vc.settled = pdu.end;
    ++vc.settled_pdus;
    vc.recent = nullptr;
    vc.pdus.pop_front();
}

// For a VC without PDUs: an upper bound of its cells.
void Ledger::look_ahead(Vc& vc) const { vc.cells = widened(vc, 0, left_low(vc, 0)) + AHEAD; }

// For a VC without PDUs: now and then the records of cells that have come to the sink are removed.
void Ledger::settle_cells(Vc& vc) {
    constexpr uint16_t EVERY = 1024;
    if (++vc.till_settled < EVERY) return;
    vc.till_settled = 0;
    look_ahead(vc);
    const size_t last = vc.stages.size() - 1;
    const uint64_t passed = next_own(vc, last, came(vc, last));
    for (Stage& stage : vc.stages) stage.forget(passed);
    vc.causes.settle(passed);
}

// PDUs of which no end will come are settled when nothing before them is open.
void Ledger::settle_lost(Vc& vc) {
    while (!vc.pdus.empty() && vc.pdus.front().ends == 0) {
        vc.joined = true;
        settle(vc);
    }
}

// SONET lines

// The first cell on a way is lost.
void Ledger::lose_first(int node, int port) {
    SonetInFlight& line = crossing(node, port);
    const uint32_t header = line.first().header;
    const Paths* at = find(node, port, header);
    if (at) lose(*at, first_inside(at->front()), header, WHY_LINE);
    line.pop();
}

void Ledger::lose_overdue(int node, int port, uint64_t tick) {
    while (crossing(node, port).overdue(tick)) lose_first(node, port);
}

// The cell that comes out is not the first one that went in. Which one is it? The same one, or one that differs in a few bits; else the
// first of the VC that its header names; else none, and it may be an idle cell in error.
void Ledger::line_changed(int node, int port, uint32_t header, const Payload& payload, bool bad) {
    SonetInFlight& line = crossing(node, port);
    const Paths* named = bad ? nullptr : find(node, port, header);
    uint64_t which = line.nearest(header, payload);
    if (which == line.size() && named) which = line.find(hop(named->front()).key, hop(named->front()).mask);
    if (which == line.size()) {
        if (named) arrive(node, port, nullptr, 0, {0, header, false, true, 0});
        return;
    }
    for (; which; --which) lose_first(node, port);
    const SonetInFlight::Inside cell = line.first();
    const Paths* at = find(node, port, cell.header);
    const uint64_t ordinal = at ? first_inside(at->front()) : 0;
    line.pop();
    arrive(node, port, at, ordinal, {cell.header, header, bad, cell.payload == payload, 0});
}

}  // namespace bp
