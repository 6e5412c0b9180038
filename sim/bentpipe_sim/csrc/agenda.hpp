// When each node is to be evaluated next. The least of eight numbers takes no longer than the way to one of them would in a
// tree of twos: so there are rows of eight, of whose firsts there are rows again, until two rows are left. Of eight nodes and
// fewer there is one. While a node is evaluated, the first of all others is known: most often it is next, and the processor
// begins with it before it knows when the one is due again. The end of a run is one more to be next, behind all nodes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "archive.hpp"
#include "wire.hpp"

namespace bp {

class Agenda {
  public:
    static constexpr size_t ROW = 8;

    // A node's place. It is another when nodes were added.
    struct Ticket {
        double* key;
        uint64_t number;
    };

    Agenda() = default;
    Agenda(const Agenda&) = delete;  // tickets say where its keys are

    // std::runtime_error: there are too many
    void add() {  // one more node; none has work
        if (count_ == (size_t(1) << BITS) - 1) throw std::runtime_error("a network has 16383 nodes at most");
        ++count_;
        std::vector<size_t> starts;
        rows_.clear();
        for (size_t length = count_, most = 8;; length = (length + 7) / 8, most = 16) {
            starts.push_back(rows_.size());
            rows_.resize(rows_.size() + (length + 7) / 8);
            if (length <= most) break;
        }
        levels_ = starts.size();
        one_top_ = count_ <= 64;
        rows_.resize(starts.back() + 2);
        top_ = &rows_[starts.back()];
        for (size_t k = 0; k < levels_; ++k) level_[k] = reinterpret_cast<double*>(&rows_[starts[k]]);
        if (one_row()) level_[0] = few_.keys;
        for (uint32_t node = 0; node < count_; ++node) set(ticket(node), NEVER);
    }
    Ticket ticket(uint32_t node) { return {level_[0] + node, LEAST + node}; }

    // The first of all nodes but the one that was taken; of several, the one that was added first. At the end of the tick
    // that `stop` named a number behind those of all nodes. While nodes are evaluated, the loop has it in a variable of its
    // own, which stays in a register: what may change it is told which.
    uint64_t first = NONE;
    template <bool one_row>
    void stop(uint64_t tick) {
        stop_ = Row::number((tick << BITS) + LEAST + count_);
        first = found<one_row>();
    }
    uint64_t stops() const { return tick(Row::bits(stop_)); }
    static uint64_t tick(uint64_t key) { return (key - LEAST) >> BITS; }
    static uint32_t node(uint64_t key) { return uint32_t(key & ((1u << BITS) - 1)); }

    // The numbers of all nodes that are due by this tick.
    template <class Each>
    void each_until(uint64_t tick, Each each) const {
        const double after = Row::number(((tick + 1) << BITS) + LEAST);
        for (uint32_t node = 0; node < count_; ++node)
            if (level_[0][node] < after) each(node);
    }

    static uint64_t tick_of(const Ticket& ticket) { return tick(Row::bits(*ticket.key)); }
    bool one_row() const { return levels_ < 2; }
    void set(const Ticket& ticket, uint64_t tick) { one_row() ? set<true>(ticket, tick) : set<false>(ticket, tick); }
    template <bool one_row>
    void set(const Ticket& ticket, uint64_t tick) {
        const uint64_t key = (tick << BITS) + ticket.number;
        std::memcpy(ticket.key, &key, sizeof key);
        if (!one_row) climb(node(ticket.number));
        first = found<one_row>();
    }
    // The node of the first key is evaluated now, and has no work until that is set. The first of the others.
    template <bool one_row>
    uint64_t take(uint64_t key) {
        const size_t at = node(key);
        std::memcpy((one_row ? few_.keys : level_[0]) + at, &NONE, sizeof NONE);
        if (!one_row) climb(at);
        return found<one_row>();
    }
    template <bool one_row>
    void set_taken(const Ticket& ticket, uint64_t tick, uint64_t& first) {  // of the node that was taken
        const uint64_t key = (tick << BITS) + ticket.number;
        std::memcpy(ticket.key, &key, sizeof key);
        sooner<one_row>(ticket, key, first);
    }
    template <bool one_row>
    void set_sooner(const Ticket& ticket, uint64_t tick, uint64_t& first) {  // than it is, else not
        const uint64_t key = (tick << BITS) + ticket.number;
        *ticket.key = lesser(Row::number(key), *ticket.key);
        sooner<one_row>(ticket, key, first);
    }

    void archive(Archive& a) {
        for (uint32_t node = 0; node < count_; ++node) {
            uint64_t tick = std::min(tick_of(ticket(node)), NEVER);
            a(tick);
            set(ticket(node), tick);
        }
    }

  private:
    // A key is a tick and below it a node's number, as the bits of a positive, normal floating-point number: these are in the
    // same order, and the lesser of two is one instruction.
    static constexpr unsigned BITS = 14;
    static constexpr uint64_t LEAST = 1ull << 52, NONE = 0x7FE0000000000000ull;
    static double lesser(double a, double b) { return a < b ? a : b; }
    struct alignas(64) Row {
        double keys[ROW];
        Row() {
            const uint64_t none = NONE;
            for (double& key : keys) std::memcpy(&key, &none, sizeof none);
        }
        double first(double other) const { return lesser(of_four(keys), lesser(of_four(keys + 4), other)); }
        double first() const { return lesser(of_four(keys), of_four(keys + 4)); }
        static double of_four(const double* key) {
            return lesser(lesser(key[0], key[1]), lesser(key[2], key[3]));
        }
        static double number(uint64_t key) {
            double number;
            std::memcpy(&number, &key, sizeof number);
            return number;
        }
        static uint64_t bits(double key) {
            uint64_t found;
            std::memcpy(&found, &key, sizeof found);
            return found;
        }
    };
    static_assert(sizeof(Row) == 8 * sizeof(double), "rows are keys beside each other");
    static_assert(sizeof(double) == 8 && (NEVER << BITS) + LEAST < NONE, "keys are normal numbers");

    template <bool one_row>
    uint64_t found() {
        const Row& top = one_row ? few_ : *top_;
        return Row::bits(one_row || one_top_ ? top.first(stop_) : lesser(top.first(), top_[1].first(stop_)));
    }
    // A node has this key now, or one that is less.
    template <bool one_row>
    void sooner(const Ticket& ticket, uint64_t key, uint64_t& first) {
        if (key < first) {
            uint64_t sooner = key;
            asm volatile("" : "+r"(sooner));  // a branch, which is guessed: what is first doesn't wait for the key
            first = sooner;
        }
        if (one_row) return;
        const size_t at = node(ticket.number) / 8;
        level_[1][at] = lesser(Row::number(key), level_[1][at]);
        if (__builtin_expect(levels_ > 2, 0)) lessen(Row::number(key), at);
    }

    // The rows above are those of the firsts.
    void climb(size_t at) {
        level_[1][at / 8] = rows_[at / 8].first();
        if (__builtin_expect(levels_ > 2, 0)) climb_on(at / 8);
    }
    [[gnu::noinline]] void climb_on(size_t at) {
        for (size_t k = 2; k < levels_; ++k, at /= 8)
            level_[k][at / 8] = reinterpret_cast<const Row*>(level_[k - 1])[at / 8].first();
    }

    // A key is among the firsts of rows further up, where it is less.
    [[gnu::noinline]] void lessen(double key, size_t at) {
        for (size_t k = 2; k < levels_; ++k) {
            at /= 8;
            level_[k][at] = lesser(key, level_[k][at]);
        }
    }

    double stop_ = Row::number(NONE);
    size_t count_ = 0;
    Row few_;  // the one row of eight nodes and fewer, near at hand
    const Row* top_ = nullptr;
    bool one_top_ = true;    // of the two rows the other is empty
    std::vector<Row> rows_;  // of the nodes, of the firsts of those rows, and so on
    size_t levels_ = 0;
    double* level_[5];       // where each of these begins, as keys: eight are a row
};

}  // namespace bp
