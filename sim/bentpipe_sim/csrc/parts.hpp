// One run on several event loops: the network is cut at wires with delay, and each part is an event loop of its own
// (docs/engine-internals.md, Parts).
//
// A part may run to the tick before the earliest one in which a cell can arrive that it does not know yet: the least, over the
// channels that lead to it, of the ticks that the part before has done, and the wire's delay. Cells and their ticks do not depend
// on threads, then; and reports to the ledger are entered in the order of ticks and nodes.
//
// Parts exist only while a run lasts: before and after it all nodes are in the one event queue of the whole network, and state is
// saved, read and changed there. So each run may have other parts, or none.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "loop.hpp"
#include "share.hpp"
#include "thread_choice.hpp"

namespace bp {

// A wire from one part to another.
struct Channel {
    Output* output;
    Node* to;
    uint32_t port;
    uint64_t ahead;  // ticks from the tick in which a cell is given to that of its arrival, at least
    // Cells given in this window, behind one that is never taken: so no cell is the first, and the sending part does not look at the
    // node behind.
    Wire mail;
    std::mutex lock;
    std::vector<CellInFlight> given, arriving;  // `given` is shared
    Ring<uint64_t> recent;                      // ticks of arrival within the wire's delay
};

class Parts {
  public:
    // std::runtime_error: a wire between two parts cannot be cut.
    Parts(Loop& whole, const uint32_t* part_of, size_t threads);
    ~Parts();

    size_t count() const { return parts_.size(); }
    size_t threads() const { return choice_.all(); }  // at most
    // Nodes, taps or outputs have changed: look again at what depends on them.
    void classify();
    // Run to the end of this tick; false: it has to be one event loop, as why_whole() says.
    bool run(uint64_t until);
    // Why the last run was of one event loop; empty: it was not.
    const char* why_whole() const { return why_whole_; }
    uint64_t windows() const { return windows_; }  // of all parts so far
    // From now on runs are on one thread, and their windows are recorded, with the time that they take.
    void record() { records_ = true; }
    const std::vector<bp_window>& recorded() const { return recorded_; }
    std::vector<bp_dependence> dependences() const;
    Share share(size_t threads) const;

  private:
    struct alignas(128) Part {
        std::atomic<uint64_t> done{0};    // the first tick that is not over; all cells given before are in the channels
        std::atomic<bool> taken{false};   // by a thread
        alignas(128) Loop loop;
        uint64_t next = 0;                // as `done`; of the thread that has taken it
        uint64_t windows = 0;
        std::vector<std::pair<Part*, uint64_t>> sources;  // with the least `ahead` of their channels
        std::vector<Channel*> in, out;
        std::vector<uint32_t> nodes;
        uint32_t number = 0;
        explicit Part(Ledger& ledger) : loop(ledger) {}
    };

    const Share& share_of_stretch() const { return threads_ == 1 ? alone_ : all_; }
    void connect(const uint32_t* part_of, uint32_t node, uint32_t port);
    const char* rule() const;
    const char* rule_of_run(uint64_t until);
    void split();
    void join();
    void go(uint64_t until);
    void work(size_t thread, uint64_t until);
    void advance_all(uint64_t until);
    bool take_turn(Part& part, uint64_t until);
    bool look_at(size_t first, size_t count, uint64_t until, bool one);
    static void collect(Channel& channel, Loop& loop, uint64_t next);
    static void hand_over(Channel& channel);
    bool progresses(uint64_t seen, std::chrono::steady_clock::time_point end) const;
    void wait(uint64_t seen);
    void publish();

    Loop& whole_;
    ThreadChoice choice_;
    size_t threads_ = 1;  // of this stretch
    std::vector<std::unique_ptr<Part>> parts_;
    std::vector<std::unique_ptr<Channel>> channels_;
    std::vector<Nic*> nics_;
    size_t noisy_ = 0;  // the interface because of which the last run was whole
    const char *rule_ = "", *why_whole_ = "";
    uint64_t windows_ = 0, stretch_;  // ticks
    uint64_t turn_ = 0;  // ticks that a part is given at most
    Share alone_, all_;  // of one thread, of all
    bool records_ = false;
    std::vector<bp_window> recorded_;

    alignas(128) std::atomic<uint64_t> progress_{0};  // windows so far: a thread waits for the next one
    std::atomic<uint32_t> sleeping_{0};
    std::mutex lock_;
    std::condition_variable wake_;
};

}  // namespace bp
