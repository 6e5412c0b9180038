// The loss ledger: of every PDU that a NIC was given, whether it was delivered, or where and why it was lost.
//
// Nothing is done for a cell. Order within a VC is kept by every node, so a cell is known by its number within its VC:
// the nodes tell of the cells that they drop or damage (rare), and from a cell's number at that node the losses
// recorded upstream lead back, node by node, to its number at the source, and so to its PDU. A PDU's first cause counts.
// The path to each leaf of a point-to-multipoint VC has an account of its own; what befalls a cell where paths are still
// one is entered in all of theirs.
// Hardware counts cells in 32 bits: all of its numbers are taken modulo 2^32, beside a bound from above.
// Cells of PDUs that are lost, damaged or misinserted are counted by VC, and each loss is recorded where that is asked for.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sonet_in_flight.hpp"

namespace bp {

enum Why : uint8_t {
    WHY_NONE,
    WHY_LISTED,        // a link: a listed loss
    WHY_PAYLOAD,       // bit errors in a cell's payload
    WHY_HEADER,        // a header error that the next node drops the cell for (HEC)
    WHY_ASTRAY,        // a header error that went unnoticed, or was miscorrected
    WHY_FOREIGN,       // another VC's cell, astray, came between its own
    WHY_LINE,          // cells that a SONET line did not bring to its end
    WHY_OUTAGE,        // a link: an outage
    WHY_BURST,         // a link: a loss of its good or bad state
    WHY_ORDER,         // cells of the VC overtook others of it
    WHY_COPY,          // a link: a duplicate of a cell came after it
    WHY_PATTERN,       // a link: a loss of its pattern
    WHY_VERDICT = 16,  // + status: all its cells came, but not as a PDU of its own
    WHY_UNEXPLAINED = 32,
    WHY_UNDER_WAY,     // not lost: at the end of the run
    WHY_DROPPED = 64,  // + reason: a switch dropped a cell of it
};

constexpr Why WHY_GONE[] = {WHY_LISTED, WHY_OUTAGE, WHY_BURST, WHY_PATTERN};  // of the places in a link's GONE

// The state of the network that the ledger reads at a loss.
struct CellCounts {
    virtual uint32_t read(int node, uint32_t addr) = 0;  // a counter, modulo 2^32
    virtual uint64_t tick(int) { return 0; }              // in which a node was evaluated last
    virtual uint64_t on_wire(int node, int port, uint32_t key, uint32_t mask) = 0;  // with this VPI/VCI, good header
  protected:
    ~CellCounts() = default;
};

class Ledger {
  public:
    // PATH: a switch that passes a virtual path with the VC in it. ROOT: a switch into which the VC's cells come as those
    // of another VC, which are copied for it there; a hop SWITCH follows.
    enum Kind { NIC, SWITCH, LINK, SONET, PATH, ROOT };

    // A node on a VC's path, with the port at which the VC comes in and its number there (NIC, switch, root).
    struct Hop {
        int32_t kind, node, port;  // -1: the source; it comes from the root, the hop before
        uint32_t number;
        uint32_t key, mask;    // header >> 4 of its cells as the node takes them in, and the bits of it that count
        // Addresses of the node's counters of its cells: taken to be sent (switch), sent (NIC, switch); waiting to be
        // copied (root).
        uint32_t taken, sent;
        uint32_t reasons;  // for which a drop concerns it, a bit each (switch, root)
        uint32_t queue;    // address of the count of cells in the node's buffer; 0: it has none
        bool names(uint32_t header) const { return CellHead::names(header, key, mask); }
    };

    struct Counts {
        uint64_t sent = 0, delivered = 0, repeated = 0;  // repeated: duplicates of PDUs that came whole
        std::map<std::pair<int, uint8_t>, uint64_t> lost;  // PDUs by node and reason
        void archive(Archive& a) { a(sent, delivered, repeated, lost); }
    };

    // Cells of PDUs that are lost; those of them with CLP = 1.
    struct LostCells {
        uint64_t all = 0, tagged = 0;
    };
    // Counts of a VC's cells. `errored`: hit in the payload and not lost; `misinserted`: user cells that are not its own, duplicates
    // among them; `duplicated`: those of them that links made, whether they came or not.
    struct CellCauses {
        std::map<std::pair<int, uint8_t>, LostCells> lost;  // by node and reason
        uint64_t errored = 0, tagged = 0;  // tagged: came to the sink with CLP = 1, where that is counted
        uint64_t duplicated = 0;
        int64_t misinserted = 0, foreign = 0;  // foreign: cells that are none of its PDUs' (OAM cells among them), not lost
        std::map<uint64_t, uint8_t> in_error;  // those that may still be lost, by their numbers at the source
        uint64_t all_errored() const { return errored + in_error.size(); }
        void settle(uint64_t passed) {  // cells up to there have come to the sink, or are lost
            const auto upto = in_error.lower_bound(passed);
            errored += uint64_t(std::distance(in_error.begin(), upto));
            in_error.erase(in_error.begin(), upto);
        }
        void archive(Archive& a) { a(lost, errored, tagged, duplicated, misinserted, foreign, in_error); }
    };
    // A cell that is lost. NOWHERE: not known (a PDU that is settled), or none (a cell that is no PDU's).
    struct LossRecord {
        uint64_t tick;
        uint64_t cell, pdu, offset;     // numbers at the source from 0 on; that of the PDU's payload in its stream
        int32_t place, node;            // the VC's place, the node
        uint32_t position, cells;       // in the PDU from 0 on, of so many
        uint32_t queue, vc_queue;       // cells in the node's buffer, and those of the VC there
        uint8_t why, tagged, user, unused[5];
    };

    explicit Ledger(CellCounts& cells) : cells_(cells) {}

    bool empty() const { return vcs_.empty(); }
    void nodes(size_t count);                // that there are; before the first VC
    int add(const Hop* hops, size_t count);  // a VC along its hops, the first its source; gives its place

    // Reports of hosts and nodes

    // The source hands a PDU to its NIC; `stream` is the key of its payload's pattern.
    void enqueue(int index, uint32_t stream, uint32_t length, uint64_t cells, uint64_t offset = 0);
    // Cells of the VC, which the NIC makes itself, are of no PDUs; no host sends on it. Single cells on it count as its own.
    void without_pdus(int index);
    // To be called before they are 2^32 - 2^24 more: their number is known from the one that it was the last time.
    void advance() {
        for (int index : alone_) look_ahead(vcs_[size_t(index)]);
    }
    void single(int index, uint64_t before);  // its NIC sends a cell that is no PDU's, after so many that are
    void ended(int index, uint32_t status, uint32_t length);      // the sink's NIC has ended a PDU
    // A switch dropped the cell that it took last, of the VC with this number; so many of it had been accepted before.
    void dropped(int node, uint32_t number, uint32_t reason, uint32_t accepted, uint32_t header);
    // A switch made a cell of its own on that VC, and accepted it after so many; it took one that came, after so many.
    void made(int node, uint32_t number, uint32_t accepted);
    void took(int node, uint32_t number, uint32_t accepted);
    // A link changed the cell that it took last, or took it out (`gone`, unless WHY_NONE).
    struct Change {
        uint32_t was, is;  // its header before and behind the link
        bool was_bad, is_bad, same_payload;
        Why gone;
        uint32_t came_was, came_is;  // read_came() at the link of the VC that `was` names, and of that of `is`
    };
    // Read the counters that the entry needs: false if there is nothing to enter. It reads nodes at and before the link only, from
    // the next switch or interface on.
    bool read_counters(int node, Change& change) const;
    void changed(int node, const Change& change);
    // A link made a cell: a duplicate of the last cell of its VC (`copy`), or one that nobody sent.
    void inserted(int node, uint32_t header, bool bad, bool copy);
    // A cell is about to leave the wire behind a link, on which another one of its VC was before it; `expected_last`: that
    // one ends a PDU. The cells of a VC keep their numbers in the order in which they arrive, so both are as if changed.
    // `came`: read_came() behind the link.
    bool read_counters(int node, uint32_t header, uint32_t& came) const;
    void disordered(int node, uint32_t header, bool expected_last, uint32_t came);
    // A SONET line takes a cell in at a port, and gives one at its other end.
    void line_in(int node, int port, uint64_t tick, uint32_t header, const Payload& payload, bool bad) {
        if (bad) return;
        SonetInFlight& line = crossing(node, port);
        line.push(tick, header, payload);
        if (__builtin_expect(line.overdue(tick), 0)) lose_overdue(node, port, tick);
    }
    void line_out(int node, int port, uint32_t header, const Payload& payload, bool bad) {
        SonetInFlight& line = crossing(node, 1 - port);
        if (!bad && !line.empty() && line.first().is(header, payload)) line.pop();
        else line_changed(node, 1 - port, header, payload, bad);
    }
    // A switch that passes virtual paths takes a cell in at a port, or gives one to the input of a node behind it: it
    // counts the cells of a path, and not those of each VC in it, as is done here.
    void path_in(int node, int port, uint32_t header, bool bad) {
        if (!bad) count(entering_, node, port, header, &Stage::came);
    }
    void path_out(int to, int port, uint32_t header) { count(leaving_, to, port, header, &Stage::left); }
    // The sink's NIC takes a cell with CLP = 1 of a VC whose tagged cells are counted.
    void tagged_in(int node, int port, uint32_t header, bool bad) {
        if (const Paths* found = bad || !CellHead::user(header) ? nullptr : named(tagging_, node, port, header))
            for (const Passing& each : *found) ++vcs_[size_t(each.vc)].causes.tagged;
    }
    void count_tagged(int index) {
        const Vc& vc = vcs_[size_t(index)];
        note(tagging_, vc.stages.back().hop, {index, vc.stages.size() - 1});
    }
    int sink(int index) const { return vcs_[size_t(index)].stages.back().hop.node; }
    void look_after(uint64_t tick);  // cells that can't be on a SONET line any more are lost

    // Reports are also counted, to be compared with nodes' own counters: a switch's drops (VC's number * 64 + reason),
    // a link's cells in error (0) and gone (1).
    void seen(int node, uint32_t what);
    uint64_t seen_at(int node, uint32_t what) const;

    // Results

    // The account of a VC as it stands: what is not settled is lost if it has a cause, else under way.
    Counts counts(int index) const;
    const CellCauses& causes(int index) const { return vcs_[size_t(index)].causes; }
    // Cells of its PDUs that came to the sink's NIC.
    uint64_t received(int index) const {
        const Vc& vc = vcs_[size_t(index)];
        return came(vc, vc.stages.size() - 1) - uint64_t(vc.causes.foreign) + foreign_under_way(vc);
    }
    bool is_without_pdus(int index) const { return vcs_[size_t(index)].without_pdus; }
    const Hop& source(int index) const { return vcs_[size_t(index)].stages.front().hop; }
    uint64_t sent(int index) const { return widened(vcs_[size_t(index)], 0, left_low(vcs_[size_t(index)], 0)); }
    // From now on each lost cell is recorded, up to so many; further ones are only counted.
    void record(uint64_t most) { most_recorded_ = most; }
    uint64_t most_recorded() const { return most_recorded_; }
    bool without_pdus() const {  // any of the VCs
        return std::any_of(vcs_.begin(), vcs_.end(), [](const Vc& vc) { return vc.without_pdus; });
    }
    const std::vector<LossRecord>& recorded() const { return recorded_; }
    uint64_t not_recorded() const { return not_recorded_; }
    uint64_t under_way(int index, uint32_t stream) const;  // PDUs of a stream that are neither delivered nor lost
    uint64_t ends(int index) const;  // of PDUs that are still to come to the sink
    bool astray(int index) const { return vcs_[size_t(index)].astray; }  // it is out of step with what was received
    template <class Look>
    void each_hop(int index, Look look) const {
        for (const Stage& stage : vcs_[size_t(index)].stages) look(stage.hop);
    }
    uint64_t inside_path(int index, const Hop& hop) const;  // cells of the VC, in a switch that passes its path
    uint64_t ends_inside(const Hop& hop) const { return inside(hop, true); }  // of PDUs, on a SONET line
    uint64_t records() const;  // that are held now: of PDUs not settled, and runs of lost cells
    void archive(Archive& a);

  private:
    static constexpr uint32_t OVERLENGTH = 4, TIMEOUT = 6;  // verdicts of a NIC
    static constexpr uint64_t NOWHERE = ~0ull;

    struct Pdu {
        uint64_t end;     // cells of the VC up to its last, it included
        uint64_t offset;  // of its payload in its stream
        uint32_t stream;  // key of its payload's pattern
        uint32_t length;
        uint8_t ends;     // cells that end a PDU at the sink and are still to come
        uint8_t why;
        uint8_t copies;   // of these ends, those of duplicates
        uint8_t unused;   // all octets are state, and so none is left open
        int32_t node : 30;
        bool delivered : 1;
        bool cut : 1;     // its last cell will not end it

        bool open() const { return !delivered && why == WHY_NONE; }
    };

    // From output ordinal `out` on, a cell's number at the node's input is `shift` more than at its output. The `foreign`
    // cells before that are none of those that came in.
    struct Run {
        uint64_t out;
        int64_t shift;
        uint64_t source;  // the last cell of it; the own one that foreign cells come before
        uint64_t foreign;
    };

    struct Stage {
        Hop hop{};
        std::deque<Run> runs;
        int64_t shift_before = 0;  // of the runs forgotten
        uint64_t lost = 0;         // cells
        uint64_t came = 0, left = 0;  // of PATH: cells
        int64_t shift() const { return runs.empty() ? shift_before : runs.back().shift; }
        void forget(uint64_t settled) {
            while (!runs.empty() && runs.front().source < settled) {
                shift_before = runs.front().shift;
                runs.pop_front();
            }
        }
        void archive(Archive& a) { a(runs, shift_before, lost, came, left); }
    };

    struct Vc {
        std::vector<Stage> stages;
        std::deque<Pdu> pdus;  // not settled
        Pdu* recent = nullptr;
        uint64_t recent_first = 0, recent_number = 0, cells = 0, settled = 0;
        uint64_t settled_pdus = 0, passed = 0;
        Counts counts;
        CellCauses causes;
        bool joined = false;  // the last PDU's end did not come: what follows is joined to what came of it
        bool given_up = false;  // the sink's NIC has given up a PDU that did not end
        bool astray = false;
        uint64_t whole = 0;  // PDUs that came whole where others were before them, and that are not counted yet
        bool without_pdus = false;
        uint16_t till_settled = 0;  // events until it is looked which of its cells have passed
        uint8_t early_ends = 0, early_copies = 0, early_why = WHY_NONE;  // what befell a PDU before it was there: foreign cells
        int32_t early_node = 0;
        void archive(Archive& a) {
            a.same(stages.size());
            for (Stage& stage : stages) a(stage);
            a(pdus, cells, settled, settled_pdus, passed, counts, causes, joined, given_up, astray, whole, without_pdus, till_settled, early_ends, early_copies, early_why, early_node);
            if (a.gives()) recent = nullptr;
        }
    };

    struct Passing {
        int vc = -1;
        size_t stage = 0;
    };
    using Paths = std::vector<Passing>;  // that are one up to a place; at a switch the VC that comes in there first
    struct Shared {  // all paths through a link or SONET line, and the index of those with a key and mask
        std::vector<Paths> all;
        std::unordered_map<uint64_t, size_t> named;
    };
    struct Line {
        SonetInFlight way[2];
    };
    struct Vcs {  // whose cells come to an input, by VPI/VCI
        uint32_t mask = 0;
        std::unordered_map<uint32_t, Paths> named;
    };
    using Inputs = std::unordered_map<uint64_t, Vcs>;  // by node and port

    SonetInFlight& crossing(int node, int port) { return lines_[size_t(node)].way[port]; }
    void look_ahead(Vc& vc) const;
    const Paths& sources(int index) const {  // the paths that begin where this one does
        const Hop& source = vcs_[size_t(index)].stages.front().hop;
        return by_number_[size_t(source.node)][source.number];
    }
    const Hop& hop(const Passing& at) const { return vcs_[size_t(at.vc)].stages[at.stage].hop; }
    const Paths* find(int node, int port, uint32_t header) const;
    uint64_t inside(const Hop& hop, bool last = false) const {
        return lines_[size_t(hop.node)].way[hop.port].count(hop.key, hop.mask, last);
    }
    uint64_t first_inside(const Passing& at) const;
    static void note(Inputs& inputs, const Hop& there, const Passing& at);
    static const Paths* named(const Inputs& inputs, int node, int port, uint32_t header);
    void count(const Inputs& inputs, int node, int port, uint32_t header, uint64_t Stage::*what) {
        if (const Paths* found = named(inputs, node, port, header))
            for (const Passing& each : *found) ++(vcs_[size_t(each.vc)].stages[each.stage].*what);
    }

    const Paths* switched(int node, uint32_t number) const;
    uint32_t next_in(const Paths& at, uint32_t accepted) const;
    void lose(const Passing& at, uint32_t ordinal, uint32_t header, uint8_t why);
    uint64_t widened(const Vc& vc, size_t stage, uint32_t low) const;
    uint32_t read_came(const Vc& vc, size_t stage) const;
    uint32_t read_left(const Vc& vc, size_t stage) const;
    uint32_t known_came(const Vc& vc, size_t stage) const;
    uint32_t known_left(const Vc& vc, size_t stage) const;
    uint32_t came_low(const Vc& vc, size_t stage) const { return read_came(vc, stage) + known_came(vc, stage); }
    uint32_t left_low(const Vc& vc, size_t stage) const { return read_left(vc, stage) + known_left(vc, stage); }
    uint64_t came(const Vc& vc, size_t stage) const { return widened(vc, stage, came_low(vc, stage)); }
    uint64_t came(const Passing& at) const { return came(vcs_[size_t(at.vc)], at.stage); }

    uint64_t foreign_under_way(const Vc& vc) const;
    uint64_t source(Vc& vc, size_t stage, uint64_t ordinal, Run** foreign);
    uint64_t next_own(Vc& vc, size_t stage, uint64_t ordinal);
    static Pdu* pdu_of(Vc& vc, uint64_t source);

    void lose(const Paths& at, uint64_t ordinal, uint32_t header, uint8_t why);
    void lose(Vc& vc, size_t index, uint64_t ordinal, uint32_t header, uint8_t why);
    void insert(Vc& vc, size_t index, uint64_t ordinal, uint32_t header, Why why = WHY_FOREIGN);
    static void add_foreign(Stage& stage, uint64_t ordinal, uint64_t before);
    struct Arrived {  // a cell behind a link or line: what it was before, and as what other VC's cell it comes
        uint32_t was, is;
        bool is_bad, same_payload;
        uint64_t next;  // its number as a cell of that VC
    };
    void arrive(int node, int port, const Paths* at, uint64_t ordinal, const Arrived& cell);
    void end(Vc& vc, uint64_t source, int more);
    static void mark(Vc& vc, uint64_t source, int node, uint8_t why);
    void count_lost(Vc& vc, const Hop& hop, uint64_t cell, uint32_t header, uint8_t why);
    void count_lost_foreign(Vc& vc, const Hop& hop, uint32_t header, uint8_t why);
    void record(const Vc& vc, const Hop& hop, LossRecord made, uint32_t header, uint8_t why);
    // A duplicate of a PDU came whole, one of so many that are expected.
    static void repeat(Vc& vc, uint8_t& copies) {
        copies -= copies != 0;
        ++vc.counts.repeated;
    }
    static void settle(Vc& vc);
    static void settle_lost(Vc& vc);
    void settle_cells(Vc& vc);

    void lose_first(int node, int port);
    void lose_overdue(int node, int port, uint64_t tick);
    void line_changed(int node, int port, uint32_t header, const Payload& payload, bool bad);

    CellCounts& cells_;
    std::vector<Vc> vcs_;
    std::vector<int> alone_;  // VCs without PDUs
    std::unordered_map<uint64_t, Shared> passing_;  // of links and SONET lines, by node and port
    std::vector<std::vector<Paths>> by_number_;     // of sources and switches
    Inputs entering_, leaving_;  // of switches that pass paths; of the nodes behind them, with the stages before those
    Inputs tagging_;             // of sinks whose cells with CLP = 1 are counted
    std::unordered_map<uint64_t, int> path_port_;  // where a path comes in, by switch and number there
    std::vector<Line> lines_;
    std::vector<std::vector<uint64_t>> seen_;
    std::vector<LossRecord> recorded_;
    uint64_t most_recorded_ = 0, not_recorded_ = 0;
};

}  // namespace bp
