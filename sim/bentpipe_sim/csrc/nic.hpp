// The host's side of a NIC: what it is to send, VC by VC, and what it has received, for the hosts or checked here.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "capture.hpp"
#include "inbox.hpp"
#include "ledger.hpp"
#include "ports.hpp"

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

class Nic {
  public:
    std::vector<Capture*> captures;  // of its host's packets

    // `node` is its place in the network.
    Nic(const Ports& ports, int node, Inbox& inbox, Ledger& ledger);

    void send(uint64_t tick, uint32_t vc, const Sdu& sdu);
    bool takes_singles() const { return post_single_ != &unused_; }
    void send_single(uint32_t vc, const Single& cell);
    // A source: PDUs without end, made here.
    void source(uint32_t vc, uint32_t length, uint32_t key);
    // A sink: PDUs are checked here, and every so many are answered by one of a length.
    void sink(uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length, uint32_t every);

    // The VC's place in the ledger, where it begins and ends.
    void sends_in(int place, uint32_t vc) { tx_[vc].place = place; }
    void receives_in(int place, uint32_t vc) { rx_[vc].place = place; }

    bool has_posts() const { return !to_post_.empty(); }
    uint64_t backlog(uint32_t vc) const { return tx_[vc].queue.size(); }    // PDUs queued or in work
    uint64_t singles(uint32_t vc) const { return tx_[vc].singles.size(); }  // single cells queued
    // Of its PDUs, fetched so far.
    uint64_t user_cells(uint32_t vc) const {
        const TxVc& tx = tx_[vc];
        return tx.whole + (tx.queue.empty() ? 0 : tx.fetched / 48);
    }
    uint64_t cells_due(uint32_t vc) const { return tx_[vc].cells; }         // of all PDUs and single ones that it was given
    uint64_t good(uint32_t vc) const { return rx_[vc].good; }             // PDUs of a sink
    uint64_t bad(uint32_t vc) const { return rx_[vc].bad; }

    void hold() { *post_valid_ = 0; }

    // Before a clock: the first VC with a PDU asks for its turn.
    [[gnu::always_inline]] void before() {
        hold();
        if (to_post_.empty()) return;
        const Post& post = to_post_.front();
        *post_valid_ = 1;
        *post_single_ = post.single;
        post_vc_.set(post.vc);
        if (post.single) return;
        const Pdu& pdu = tx_[post.vc].queue.front();
        *post_length_ = uint16_t(pdu.length);
        *post_uu_ = pdu.uu;
    }

    // After a clock: what the NIC asks for and brings.
    [[gnu::always_inline]] void after(uint64_t tick) {
        if (*post_taken_) {
            if (!to_post_.front().single) tx_[to_post_.front().vc].fetched = 0;
            to_post_.pop_front();
        }
        if (*done_) {
            if (*done_single_) sent_single(done_vc_.get());
            else sent(tick, done_vc_.get());
        }
        if (*fetch_) {
            TxVc& tx = tx_[fetch_vc_.get()];
            if (*fetch_single_) {
                std::memcpy(block_, tx.singles.front().octets, 48);
                *cell_pti_ = tx.singles.front().pti;
            } else {
                const Octets& octets = tx.queue.front().octets;
                if (tx.fetched < octets.size()) std::memcpy(block_, octets.data() + tx.fetched, 48);
                tx.fetched += 48;
            }
        }
        if (*oam_full_) inbox_.tell(*oam_tick_, node_, oam_vc_.get(), uint16_t(OAM + *oam_pti_), oam_payload_);
        if (*rx_valid_) {
            Octets& octets = rx_[rx_vc_.get()].octets;
            const size_t at = size_t(*rx_index_) * 48;
            if (octets.size() < at + 48) grow(octets, at + 48);
            std::memcpy(octets.data() + at, rx_payload_, 48);
        }
        if (*rx_last_) received(tick, rx_vc_.get(), *rx_status_, *rx_length_, *rx_efci_);
    }

  private:
    static constexpr uint16_t OAM = 8, SENT = 15;  // an event's status; OAM + PTI

    struct Pdu {
        Octets octets;  // whole cells; the NIC pads
        uint32_t length;
        uint8_t uu;
        bool notify;
    };
    struct Post {
        uint32_t vc;
        bool single;
    };
    struct TxVc {
        std::deque<Pdu> queue;       // the first is in work, or waits for that in `to_post_`
        std::deque<Single> singles;  // so is theirs
        bool listed = false;
        uint32_t fetched = 0;  // octets of the first
        uint64_t cells = 0, whole = 0;  // of the PDUs that are sent
        uint32_t source_length = 0, source_key = 0;
        uint64_t source_offset = 0;
        int place = -1;
    };
    struct RxVc {
        Octets octets;
        bool sink = false;
        uint32_t sink_key = 0, reply_vc = 0, reply_length = 0, every = 0;
        uint64_t sink_offset = 0, good = 0, bad = 0;
        int place = -1;
    };

    Pdu pdu(const Sdu& sdu);
    void queue(uint32_t vc, Pdu&& pdu);
    void list(TxVc& tx, uint32_t vc);
    void sent_single(uint32_t vc);
    void send_next(uint32_t vc);
    void sent(uint64_t tick, uint32_t vc);
    static void grow(Octets& octets, size_t least);
    void received(uint64_t tick, uint32_t vc, uint16_t status, uint32_t length, bool congested);
    void check(RxVc& rx, uint32_t status, uint32_t length);

    int node_;
    Inbox& inbox_;
    Ledger& ledger_;
    std::vector<TxVc> tx_;
    std::vector<RxVc> rx_;
    std::deque<Post> to_post_;  // what the NIC has not begun
    uint8_t unused_ = 0, nothing_ = 0;  // ports of a NIC without single cells
    uint64_t no_tick_ = 0;
    uint8_t *post_single_ = &unused_, *cell_pti_ = &unused_, *oam_pti_ = &unused_;
    const uint8_t *fetch_single_ = &nothing_, *done_single_ = &nothing_, *oam_full_ = &nothing_;
    const uint64_t* oam_tick_ = &no_tick_;
    const uint32_t* oam_payload_ = nullptr;
    uint8_t *post_valid_, *post_uu_, *post_taken_, *fetch_, *done_, *rx_valid_, *rx_last_, *rx_status_, *rx_efci_;
    uint16_t *post_length_, *rx_index_, *rx_length_;
    uint32_t *block_, *rx_payload_;
    Number post_vc_, fetch_vc_, done_vc_, rx_vc_, oam_vc_;
};

}  // namespace bp
