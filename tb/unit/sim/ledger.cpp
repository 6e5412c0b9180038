// The ledger alone, on a path NIC - link - switch - link - NIC of queues in which everything happens often: cells dropped,
// hit, taken out, led astray into other VCs, ends of PDUs made and unmade, OAM cells between those of PDUs that are lost,
// hit and taken for users' cells, and these for those; all counters of 32 bits wrap. Each PDU's fate is worked out beside
// it from the cells themselves.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>

#include "ledger.hpp"

using namespace bp;

constexpr int VCS = 3, SWITCH_NODE = 2, SINK = 4;

uint64_t before_all = (1ull << 32) - 300;  // cells that went through before; none if the switch passes a path

struct Cell {
    int vc;        // that its header names
    int own;       // whose it is
    uint64_t number;
    int pdu;           // -1: of none, a single cell
    bool last, good;   // by its header; not damaged
    bool oam = false;  // by its header
};

struct World final : CellCounts {
    std::mt19937 random;
    std::deque<Cell> wires[5];  // into node 1 to 4
    std::deque<Cell> buffer;
    uint64_t left[2][VCS] = {};  // cells sent by source and switch
    uint64_t accepted[VCS] = {};
    uint32_t read(int node, uint32_t vc) override { return uint32_t(before_all + left[node == SWITCH_NODE][vc]); }
    uint64_t on_wire(int node, int, uint32_t key, uint32_t) override {
        uint64_t found = 0;
        for (const Cell& cell : wires[node]) found += uint32_t(cell.vc) == key;
        return found;
    }
    bool chance(double p) { return std::uniform_real_distribution<>()(random) < p; }
    int below(int n) { return std::uniform_int_distribution<>(0, n - 1)(random); }
};

struct Fate {
    uint64_t first, cells;
    bool delivered = false, settled = false;
    int node = -1, why = WHY_NONE;
};

int main(int, char** argv) {
    World w;
    w.random.seed(uint32_t(std::atoi(argv[1])));
    const double often = std::atof(argv[2]);
    const bool path = std::atoi(argv[3]) != 0;  // the switch passes a virtual path with all of them
    if (path) before_all = 0;
    Ledger ledger(w);
    ledger.nodes(5);
    for (uint32_t v = 0; v < VCS; ++v) {
        Ledger::Hop hops[] = {{Ledger::NIC, 0, -1, v, v, ~0u, 0, v, ~0u},   {Ledger::LINK, 1, 0, v, v, ~0u, 0, v, ~0u},
                              {path ? Ledger::PATH : Ledger::SWITCH, 2, 0, path ? 9 : v, v, ~0u, 0, v, ~0u}, {Ledger::LINK, 3, 0, v, v, ~0u, 0, v, ~0u},
                              {Ledger::NIC, 4, 0, v, v, ~0u, 0, v, ~0u}};
        ledger.add(hops, 5);
        ledger.enqueue(int(v), 0, 1, before_all);
        ledger.ended(int(v), 0, 1);
        w.accepted[v] = before_all;
    }
    std::vector<Fate> fates[VCS];
    std::deque<Cell> source[VCS];
    std::set<uint64_t> ahead[VCS][5];  // own cells that are to come to a node
    std::vector<Cell> frame[VCS];
    uint64_t made[VCS] = {}, begun[VCS] = {};  // cells; those that the source has sent
    auto header = [](const Cell& cell) { return uint32_t(cell.vc) << 4 | (cell.oam ? 10u : cell.last ? 2u : 0u); };
    auto mark = [&](int v, int pdu, int node, int why) {
        Fate& fate = fates[v][size_t(pdu)];
        if (fate.why == WHY_NONE) fate.node = node, fate.why = why;
    };
    auto gone = [&](const Cell& cell, int node) {
        if (cell.pdu < 0) return;
        for (int k = node; k < 5; ++k) ahead[cell.own][k].erase(cell.number);
    };
    Ledger::CellCauses cells_of[VCS];  // as it should be
    std::set<uint64_t> errored[VCS];
    uint64_t received[VCS] = {};
    struct Lost { int vc, node, why; Cell cell; };
    std::vector<Lost> lost_own;
    ledger.record(uint64_t(std::atoi(argv[4])));
    auto lost_cell = [&](const Cell& cell, int node, int why) {
        if (cell.vc == cell.own && cell.pdu >= 0) {
            ++cells_of[cell.own].lost[{node, uint8_t(why)}].all;
            errored[cell.own].erase(cell.number);
            lost_own.push_back({cell.own, node, why, cell});
        } else if (!cell.oam) {
            --cells_of[cell.vc].misinserted;
        }
    };
    auto put = [&](int v) {
        const int cells = 1 + w.below(5);
        fates[v].push_back({made[v], uint64_t(cells)});
        for (int k = 0; k < cells; ++k, ++made[v]) {
            source[v].push_back({v, v, made[v], int(fates[v].size()) - 1, k == cells - 1, true});
            for (int n = 1; n < 5; ++n) ahead[v][n].insert(made[v]);
        }
        ledger.enqueue(v, 0, uint32_t(cells), uint64_t(cells));
    };
    auto mark_next = [&](int v, int node, int why) {  // the PDU of the next cell to come
        if (ahead[v][node].empty()) put(v);
        const uint64_t number = *ahead[v][node].begin();
        int pdu = 0;
        while (fates[v][size_t(pdu)].first + fates[v][size_t(pdu)].cells <= number) ++pdu;
        mark(v, pdu, node, why);
    };
    auto link = [&](int node) {
        Cell cell = w.wires[node].front(), was = cell;
        w.wires[node].pop_front();
        const bool own = cell.vc == cell.own && cell.pdu >= 0;
        if (cell.pdu >= 0) ahead[cell.own][node].erase(cell.number);
        bp::Payload before{}, after{};
        auto tell = [&](bool bad, bool out) {
            Ledger::Change change{header(was), header(cell), false, bad, before == after, out ? WHY_LISTED : WHY_NONE, 0, 0};
            if (ledger.read_counters(node, change)) ledger.changed(node, change);
        };
        if (w.chance(often)) {  // a listed loss, or dropped for its header by the next node
            const bool listed = w.chance(0.5);
            if (own) mark(cell.own, cell.pdu, node, listed ? WHY_LISTED : WHY_HEADER);
            gone(cell, node);
            lost_cell(cell, node, listed ? WHY_LISTED : WHY_HEADER);
            tell(!listed, listed);
            return;
        }
        if (w.chance(often)) {
            cell.good = false;
            after.w[3] = 1;
            if (own) mark(cell.own, cell.pdu, node, WHY_PAYLOAD), errored[cell.own].insert(cell.number);
            tell(false, false);
        } else if (w.chance(often)) {
            cell.last = !cell.last;
            cell.good = false;
            if (own) mark(cell.own, cell.pdu, node, WHY_ASTRAY);
            if (cell.oam && !own) mark_next(cell.vc, node, WHY_FOREIGN), ++cells_of[cell.vc].misinserted;
            cell.oam = false;
            tell(false, false);
        } else if (cell.vc == cell.own && w.chance(often)) {
            cell.oam = true;
            cell.last = cell.good = false;
            if (own) mark(cell.own, cell.pdu, node, WHY_ASTRAY);
            tell(false, false);
        } else if (cell.vc == cell.own && w.chance(often)) {
            cell.vc = w.below(VCS + 1);  // the last one is nobody's
            if (cell.vc != cell.own) {
                if (own) mark(cell.own, cell.pdu, node, WHY_ASTRAY);
                gone(cell, node);
                lost_cell(was, node, WHY_ASTRAY);
                if (cell.vc < VCS && !cell.oam) mark_next(cell.vc, node, WHY_FOREIGN), ++cells_of[cell.vc].misinserted;
                tell(false, false);
                if (cell.vc == VCS) return;
            }
        }
        w.wires[node + 1].push_back(cell);
    };
    for (int step = 0; step < 40000; ++step) {
        const int what = w.below(6), v = w.below(VCS);
        if (what == 0 && step < 36000 && source[v].size() < 20) put(v);
        const bool single = w.chance(0.2);
        if (what == 1 && !single && !source[v].empty()) {
            w.wires[1].push_back(source[v].front());
            source[v].pop_front();
            ++w.left[0][v];
            ++begun[v];
        }
        if (what == 1 && single && step < 36000) {
            w.wires[1].push_back({v, v, 0, -1, false, true, true});
            ++w.left[0][v];
            ledger.single(v, before_all + begun[v]);
        }
        if (what == 2 && !w.wires[1].empty()) link(1);
        if (what == 3 && !w.wires[2].empty()) {
            const Cell cell = w.wires[2].front();
            w.wires[2].pop_front();
            const bool own = cell.vc == cell.own && cell.pdu >= 0;
            if (path) ledger.path_in(SWITCH_NODE, 0, header(cell), false);
            if (own) ahead[cell.own][2].erase(cell.number);
            if (w.chance(often * 4)) {
                const int reason = w.below(4);
                if (own) mark(cell.own, cell.pdu, SWITCH_NODE, WHY_DROPPED + reason), gone(cell, 2);
                lost_cell(cell, SWITCH_NODE, WHY_DROPPED + reason);
                ledger.dropped(SWITCH_NODE, path ? 9 : uint32_t(cell.vc), uint32_t(reason), uint32_t(w.accepted[cell.vc]), header(cell));
            } else {
                ++w.accepted[cell.vc];
                w.buffer.push_back(cell);
            }
        }
        if (what == 4 && !w.buffer.empty()) {
            w.wires[3].push_back(w.buffer.front());
            if (path) ledger.path_out(3, 0, header(w.buffer.front()));
            ++w.left[1][w.buffer.front().vc];
            w.buffer.pop_front();
        }
        if (what == 5 && !w.wires[3].empty()) link(3);
        if (!frame[v].empty() && w.chance(often / 5)) {  // the sink's reassembly timer
            frame[v].clear();
            ledger.ended(v, 6, 0);
        }
        if (!w.wires[4].empty() && w.chance(0.4)) {
            const Cell cell = w.wires[4].front();
            w.wires[4].pop_front();
            if (cell.vc == cell.own && cell.pdu >= 0) ahead[cell.own][4].erase(cell.number), ++received[cell.own];
            if (cell.oam) continue;
            auto& cells = frame[cell.vc];
            cells.push_back(cell);
            if (!cell.last) continue;
            Fate* fate = cell.own == cell.vc && cell.pdu >= 0 ? &fates[cell.vc][size_t(cell.pdu)] : nullptr;
            bool whole = fate && cells.size() == fate->cells;
            for (size_t k = 0; whole && k < cells.size(); ++k)
                whole = cells[k].own == cell.vc && cells[k].pdu >= 0 && cells[k].good && cells[k].number == fate->first + k;
            if (whole) fate->delivered = true;
            ledger.ended(cell.vc, whole ? 0 : 1, whole ? uint32_t(fate->cells) : 0);
            cells.clear();
        }
    }
    int wrong = 0;
    for (int v = 0; v < VCS; ++v) {
        Ledger::Counts expected;
        uint64_t joined = 0;
        for (const Fate& fate : fates[v]) {
            if (fate.delivered) ++expected.delivered;
            else if (fate.why) ++expected.lost[{fate.node, uint8_t(fate.why)}];
            else ++joined;
        }
        Ledger::Counts found = ledger.counts(v);
        const uint64_t under_way = found.lost[{-1, WHY_UNDER_WAY}];
        const uint64_t verdicts = found.lost[{SINK, WHY_VERDICT + 1}] + found.lost[{SINK, WHY_VERDICT + 6}];
        found.lost.erase({-1, WHY_UNDER_WAY});
        for (int verdict : {1, 6}) found.lost.erase({SINK, uint8_t(WHY_VERDICT + verdict)});
        if (ledger.astray(v) || found.sent != fates[v].size() + 1 || found.delivered != expected.delivered + 1 ||
            found.lost != expected.lost || under_way + verdicts != joined) {
            ++wrong;
            std::printf("VC %d: sent %lu, delivered %lu (%lu), joined and under way %lu + %lu (%lu)\n", v, found.sent,
                        found.delivered - 1, expected.delivered, verdicts, under_way, joined);
            for (const auto* lost : {&found.lost, &expected.lost}) {
                for (const auto& row : *lost) std::printf("  node %d reason %d: %lu;", row.first.first, row.first.second, row.second);
                std::printf("\n");
            }
        }
    }
    for (int v = 0; v < VCS; ++v) {
        const Ledger::CellCauses &found = ledger.causes(v), &expected = cells_of[v];
        bool same = ledger.received(v) == before_all + received[v] && found.all_errored() == errored[v].size() && found.misinserted == expected.misinserted;
        for (const auto& [cause, cells] : expected.lost)
            same = same && found.lost.count(cause) && found.lost.at(cause).all == cells.all;
        if (same && found.lost.size() == expected.lost.size()) continue;
        ++wrong;
        std::printf("VC %d: cells in error %lu (%zu), misinserted %ld (%ld)\n", v, found.all_errored(), errored[v].size(),
                    found.misinserted, expected.misinserted);
        for (const auto* causes : {&found, &expected}) {
            for (const auto& row : causes->lost) std::printf("  node %d reason %d: %lu cells;", row.first.first, row.first.second, row.second.all);
            std::printf("\n");
        }
    }
    size_t at = 0, settled = 0;
    for (const Ledger::LossRecord& record : ledger.recorded()) {
        if (!record.user) continue;
        const Lost& lost = lost_own[at++];
        const Fate& fate = fates[lost.vc][size_t(lost.cell.pdu)];
        const bool known = record.pdu == uint64_t(lost.cell.pdu) + 1 && record.cells == fate.cells &&
                           record.position == lost.cell.number - fate.first;
        settled += record.pdu == ~0ull;
        if (record.place == lost.vc && record.node == lost.node && record.why == lost.why &&
            record.cell == before_all + lost.cell.number && (known || record.pdu == ~0ull)) continue;
        ++wrong;
        std::printf("record %zu: VC %d, node %d, cell %lu, PDU %lu, position %u\n", at, record.place, record.node, record.cell, record.pdu, record.position);
    }
    if (ledger.recorded().size() == uint64_t(std::atoi(argv[4])) ? !ledger.not_recorded() : at != lost_own.size()) ++wrong;
    if (settled * 20 > at + 20) ++wrong;
    std::printf("%s; %lu records\n", wrong ? "wrong" : "right", ledger.records());
    return wrong != 0;
}
