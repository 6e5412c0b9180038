// The way in and out of a network with attached ends, and its clock: the machine's (Doors), or one by hand for tests.
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

// An SDU that came at an end, and when: ns since the start; on which VC it goes, or as its Ethernet address says.
struct Arrival {
    int64_t at;
    uint32_t end, vc;
    Octets sdu;
};

// What is to leave at an end, and when; and when it would if it took its path's delay and no more, or -1.
struct Leaving {
    int64_t due, least;
    uint32_t end;
    Octets octets;
};

// One attached end: what it carries, and what was counted on both sides of its doors.
class End {
  public:
    enum Carries : uint32_t { FRAMES, PACKETS, CELLS, DYNAMIPS };

    explicit End(const bp_end& given) : is(given) {}

    struct Vc {  // to or from another end, with its numbers on this end's line
        uint32_t vc, other, vpi, vci;
        int64_t delay;
    };

    const bp_end is;
    bool cells() const { return is.carries >= CELLS; }
    std::vector<Vc> out, in;
    bp_end_counts counts{};  // these, too, under the lock of the doors
    Histogram late, computed_late, jitter, beyond;
    std::map<uint32_t, uint64_t> refused, congested;  // PDUs by VC

    // What came, as an SDU of the network and the VC that it goes on; false: there is none, or none yet.
    bool take(const uint8_t* octets, size_t length, Octets& sdu, uint32_t& vc);
    // An SDU of the network, on a VC, as what leaves; false: it is of another encapsulation.
    bool give(const uint8_t* sdu, size_t length, uint32_t vc, Octets& octets) const;

  private:
    PduCrc crc() const { return is.carries == DYNAMIPS ? PduCrc::DYNAMIPS : PduCrc::AAL5; }
    bool take_cell(const uint8_t* cell, size_t length, Octets& sdu, uint32_t& vc);

    std::map<uint32_t, Reassembly> cells_;  // by VC
};

// The way in and out.
class Way {
  public:
    virtual ~Way() = default;
    virtual int64_t now() = 0;                          // ns since the start
    virtual void wait(int64_t until) = 0;
    virtual void collect(std::deque<Arrival>& into) = 0;  // all that came by now
    virtual void release(Leaving&& leaving) = 0;        // in the order of their times
    virtual void close() {}
    virtual bool gone() { return false; }               // an interface went away
    std::mutex lock;                                    // of the ends' counts
};

// The machine's: a thread that reads what comes, one that releases what leaves.
class Doors final : public Way {
  public:
    explicit Doors(std::vector<std::unique_ptr<End>>& ends) : ends_(ends) {}
    ~Doors() override { close(); }
    void begin(int32_t threads[2]);

    int64_t now() override;
    void wait(int64_t until) override;
    void collect(std::deque<Arrival>& into) override;
    void release(Leaving&& leaving) override;
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
    void send(Leaving& leaving);
    void lost(End& end, int error);

    std::vector<std::unique_ptr<End>>& ends_;
    int64_t start_ = 0;
    std::deque<Arrival> arrivals_;
    size_t arrived_octets_ = 0;
    std::deque<Leaving> leaving_;
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
class Nowhere final : public Way {
  public:
    int64_t now() override { return 0; }
    void wait(int64_t) override {}
    void collect(std::deque<Arrival>&) override {}
    void release(Leaving&&) override {}
};

// For tests: a clock that goes on when it is waited for, stalls that were asked for, and arrivals that were given.
class ByHand final : public Way {
  public:
    explicit ByHand(std::vector<std::unique_ptr<End>>& ends) : ends_(ends) {}
    int64_t now() override { return now_; }
    void wait(int64_t until) override;
    void collect(std::deque<Arrival>& into) override;
    void release(Leaving&& leaving) override { waiting_.push_back(std::move(leaving)); }

    void stall(int64_t at, int64_t length) { stalls_[at] = length; }
    void arrive(uint32_t end, int64_t at, int64_t read, const uint8_t* octets, size_t length);
    struct Left {
        Leaving what;
        int64_t at;
    };
    std::vector<Left> left;

  private:
    void leave();

    std::vector<std::unique_ptr<End>>& ends_;
    void move(int64_t until);

    int64_t now_ = 0;
    std::map<int64_t, int64_t> stalls_;
    std::multimap<int64_t, Arrival> coming_;  // by when each is read
    std::deque<Leaving> waiting_;
};

}  // namespace bp
