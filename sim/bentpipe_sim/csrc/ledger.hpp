// The loss ledger: of every PDU that a NIC was given, whether it was delivered, or where and why it was lost.
//
// Nothing is done for a cell. Order within a VC is kept by every node, so a cell is known by its number within its VC:
// the nodes tell of the cells that they drop or damage (rare), and from a cell's number at that node the losses
// recorded upstream lead back, node by node, to its number at the source, and so to its PDU. A PDU's first cause counts.
// Hardware counts cells in 32 bits: all of its numbers are taken modulo 2^32, beside a bound from above.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bp {

enum Why : uint8_t {
    WHY_NONE,
    WHY_FULL, WHY_EPD, WHY_PPD, WHY_CLP,  // a switch dropped a cell of it, in the order of its counters
    WHY_LISTED,                           // a link: a listed loss
    WHY_PAYLOAD,                          // bit errors in a cell's payload
    WHY_HEADER,                           // a header error that the next node drops the cell for (HEC)
    WHY_ASTRAY,                           // a header error that went unnoticed, or was miscorrected
    WHY_FOREIGN,                          // another VC's cell, astray, came between its own
    WHY_LINE,                             // cells that a SONET line did not bring to its end
    WHY_VERDICT = 16,                     // + status: all its cells came, but not as a PDU of its own
    WHY_UNEXPLAINED = 32,
    WHY_UNDER_WAY,                        // not lost: at the end of the run
};

struct CellHead {
    static bool user(uint32_t header) { return !(header & 8); }
    static bool last(uint32_t header) { return user(header) && header & 2; }
};

// What the ledger asks of the network, at a loss.
struct CellCounts {
    virtual uint32_t sent(int node, uint32_t vc) = 0;  // cells of its VC that a NIC or switch has sent, modulo 2^32
    virtual uint64_t on_wire(int node, int port, uint32_t key, uint32_t mask) = 0;  // with this VPI/VCI, good header
  protected:
    ~CellCounts() = default;
};

// A queue in one block of memory, which grows as needed.
template <class Item>
class Ring {
  public:
    bool empty() const { return head_ == tail_; }
    size_t size() const { return tail_ - head_; }
    Item& operator[](size_t k) { return items_[(head_ + k) & (items_.size() - 1)]; }
    const Item& operator[](size_t k) const { return items_[(head_ + k) & (items_.size() - 1)]; }
    Item& front() { return (*this)[0]; }
    void pop_front() { ++head_; }
    Item& push_back() {
        if (size() == items_.size()) {
            std::vector<Item> larger(items_.size() * 2);
            for (size_t k = 0; k < items_.size(); ++k) larger[k] = (*this)[k];
            tail_ -= head_;
            head_ = 0;
            items_.swap(larger);
        }
        return items_[tail_++ & (items_.size() - 1)];
    }

  private:
    std::vector<Item> items_ = std::vector<Item>(64);
    size_t head_ = 0, tail_ = 0;
};

class Ledger {
  public:
    enum Kind { NIC, SWITCH, LINK, SONET };

    // A node on a VC's path, with the port at which the VC comes in and its number there (NIC, switch).
    struct Hop {
        int32_t kind, node, port;  // -1 for the source
        uint32_t number;
        uint32_t key, mask;  // header >> 4 of its cells as the node takes them in, and the bits of it that count
    };

    struct Counts {
        uint64_t sent = 0, delivered = 0;
        std::map<std::pair<int, uint8_t>, uint64_t> lost;  // PDUs by node and reason
    };

    explicit Ledger(CellCounts& cells) : cells_(cells) {}

    // A VC along its hops, the first its source; gives its place in the ledger.
    int add(const Hop* hops, size_t count) {
        const int index = int(vcs_.size());
        vcs_.emplace_back();
        Vc& vc = vcs_.back();
        for (size_t k = 0; k < count; ++k) {
            const Hop& hop = hops[k];
            vc.stages.emplace_back();
            vc.stages.back().hop = hop;
            if (hop.kind == LINK || hop.kind == SONET) passing_[place(hop.node, hop.port)].push_back({index, k});
            else if (hop.kind == SWITCH) at(by_number_[size_t(hop.node)], hop.number) = {index, k};
        }
        return index;
    }

    bool empty() const { return vcs_.empty(); }
    void nodes(size_t count) { by_number_.resize(count); lines_.resize(count); seen_.resize(count); }

    // The source hands a PDU to its NIC; `at` is its place among the VCs.
    void enqueue(int index, uint32_t length, uint64_t cells) {
        Vc& vc = vcs_[size_t(index)];
        vc.cells += cells;
        ++vc.counts.sent;
        vc.pdus.push_back({vc.cells, uint16_t(length), uint8_t(1 + vc.early_ends), vc.early_why, vc.early_node, false,
                           false});
        vc.early_ends = 0;
        vc.early_why = WHY_NONE;
    }

    // The sink's NIC has ended a PDU.
    void ended(int index, uint32_t status, uint32_t length) {
        Vc& vc = vcs_[size_t(index)];
        settle_lost(vc);
        if (status == TIMEOUT) {  // no end has come: what there is of one or more PDUs is given up
            vc.joined = false;
            vc.given_up = true;
            return;
        }
        if (vc.pdus.empty()) {
            if (vc.early_ends) --vc.early_ends;
            else vc.astray = true;
            return;
        }
        Pdu& pdu = vc.pdus.front();
        --pdu.ends;
        if (status == 0) {
            pdu.delivered = true;
            vc.astray |= length != pdu.length;
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
        for (Stage& stage : vc.stages) stage.forget(end);
    }

    // A switch dropped the cell that it took last, of the VC with this number; so many of it had been accepted before.
    void dropped(int node, uint32_t number, uint32_t reason, uint32_t accepted, uint32_t header) {
        const auto& known = by_number_[size_t(node)];
        if (number >= known.size() || known[number].vc < 0) return;
        const Passing at = known[number];
        Vc& vc = vcs_[size_t(at.vc)];
        // accepted = came - lost here, all of them counted since the start
        const uint64_t ordinal = widened(vc, at.stage, accepted + uint32_t(vc.stages[at.stage].lost));
        lose(vc, at.stage, ordinal, header, uint8_t(WHY_FULL + reason));
    }

    // A link changed the cell that it took last, or took it out (`gone`).
    void changed(int node, uint32_t was, bool was_bad, const uint32_t* before, uint32_t is, bool is_bad,
                 const uint32_t* after, bool gone) {
        if (was_bad) return;  // lost where its header became bad
        const Passing at = find(node, 0, was);
        if (at.vc < 0 && (gone || is_bad || find(node, 0, is).vc < 0)) return;
        const uint64_t ordinal = at.vc < 0 ? 0 : came(vcs_[size_t(at.vc)], at.stage) - 1;
        if (gone) lose(vcs_[size_t(at.vc)], at.stage, ordinal, was, WHY_LISTED);
        else arrive(node, 0, at, ordinal, was, before, is, is_bad, after);
    }

    // A SONET line takes a cell in at a port, and gives one at its other end.
    void line_in(int node, int port, uint64_t tick, uint32_t header, const uint32_t* payload, bool bad) {
        if (bad) return;
        auto& line = lines_[size_t(node)].way[port];
        Inside& cell = line.push_back();
        std::memcpy(cell.payload, payload, 48);
        cell.header = header;
        cell.tick = tick;
        while (line.front().tick + LINE_TICKS < tick) line_lost(node, port, 1);
    }

    void line_out(int node, int port, uint32_t header, const uint32_t* payload, bool bad) {
        const int from = 1 - port;
        auto& line = lines_[size_t(node)].way[from];
        if (!line.empty() && !bad && line.front().header == header && !std::memcmp(line.front().payload, payload, 48)) {
            line.pop_front();
            return;
        }
        line_changed(node, from, header, payload, bad);
    }

    // The line's cells that can't be on it any more are lost.
    void look_after(uint64_t tick) {
        for (size_t node = 0; node < lines_.size(); ++node)
            for (int port = 0; port < 2; ++port) {
                auto& line = lines_[node].way[port];
                while (!line.empty() && line.front().tick + LINE_TICKS < tick) line_lost(int(node), port, 1);
            }
    }

    // The account of a VC as it stands: what is not settled is lost if it has a cause, else under way.
    Counts counts(int index) const {
        const Vc& vc = vcs_[size_t(index)];
        Counts found = vc.counts;
        for (const Pdu& pdu : vc.pdus) {
            if (pdu.delivered) ++found.delivered;
            else if (pdu.why) ++found.lost[{pdu.node, pdu.why}];
            else ++found.lost[{-1, WHY_UNDER_WAY}];
        }
        return found;
    }

    // Ends of PDUs that are still to come to the sink, and whether the account got out of step with what was received.
    uint64_t ends(int index) const {
        const Vc& vc = vcs_[size_t(index)];
        uint64_t found = vc.early_ends;
        for (const Pdu& pdu : vc.pdus) found += pdu.ends;
        return found;
    }
    bool astray(int index) const { return vcs_[size_t(index)].astray; }
    template <class Look>
    void each_hop(int index, Look look) const {
        for (const Stage& stage : vcs_[size_t(index)].stages) look(stage.hop);
    }
    uint64_t ends_inside(int node, int port, uint32_t key, uint32_t mask) const {
        uint64_t found = 0;
        const auto& line = lines_[size_t(node)].way[port];
        for (size_t k = 0; k < line.size(); ++k)
            found += CellHead::last(line[k].header) && ((line[k].header >> 4 ^ key) & mask) == 0;
        return found;
    }

    // Count what nodes tell, to be held against their own counters: a switch's drops (VC's number * 4 + reason), a link's
    // cells in error (0) and gone (1).
    void seen(int node, uint32_t what) {
        auto& counts = seen_[size_t(node)];
        if (counts.size() <= what) counts.resize(what + 1);
        ++counts[what];
    }
    uint64_t seen_at(int node, uint32_t what) const {
        const auto& counts = seen_[size_t(node)];
        return what < counts.size() ? counts[what] : 0;
    }

    // Records held now: of PDUs not settled, and runs of lost cells.
    uint64_t records() const {
        uint64_t found = 0;
        for (const Vc& vc : vcs_) {
            found += vc.pdus.size();
            for (const Stage& stage : vc.stages) found += stage.runs.size();
        }
        return found;
    }

  private:
    static constexpr uint32_t OVERLENGTH = 4, TIMEOUT = 6;  // verdicts of a NIC
    static constexpr uint64_t NOWHERE = ~0ull;
    static constexpr uint64_t LINE_TICKS = 1413;  // two frames: 16 cells wait for half of one, half a frame is under way

    struct Pdu {
        uint64_t end;     // cells of the VC up to its last, it included
        uint16_t length;
        uint8_t ends;     // cells that end a PDU at the sink and are still to come
        uint8_t why;
        int32_t node : 30;
        bool delivered : 1;
        bool cut : 1;     // its last cell will not end it
    };

    // From output ordinal `out` on, a cell's number at the node's input is `shift` more than at its output.
    struct Run {
        uint64_t out;
        int64_t shift;
        uint64_t source;  // the last cell of it
        bool foreign, end;
    };

    struct Stage {
        Hop hop{};
        std::deque<Run> runs;
        int64_t shift_before = 0;  // of the runs forgotten
        uint64_t lost = 0;         // cells
        int64_t shift() const { return runs.empty() ? shift_before : runs.back().shift; }
        void forget(uint64_t settled) {
            while (!runs.empty() && runs.front().source < settled) {
                shift_before = runs.front().shift;
                runs.pop_front();
            }
        }
    };

    struct Vc {
        std::vector<Stage> stages;
        std::deque<Pdu> pdus;  // not settled
        Pdu* recent = nullptr;
        uint64_t recent_first = 0, cells = 0, settled = 0;
        Counts counts;
        bool joined = false;  // the last PDU's end did not come: what follows is joined to what came of it
        bool given_up = false;  // the sink's NIC has given up a PDU that did not end
        bool astray = false;
        uint8_t early_ends = 0, early_why = WHY_NONE;  // what befell a PDU before it was there: foreign cells
        int32_t early_node = 0;
    };

    struct Passing {
        int vc = -1;
        size_t stage = 0;
    };
    struct Inside {
        uint32_t payload[12];
        uint32_t header;
        uint64_t tick;
    };
    struct Line {
        Ring<Inside> way[2];
    };

    static uint64_t place(int node, int port) { return uint64_t(node) << 8 | uint64_t(port); }
    static Passing& at(std::vector<Passing>& list, size_t index) {
        if (list.size() <= index) list.resize(index + 1);
        return list[index];
    }

    Passing find(int node, int port, uint32_t header) const {
        auto known = passing_.find(place(node, port));
        if (known != passing_.end())
            for (const Passing& each : known->second) {
                const Hop& hop = vcs_[size_t(each.vc)].stages[each.stage].hop;
                if (((header >> 4 ^ hop.key) & hop.mask) == 0) return each;
            }
        return {};
    }

    // Cells of the VC that are inside a SONET line, from the one at `index` on.
    uint64_t inside(const Hop& hop, size_t index = 0) const {
        const auto& line = lines_[size_t(hop.node)].way[hop.port];
        uint64_t found = 0;
        for (size_t k = index; k < line.size(); ++k) found += ((line[k].header >> 4 ^ hop.key) & hop.mask) == 0;
        return found;
    }

    // A number of cells at a stage's input, of which hardware knows 32 bits: there can't be more than the source's
    // and those that came astray, less those lost.
    uint64_t widened(const Vc& vc, size_t stage, uint32_t low) const {
        uint64_t most = vc.cells;
        for (size_t k = 1; k < stage; ++k) most -= uint64_t(vc.stages[k].shift());
        return most - uint32_t(uint32_t(most) - low);
    }

    // Cells of the VC that a stage has taken in, and given out, modulo 2^32.
    uint32_t came_low(const Vc& vc, size_t stage) const {
        const Hop& hop = vc.stages[stage].hop;
        return left_low(vc, stage - 1) - uint32_t(cells_.on_wire(hop.node, hop.port, hop.key, hop.mask));
    }
    uint32_t left_low(const Vc& vc, size_t stage) const {
        const Hop& hop = vc.stages[stage].hop;
        if (hop.kind == NIC || hop.kind == SWITCH) return cells_.sent(hop.node, hop.number);
        const uint32_t came = came_low(vc, stage) - uint32_t(vc.stages[stage].shift());
        return hop.kind == SONET ? came - uint32_t(inside(hop)) : came;
    }
    uint64_t came(const Vc& vc, size_t stage) const { return widened(vc, stage, came_low(vc, stage)); }

    // The number at the source of a cell that a stage took in; NOWHERE if it came astray, and `foreign` is its run then.
    uint64_t source(Vc& vc, size_t stage, uint64_t ordinal, Run** foreign) {
        for (size_t k = stage - 1; k >= 1; --k) {
            Stage& before = vc.stages[k];
            auto next = std::upper_bound(before.runs.begin(), before.runs.end(), ordinal,
                                         [](uint64_t value, const Run& run) { return value < run.out; });
            if (next != before.runs.end() && next->foreign && next->out == ordinal + 1) {
                if (foreign) *foreign = &*next;
                return foreign ? NOWHERE : next->source;
            }
            ordinal += uint64_t(next == before.runs.begin() ? before.shift_before : std::prev(next)->shift);
        }
        return ordinal;
    }

    // The PDU of a cell; of one whose PDU is settled, nullptr. Often it is that of the cell asked for before.
    static Pdu* pdu_of(Vc& vc, uint64_t source) {
        if (vc.recent && source >= vc.recent_first && source < vc.recent->end) return vc.recent;
        if (source < vc.settled || source >= vc.cells) return nullptr;
        const auto found = std::upper_bound(vc.pdus.begin(), vc.pdus.end(), source,
                                            [](uint64_t value, const Pdu& pdu) { return value < pdu.end; });
        vc.recent_first = found == vc.pdus.begin() ? vc.settled : std::prev(found)->end;
        return vc.recent = &*found;
    }

    // One end more, or less, will come to the sink before or with that of the cell's PDU.
    void end(Vc& vc, uint64_t source, int more) {
        Pdu* pdu = source >= vc.cells ? nullptr : pdu_of(vc, std::max(source, vc.settled));
        uint8_t& ends = pdu ? pdu->ends : vc.early_ends;
        ends = uint8_t(ends + more);
        if (pdu && source + 1 == pdu->end) pdu->cut = more < 0;
        if (more < 0) settle_lost(vc);
    }

    static void mark(Vc& vc, uint64_t source, int node, uint8_t why) {
        Pdu* pdu = pdu_of(vc, source);
        if (pdu && pdu->why == WHY_NONE) {
            pdu->why = why;
            pdu->node = node;
        } else if (source >= vc.cells && vc.early_why == WHY_NONE) {
            vc.early_why = why;
            vc.early_node = node;
        }
    }

    // A cell of the VC is lost at a stage.
    void lose(Vc& vc, size_t index, uint64_t ordinal, uint32_t header, uint8_t why) {
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
            stage.runs.push_back({out, stage.shift() + 1, upto, false, false});
        }
        if (foreign) {
            if (foreign->end) end(vc, foreign->source, -1);
            foreign->end = false;
            return;
        }
        mark(vc, cell, stage.hop.node, why);
        if (CellHead::last(header)) end(vc, cell, -1);
    }

    // A cell that is not the VC's own comes out of a stage, between its own.
    void insert(Vc& vc, size_t index, uint64_t ordinal, uint32_t header) {
        Stage& stage = vc.stages[index];
        const uint64_t cell = source(vc, index, ordinal, nullptr);
        const bool last = CellHead::last(header);
        stage.runs.push_back({ordinal - uint64_t(stage.shift()) + 1, stage.shift() - 1, cell, true, last});
        mark(vc, cell, stage.hop.node, WHY_FOREIGN);
        if (last) end(vc, cell, 1);
    }

    // A cell comes out of a link or a SONET line otherwise than it went in; `at` has no VC if nothing went in.
    void arrive(int node, int port, Passing at, uint64_t ordinal, uint32_t was, const uint32_t* before, uint32_t is,
                bool is_bad, const uint32_t* after) {
        const Passing to = is_bad ? Passing{} : find(node, port, is);
        if (at.vc >= 0 && at.vc == to.vc) {
            Vc& vc = vcs_[size_t(at.vc)];
            Run* foreign = nullptr;
            const uint64_t cell = source(vc, at.stage, ordinal, &foreign);
            if (!foreign && std::memcmp(before, after, 48)) mark(vc, cell, node, WHY_PAYLOAD);
            else if (!foreign && was != is) mark(vc, cell, node, WHY_ASTRAY);
            const int more = int(CellHead::last(is)) - int(CellHead::last(was));
            if (more) end(vc, foreign ? foreign->source : cell, more);
            if (foreign) foreign->end = CellHead::last(is);
            return;
        }
        if (at.vc >= 0) lose(vcs_[size_t(at.vc)], at.stage, ordinal, was, is_bad ? WHY_HEADER : WHY_ASTRAY);
        if (to.vc >= 0) {
            Vc& vc = vcs_[size_t(to.vc)];
            uint64_t next = came(vc, to.stage);
            const Hop& hop = vc.stages[to.stage].hop;
            if (hop.kind == SONET) next -= inside(hop);
            insert(vc, to.stage, next, is);
        }
    }

    void settle(Vc& vc) {
        const Pdu& pdu = vc.pdus.front();
        if (pdu.delivered) ++vc.counts.delivered;
        else ++vc.counts.lost[{pdu.node, pdu.why}];
        vc.settled = pdu.end;
        vc.recent = nullptr;
        vc.pdus.pop_front();
    }

    // PDUs of which no end will come are settled when nothing before them is open.
    void settle_lost(Vc& vc) {
        while (!vc.pdus.empty() && vc.pdus.front().ends == 0) {
            vc.joined = true;
            settle(vc);
        }
    }

    // The first cells of a SONET line's way are lost.
    void line_lost(int node, int port, size_t count) {
        auto& line = lines_[size_t(node)].way[port];
        for (; count; --count) {
            const Inside cell = line.front();
            const Passing at = find(node, port, cell.header);
            if (at.vc >= 0) {
                Vc& vc = vcs_[size_t(at.vc)];
                const uint64_t ordinal = came(vc, at.stage) - inside(vc.stages[at.stage].hop);
                lose(vc, at.stage, ordinal, cell.header, WHY_LINE);
            }
            line.pop_front();
        }
    }

    // What comes out of a SONET line is not what went in first: which cell is it? The same one, or one that differs in a
    // few bits; else the first of the VC that its header names; else none, and it may be an idle cell in error.
    void line_changed(int node, int port, uint32_t header, const uint32_t* payload, bool bad) {
        auto& line = lines_[size_t(node)].way[port];
        const size_t none = line.size();
        size_t nearest = none;
        int least = 416 / 4;
        for (size_t k = 0; k < none; ++k) {
            int bits = __builtin_popcount(line[k].header ^ header);
            for (int w = 0; w < 12; ++w) bits += __builtin_popcount(line[k].payload[w] ^ payload[w]);
            if (bits < least) {
                least = bits;
                nearest = k;
            }
        }
        const Passing named = bad ? Passing{} : find(node, port, header);
        if (nearest == none && named.vc >= 0) {
            const Hop& hop = vcs_[size_t(named.vc)].stages[named.stage].hop;
            for (size_t k = 0; k < none && nearest == none; ++k)
                if (((line[k].header >> 4 ^ hop.key) & hop.mask) == 0) nearest = k;
        }
        if (nearest == none) {
            if (named.vc >= 0) arrive(node, port, {}, 0, 0, payload, header, false, payload);
            return;
        }
        line_lost(node, port, nearest);
        const Inside cell = line.front();
        const Passing at = find(node, port, cell.header);
        uint64_t ordinal = 0;
        if (at.vc >= 0) {
            const Vc& vc = vcs_[size_t(at.vc)];
            ordinal = came(vc, at.stage) - inside(vc.stages[at.stage].hop);
        }
        line.pop_front();
        arrive(node, port, at, ordinal, cell.header, cell.payload, header, bad, payload);
    }

    CellCounts& cells_;
    std::vector<Vc> vcs_;
    std::unordered_map<uint64_t, std::vector<Passing>> passing_;  // of links and SONET lines, by node and port
    std::vector<std::vector<Passing>> by_number_;                 // of switches
    std::vector<Line> lines_;
    std::vector<std::vector<uint64_t>> seen_;
};

}  // namespace bp
