// Reports of interfaces, switches and links to the loss ledger. A run of one event loop enters them at once. In a run in parts
// (parts.hpp) each part keeps a log of its own, with the counters that an entry needs, and the logs are entered later in the
// order of ticks and nodes: the order in which a single event loop would have entered them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ledger.hpp"

namespace bp {

class LedgerFeed {
  public:
    struct Place {  // where a report comes from
        uint64_t tick;
        int node;
    };

    explicit LedgerFeed(Ledger& ledger) : ledger_(ledger) {}
    LedgerFeed(const LedgerFeed&) = delete;

    bool empty() const { return ledger_.empty(); }
    void keep_log(bool keeps) { logs_ = keeps; }

    // The members of Ledger
    void enqueue(Place at, int index, uint32_t stream, uint32_t length, uint64_t cells, uint64_t offset) {
        report({at, ENQUEUE, {uint32_t(index), stream, length}, cells, offset});
    }
    void single(Place at, int index, uint64_t before) { report({at, SINGLE, {uint32_t(index)}, before, 0}); }
    void ended(Place at, int index, uint32_t status, uint32_t length) {
        report({at, ENDED, {uint32_t(index), status, length}, 0, 0});
    }
    void dropped(Place at, uint32_t number, uint32_t reason, uint32_t accepted, uint32_t header) {
        report({at, DROPPED, {number, reason, accepted, header}, 0, 0});
    }
    void made(Place at, uint32_t number, uint32_t accepted) { report({at, MADE, {number, accepted}, 0, 0}); }
    void took(Place at, uint32_t number, uint32_t accepted) { report({at, TOOK, {number, accepted}, 0, 0}); }
    void tagged_in(Place at, int port, uint32_t header, bool bad) {
        if (!bad) report({at, TAGGED, {uint32_t(port), header}, 0, 0});
    }
    void changed(Place at, Ledger::Change change) {
        if (!ledger_.read_counters(at.node, change)) return;
        if (!logs_) {
            ledger_.changed(at.node, change);
            return;
        }
        changes_.push_back(change);
        log_.push_back({at, CHANGED, {}, changes_.size() - 1, 0});
    }
    void disordered(Place at, int link, uint32_t header, bool expected_last) {
        uint32_t came = 0;
        if (ledger_.read_counters(link, header, came)) report({at, DISORDERED, {uint32_t(link), header, expected_last, came}, 0, 0});
    }
    void path_in(Place at, int port, uint32_t header, bool bad) {
        if (!bad) report({at, PATH_IN, {uint32_t(port), header}, 0, 0});
    }
    void path_out(Place at, int to, int port, uint32_t header) {
        report({at, PATH_OUT, {uint32_t(to), uint32_t(port), header}, 0, 0});
    }
    void seen(int node, uint32_t what) { ledger_.seen(node, what); }  // each node has its own counts

    // Enter what the logs of all parts have, and clear them; how many reports that were.
    template <class Feeds>
    static size_t enter(const Feeds& feeds) {
        struct Next {
            LedgerFeed* feed;
            size_t at;
            // The heap's first is the earliest report.
            bool operator<(const Next& other) const {
                const Place &one = feed->log_[at].place, &two = other.feed->log_[other.at].place;
                return one.tick != two.tick ? one.tick > two.tick : one.node > two.node;
            }
        };
        std::vector<Next> heap;
        size_t count = 0;
        for (LedgerFeed* feed : feeds)
            if (!feed->log_.empty()) heap.push_back({feed, 0});
        std::make_heap(heap.begin(), heap.end());
        while (!heap.empty()) {
            std::pop_heap(heap.begin(), heap.end());
            Next& next = heap.back();
            next.feed->enter(next.feed->log_[next.at]);
            ++count;
            if (++next.at < next.feed->log_.size()) {
                std::push_heap(heap.begin(), heap.end());
                continue;
            }
            next.feed->log_.clear();
            next.feed->changes_.clear();
            heap.pop_back();
        }
        return count;
    }

  private:
    enum What : uint8_t { ENQUEUE, SINGLE, ENDED, DROPPED, MADE, TOOK, TAGGED, CHANGED, DISORDERED, PATH_IN, PATH_OUT };
    struct Report {
        Place place;
        What what;
        uint32_t values[4];
        uint64_t count, offset;
    };

    [[gnu::always_inline]] void report(const Report& report) {
        if (__builtin_expect(logs_, 0)) log_.push_back(report);
        else enter(report);
    }
    [[gnu::always_inline]] void enter(const Report& report) {
        const uint32_t* const value = report.values;
        const int node = report.place.node, index = int(value[0]);
        switch (report.what) {
            case ENQUEUE: return ledger_.enqueue(index, value[1], value[2], report.count, report.offset);
            case SINGLE: return ledger_.single(index, report.count);
            case ENDED: return ledger_.ended(index, value[1], value[2]);
            case DROPPED: return ledger_.dropped(node, value[0], value[1], value[2], value[3]);
            case MADE: return ledger_.made(node, value[0], value[1]);
            case TOOK: return ledger_.took(node, value[0], value[1]);
            case TAGGED: return ledger_.tagged_in(node, index, value[1], false);
            case DISORDERED: return ledger_.disordered(index, value[1], value[2], value[3]);
            case PATH_IN: return ledger_.path_in(node, index, value[1], false);
            case PATH_OUT: return ledger_.path_out(index, int(value[1]), value[2]);
            case CHANGED: return ledger_.changed(node, changes_[report.count]);
        }
    }

    Ledger& ledger_;
    bool logs_ = false;
    std::vector<Report> log_;
    std::vector<Ledger::Change> changes_;
};

}  // namespace bp
