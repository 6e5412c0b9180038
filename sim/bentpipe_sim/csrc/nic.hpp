// The host's side of a NIC: what it is to send, VC by VC, and what it has received, for the hosts or checked here.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "capture.hpp"
#include "frame_impairments.hpp"
#include "inbox.hpp"
#include "ledger_feed.hpp"
#include "model.h"
#include "pdu.hpp"

namespace bp {

// An SDU as a host hands it over: octets, and behind them those of a pattern (pattern.hpp). The Internet checksum of all
// from `checksum_start` on is put at `checksum_at`, unless that is negative.
struct Sdu {
    const uint8_t* head;
    uint32_t head_length, key;
    uint64_t offset;
    uint32_t length;  // of the pattern
    int checksum_start, checksum_at;
    uint8_t uu;
    bool notify;  // the host wants to know when it is sent
};

// A cell as a host hands it over, and as it gets one: 48 octets and a PTI.
struct Single {
    uint8_t octets[48];
    uint8_t pti;
};

// State for each cell of a VC that receives: its place in memory, and the octets so far; or, with many VCs, the sink that checks it.
struct alignas(32) Receiving {
    uint8_t* octets = nullptr;
    uint64_t size = 0;
    Sink* sink = nullptr;
};

// The state for its cells is in the model's ports, a VC each of `sending` and `receiving`; `many`: more than FEW VCs have sent, or have
// received; `to`: where the cell goes that came, if it is still to be copied.
class Nic {
  public:
    // `node` is its place in the network; `vc_bits` are those of a VC's number; `singles`: it is built with single cells.
    Nic(bp_nic& ports, uint32_t vc_bits, bool singles, bool oam, int node, Inbox& inbox, LedgerFeed& feed);

    // From now on its events and reports go to those of this event loop.
    void report_to(Inbox& inbox, LedgerFeed& feed) {
        inbox_ = &inbox;
        feed_ = &feed;
    }
    // True if it can cause no event: its PDUs are made and checked here, and no host is told of them, nor of OAM cells.
    bool silent() const { return !hosted_ && !notices_ && !oam_; }


    void send(uint64_t tick, uint32_t vc, const Sdu& sdu);
    FrameImpairments frames;  // of PDUs that the host sends
    uint64_t lost(uint32_t vc) const { return tx_[vc].lost; }
    uint64_t duplicated(uint32_t vc) const { return tx_[vc].duplicated; }
    uint64_t reordered(uint32_t vc) const { return tx_[vc].reordered; }
    uint64_t held(uint32_t vc) const { return tx_[vc].held.size(); }
    uint64_t held(uint32_t vc, uint32_t key) const { return held(vc) && tx_[vc].held.front().key == key; }
    uint64_t held_until() const { return held_until_; }  // a PDU waits for the next one of its VC; all bits: none does
    void release(uint64_t tick);  // those that have waited long enough
    // Report lost PDUs as sent to a host that waits for that; return whether there were some.
    bool report_lost(uint64_t tick);
    bool takes_singles() const { return takes_singles_; }
    void send_single(uint32_t vc, const Single& cell);
    // A source: PDUs without end, made here.
    void source(uint32_t vc, uint32_t length, uint32_t key);
    // A sink: PDUs are checked here, and every so many are answered by one of a length.
    void sink(uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length, uint32_t every);

    // The VC's place in the ledger, where it begins and ends.
    void sends_in(int place, uint32_t vc) { tx_[vc].place = place; }
    void receives_in(int place, uint32_t vc) {
        hosted_ += rx_[vc].place < 0 && !rx_[vc].sink;
        rx_[vc].place = place;
    }

    uint64_t backlog(uint32_t vc) const { return tx_[vc].queue.size(); }    // PDUs queued or in work
    uint64_t singles(uint32_t vc) const { return tx_[vc].singles.size(); }  // single cells queued
    // Octets of its PDUs fetched so far.
    uint64_t user_cells(uint32_t vc) const {
        const TxVc& tx = tx_[vc];
        return tx.whole + (tx.queue.empty() ? 0 : sending_[vc].fetched / 48);
    }
    uint64_t cells_due(uint32_t vc) const { return tx_[vc].cells; }         // of all PDUs and single ones that it was given
    uint64_t good(uint32_t vc) const { return rx_[vc].sink ? rx_[vc].sink->good : 0; }  // PDUs of a sink
    uint64_t bad(uint32_t vc) const { return rx_[vc].sink ? rx_[vc].sink->bad : 0; }

    // The first VC with a PDU asks for its turn, at each clock; not in those of accesses to registers.
    void ask() {
        ports_.post_valid = !to_post_.empty();
        if (!ports_.post_valid) return;
        const Post& post = to_post_.front();
        ports_.post_single = post.single;
        ports_.post_vc = post.vc;
        if (post.single) return;
        const Pdu& pdu = tx_[post.vc].queue.front();
        ports_.post_length = uint16_t(pdu.length);
        ports_.post_uu = pdu.uu;
    }
    void hold() { ports_.post_valid = 0; }

    void archive(Archive& a) {  // nothing waits to be copied
        a.same(tx_.size());
        a.same(rx_.size());
        a(tx_, rx_, to_post_, used_, frames, lost_notices_, held_until_);
        for (uint32_t vc = 0; vc < tx_.size(); ++vc) {
            a(sending_[vc].fetched);
            look_at_first(vc);
            look_at_octets(vc);
        }
        count_hosted();
    }

    // Before a clock, and before anything looks at a PDU's octets: those of the last cell are there.
    [[gnu::always_inline]] static void finish(bp_nic& ports) {
        if (__builtin_expect(ports.to != nullptr, 0)) copy(ports);
    }
    // After a clock: what the NIC asks for and brings; whether any of it is more than a cell of a PDU.
    [[gnu::always_inline]] bool after(bp_nic& ports, uint64_t tick) {
        if (__builtin_expect(ports.says_what_is_seldom(), 0)) {
            seldom(tick);
            return true;
        }
        const uint32_t wants = ports.wants();
        if (wants == bp_nic::FETCH) fetch(ports);
        else if (wants == bp_nic::TAKE) take(ports);
        else if (wants) cells(ports);
        return false;
    }

    std::vector<Capture*> captures;  // of its host's packets

  private:
    static constexpr uint32_t FEW = 64;  // VCs whose PDUs, of 9 kB, stay in a cache of 1 MB
    static constexpr uint16_t OAM = 8, SENT = 15;  // an event's status; OAM + PTI

    struct Lost {
        uint32_t vc, length;
    };
    struct Post {
        uint32_t vc;
        bool single;
    };
    struct TxVc {
        std::deque<Pdu> queue;       // the first is in work, or waits for that in `to_post_`
        std::deque<Single> singles;  // so is theirs
        bool listed = false, used = false;
        uint64_t cells = 0, whole = 0;  // of the PDUs that are sent
        uint64_t lost = 0, duplicated = 0, reordered = 0;  // PDUs that were treated so
        std::deque<Pdu> held;           // one that waits for the next one, or none
        uint64_t held_until = 0;
        uint32_t source_length = 0, source_key = 0;
        uint64_t source_offset = 0;
        int place = -1;
        void archive(Archive& a) {
            a(queue, singles, listed, used, cells, whole, lost, duplicated, reordered, held, held_until, source_length, source_key, source_offset, place);
        }
    };
    struct RxVc {
        Octets octets;
        std::unique_ptr<Sink> sink;
        bool used = false;
        int place = -1;
        void archive(Archive& a) {
            bool sinks = sink != nullptr;
            a(octets, used, place, sinks);
            if (a.gives()) sink.reset(sinks ? new Sink() : nullptr);
            if (sinks) a(*sink);
        }
    };

    static uint8_t* octets_of(W<6>& cell) { return reinterpret_cast<uint8_t*>(&cell); }
    [[gnu::always_inline]] static void fetch(bp_nic& ports) { ports.sending[ports.fetch_vc].fetch(octets_of(ports.block)); }
    // The cell that came. Of many VCs it is copied only before the next clock, and its place on its way into the cache until
    // then: the processor waits for no PDU that has left it.
    [[gnu::always_inline]] void take(bp_nic& ports) {
        Receiving& to = ports.receiving[ports.rx_vc];
        const uint64_t at = uint64_t(ports.rx_index) * CELL_OCTETS;
        if (to.sink) {
            to.sink->take(ports.rx_index, octets_of(ports.rx_payload));
            return;
        }
        if (__builtin_expect(to.size < at + CELL_OCTETS, 0)) grow(ports.rx_vc, at + CELL_OCTETS);
        if (__builtin_expect(ports.many, 0)) {
            ports.to = to.octets + at;
            __builtin_prefetch(ports.to, 1);
            __builtin_prefetch(ports.to + CELL_OCTETS - 1, 1);
        } else {
            std::memcpy(to.octets + at, &ports.rx_payload, CELL_OCTETS);
        }
    }
    static void copy(bp_nic& ports) {
        std::memcpy(ports.to, &ports.rx_payload, CELL_OCTETS);
        ports.to = nullptr;
    }
    void use(bool& used) {  // a VC, for the first time
        if (used) return;
        used = true;
        ports_.many |= ++used_ > FEW;
    }
    void cells(bp_nic& ports);
    void look_at_first(uint32_t vc) {
        if (tx_[vc].queue.empty()) sending_[vc].look_at_none();
        else sending_[vc].look_at(tx_[vc].queue.front());
    }
    void look_at_octets(uint32_t vc) {
        RxVc& rx = rx_[vc];
        receiving_[vc] = {rx.octets.data(), rx.octets.size(), ports_.many ? rx.sink.get() : nullptr};
    }

    Pdu pdu(const Sdu& sdu);
    void post(Post what);
    void count_hosted();
    void seldom(uint64_t tick);
    void begin_or_end(uint64_t tick);
    void came(uint64_t tick);
    void queue(uint32_t vc, Pdu&& pdu);
    void list(TxVc& tx, uint32_t vc);
    void sent_single(uint32_t vc);
    void send_next(uint32_t vc);
    void sent(uint64_t tick, uint32_t vc);
    void grow(uint32_t vc, size_t least);
    void received(uint64_t tick, uint32_t vc, uint16_t status, uint32_t length, bool congested);
    void answer(const Sink& sink);

    bp_nic& ports_;
    std::vector<Sending> sending_;
    std::vector<Receiving> receiving_;
    LedgerFeed::Place now() const { return {ports_.time_now, node_}; }

    bool takes_singles_;
    uint32_t used_ = 0;      // VCs that have sent, and that have received
    Octets whole_;           // a PDU's
    bool oam_;               // it is built to take OAM cells
    uint64_t hosted_ = 0;    // VCs whose PDUs a host gets
    uint64_t notices_ = 0;   // PDUs queued that a host wants to know the end of
    int node_;
    Inbox* inbox_;
    LedgerFeed* feed_;
    std::vector<TxVc> tx_;
    std::vector<RxVc> rx_;
    void impair(uint64_t tick, uint32_t vc, Pdu&& pdu);

    std::deque<Lost> lost_notices_;
    uint64_t held_until_ = ~0ull;
    std::deque<Post> to_post_;  // what the NIC has not begun
};

}  // namespace bp
