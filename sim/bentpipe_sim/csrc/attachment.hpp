// Hosts that are outside, at some NICs of the network, which runs in step with a clock. What comes is injected at the tick
// of its arrival: simulated time is `computing` behind the clock, so that all that arrived before has been read. What the
// network delivers is released `lag` after its simulated time: what it loses by that is taken from the delay of its path.
#pragma once
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host_io.hpp"
#include "loop.hpp"

namespace bp {

class Attachment {
  public:
    enum Late : uint32_t { REPORT, DROP, ABORT };

    Attachment(Loop& loop, int64_t computing, int64_t lag, Late late);
    ~Attachment();

    std::vector<std::unique_ptr<End>> ends;

    uint32_t add(const bp_end& given);
    void vc(const bp_attached_vc& vc);

    void begin(int64_t at, int32_t threads[2]);  // with the machine's clock; 0: now, else at this time of day (ns)
    int64_t clock() { return io_->now(); }
    void by_hand();
    ScriptedIo* hand = nullptr;  // its clock and I/O, then
    void record(const char* path);  // std::runtime_error: it can't be written
    void replay(const char* path);  // std::runtime_error: it can't be read, or is none
    int close();                    // the error number of the record's failed write; behind it there is none
    int failed() const { return failed_; }  // the same so far

    // Until this tick, or the end of the first one with events of hosts inside.
    void run(uint64_t until);

    bool aborted() const { return aborted_; }                // a late packet ends the run
    bool gone() const { return io_->gone(); }               // an interface does
    int64_t behind() const { return behind_; }               // how far simulated time was from where it was to be
    int64_t most_behind() const { return most_behind_; }
    std::mutex& lock() { return io_->lock; }

    static uint64_t first_tick(int64_t ns) { return (uint64_t(ns) * 936 + 165624) / 165625; }  // at or after
    static uint64_t last_tick(int64_t ns) { return ns < 0 ? 0 : uint64_t(ns) * 936 / 165625; }  // at or before
    static int64_t begins(uint64_t tick) { return int64_t((tick * 165625 + 935) / 936); }

  private:
    static constexpr int64_t STEP = 1000000;

    struct Sent {  // what is under way on a VC, to know it when it comes
        uint64_t hash;
        int64_t at;
    };
    struct Entry {  // of a record, before its octets
        uint64_t tick;
        uint32_t end, vc, length, zero;
    };

    void collect();
    void fetch();
    bool pass(uint64_t front);
    void inject(uint64_t tick, const ReceivedSdu& arrival);
    void send(uint32_t number, uint32_t vc, const Octets& sdu, int64_t at);
    bool take_events();
    void came(uint32_t number, const bp_event& event);
    int64_t to_be(const End& end, uint32_t vc, const uint8_t* sdu, size_t length);
    std::vector<uint32_t> vcs_for(uint32_t number, const ReceivedSdu& arrival) const;
    void learn(uint32_t number, uint32_t vc, const Octets& frame);

    Loop& loop_;
    const int64_t computing_, lag_;
    const Late late_;
    std::unique_ptr<IoBackend> io_;
    std::multimap<uint64_t, ReceivedSdu> waiting_;  // by tick
    std::deque<ReceivedSdu> arrived_;
    std::map<uint32_t, uint32_t> by_nic_;
    std::map<std::pair<uint32_t, uint32_t>, std::deque<Sent>> under_way_;  // by end and VC
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> learned_;            // by end and Ethernet address: the VC to it
    std::FILE* record_ = nullptr;
    std::FILE* replay_ = nullptr;
    int failed_ = 0;
    bool aborted_ = false;
    int64_t behind_ = 0, most_behind_ = 0;
};

}  // namespace bp
