// Input and output of a network with attached hosts, and its clock: those of the machine (HostIo), none (NullIo), or those that a
// test scripts (ScriptedIo).
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "attach.h"
#include "encapsulation.hpp"
#include "histogram.hpp"

namespace bp {

constexpr uint32_t BY_ADDRESS = ~0u;

// An SDU that was received at an end: time in ns since the start, and the VC that it goes on (or BY_ADDRESS, by its Ethernet address).
struct ReceivedSdu {
    int64_t at;
    uint32_t end, vc;
    Octets sdu;
};

// An SDU that is to leave at an end: when (ns); and when it would leave after the delay of its path alone, or -1.
struct OutgoingSdu {
    int64_t due, least;
    uint32_t end;
    Octets octets;
};

// One attached end: what it carries, and what was counted on both sides.
class End {
  public:
    enum Carries : uint32_t { FRAMES, PACKETS, CELLS, DYNAMIPS };

    explicit End(const bp_end& given) : is(given) {}

    struct Vc {  // to or from another end, with its numbers on this end's line
        uint32_t vc, other, vpi, vci;
        int64_t delay;
        int32_t vlan;  // of its frames at this end: an 802.1Q VID, 0 for frames without a tag; ANY: as they come
    };
    static constexpr int32_t ANY = -1;

    const bp_end is;
    bool cells() const { return is.carries >= CELLS; }
    std::vector<Vc> out, in;
    bp_end_counts counts{};  // guarded by the lock of the I/O, too
    std::atomic<bool> was_down{false};  // its interface, at least once
    Histogram late, computed_late, jitter, beyond;
    std::map<uint32_t, uint64_t> refused, congested;  // PDUs by VC

    // The next arrival, as an SDU of the network and its VC; false: there is none, or none yet.
    bool take(const uint8_t* octets, size_t length, Octets& sdu, uint32_t& vc);
    // An SDU of the network, on a VC, as what leaves; false: it is of another encapsulation.
    bool give(const uint8_t* sdu, size_t length, uint32_t vc, Octets& octets) const;

  private:
    PduCrc crc() const { return is.carries == DYNAMIPS ? PduCrc::DYNAMIPS : PduCrc::AAL5; }
    bool take_cell(const uint8_t* cell, size_t length, Octets& sdu, uint32_t& vc);
    bool take_tagged(const uint8_t* frame, size_t length, Octets& sdu, uint32_t& vc);
    bool by_vlan() const { return is.carries == FRAMES && !out.empty() && out.front().vlan != ANY; }

    std::map<uint32_t, Reassembly> cells_;  // by VC
};

// The way in and out.
class IoBackend {
  public:
    virtual ~IoBackend() = default;
    virtual int64_t now() = 0;                          // ns since the start
    virtual void wait(int64_t until) = 0;
    virtual void collect(std::deque<ReceivedSdu>& into) = 0;  // all that came by now
    virtual void release(OutgoingSdu&& leaving) = 0;        // in the order of their times
    virtual void close() {}
    virtual bool gone() { return false; }               // an interface went away
    std::mutex lock;                                    // of the ends' counts
};

// The machine's: a thread that reads what comes, one that releases what leaves.
class HostIo final : public IoBackend {
  public:
    explicit HostIo(std::vector<std::unique_ptr<End>>& ends) : ends_(ends) {}
    ~HostIo() override { close(); }
    void begin(int64_t at, int32_t threads[2]);

    int64_t now() override;
    void wait(int64_t until) override;
    void collect(std::deque<ReceivedSdu>& into) override;
    void release(OutgoingSdu&& leaving) override;
    void close() override;
    bool gone() override { return gone_; }

  private:
    static constexpr int64_t GATHER = 500000;
    static constexpr size_t BATCH = 32, AT_ONCE = 64, ROOM = 65536 + 64, MOST_OCTETS = size_t(64) << 20;

    void read();
    void read_device(uint32_t number);
    bool read_socket(uint32_t number);
    void came(uint32_t number, int64_t at, const uint8_t* octets, size_t length);
    void leave();
    void send(OutgoingSdu& leaving);
    void lost(End& end, int error);
    void look_for(End& end);

    std::vector<std::unique_ptr<End>>& ends_;
    int64_t time() const;  // ns since the start; negative before
    std::atomic<int64_t> start_{0};  // by the monotonic clock
    int64_t at_ = 0;                 // the same as a time of day, if it was ahead when this began: what comes before is dropped
    std::deque<ReceivedSdu> arrivals_;
    size_t arrived_octets_ = 0;
    std::deque<OutgoingSdu> leaving_;
    size_t leaving_octets_ = 0;
    std::mutex reading_, in_, out_;
    std::condition_variable more_;
    std::thread reader_, releaser_;
    std::atomic<bool> over_{false}, gone_{false};
    std::atomic<int32_t> reader_id_{0}, releaser_id_{0};
    int stop_ = -1;  // an eventfd that ends the reader
    std::vector<uint8_t> buffers_;
};

// None: what is injected again comes from a file, without a clock.
class NullIo final : public IoBackend {
  public:
    int64_t now() override { return 0; }
    void wait(int64_t) override {}
    void collect(std::deque<ReceivedSdu>&) override {}
    void release(OutgoingSdu&&) override {}
};

// For tests: a clock that goes on when it is waited for, stalls that were asked for, and arrivals that were given.
class ScriptedIo final : public IoBackend {
  public:
    explicit ScriptedIo(std::vector<std::unique_ptr<End>>& ends) : ends_(ends) {}
    int64_t now() override { return now_; }
    void wait(int64_t until) override;
    void collect(std::deque<ReceivedSdu>& into) override;
    void release(OutgoingSdu&& leaving) override { waiting_.push_back(std::move(leaving)); }

    void stall(int64_t at, int64_t length) { stalls_[at] = length; }
    void arrive(uint32_t end, int64_t at, int64_t read, const uint8_t* octets, size_t length);
    struct Left {
        OutgoingSdu what;
        int64_t at;
    };
    std::vector<Left> left;

  private:
    void leave();

    std::vector<std::unique_ptr<End>>& ends_;
    void move(int64_t until);

    int64_t now_ = 0;
    std::map<int64_t, int64_t> stalls_;
    std::multimap<int64_t, ReceivedSdu> coming_;  // by when each is read
    std::deque<OutgoingSdu> waiting_;
};

}  // namespace bp
