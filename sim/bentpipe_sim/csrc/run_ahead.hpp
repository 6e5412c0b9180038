// Hosts in one thread, their network in another: while the hosts handle what happened, the network runs on to the first tick in
// which they might act (docs/engine-internals.md, Hosts beside the network).
//
// Both sides know that tick. A host's processor takes its time for each PDU that it sends: what is not begun when an event comes is
// not sent before so many ticks (`reaction`); what is begun is sent at a known time, for which it can be given at once. So all cells
// and events are those of a run in one thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "inbox.hpp"

namespace bp {

class Loop;

class RunAhead {
  public:
    explicit RunAhead(Loop& loop);
    ~RunAhead();

    // From now on, up to end(), the network's thread runs it. Nothing else does.
    void begin();
    // Runs as the loop does, for the hosts: to this tick, or to the first one with events, whose number it returns. Meanwhile the network may run on to `limit`, and
    // past events that the hosts have not got yet by less than the `reaction` (at least 1).
    size_t run(uint64_t until, uint64_t limit, uint64_t reaction);
    // std::logic_error: the network is ahead of its hosts, and `is_whole`.
    void end(bool is_whole);

    bool is_on() const { return is_on_; }
    // The events that the hosts got last.
    const Inbox& inbox() const { return given_; }
    // Give a NIC a PDU (a bp_post, and its head) now. std::logic_error: as of end().
    void send(const uint8_t* post);
    // The same, at the end of a later tick.
    void send_at(uint64_t tick, const uint8_t* post);
    // Runs as the loop does, between end() and begin(); with PDUs that are given for later ticks.
    void run_alone(uint64_t until);

  private:
    struct Group {  // the events of a tick
        uint64_t tick = 0;
        Inbox inbox;
    };
    // One thread waits until a number that the other one raises is another.
    struct Signal {
        alignas(128) std::atomic<uint64_t> number{0};
        std::atomic<bool> is_awaited{false};
        std::mutex lock;
        std::condition_variable raised;
        void raise();
        void wait(uint64_t seen);
    };

    struct Later {
        uint64_t tick;
        std::vector<uint8_t> post;
    };

    void act();
    void work();
    uint64_t send_due(uint64_t now, bool& any);
    bool go_on();
    bool take(uint64_t until);

    Loop& loop_;
    std::thread thread_;
    bool is_on_ = false, acted_ = false;
    uint64_t now_ = 0;  // of the hosts
    uint64_t taken_ = 0;            // groups
    Inbox given_;

    // Messages of the hosts' thread
    Signal asked_;
    std::atomic<uint64_t> until_{0}, limit_{0}, reaction_{1}, handled_{0}, acts_{0};
    std::atomic<bool> is_over_{false};
    // Messages of the network's thread
    Signal progress_;
    std::atomic<uint64_t> done_{0}, acted_upon_{0};

    std::mutex lock_;  // of these
    std::deque<Later> later_;  // in their order
    std::deque<Group> groups_;
    std::vector<Inbox> empty_;

    std::deque<uint64_t> open_;  // ticks of groups that are not handled; of the network's thread
    uint64_t closed_ = 0;
};

}  // namespace bp
