// The host's side of a NIC: what it is to send, VC by VC, and what it has received, for the hosts or checked here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "capture.hpp"
#include "inbox.hpp"
#include "ledger.hpp"
#include "pattern.hpp"
#include "ports.hpp"

namespace bp {

struct Pdu {
    Octets octets;  // whole cells, zeros behind the SDU
    uint32_t length = 0;
    uint8_t uu = 0;
    bool notify = false;  // the host wants to know when it is sent
};

class Nic {
  public:
    std::vector<Capture*> captures;  // of its host's packets

    // `node` is its place in the network.
    Nic(const Ports& ports, int node, Inbox& inbox, Ledger& ledger) : node_(node), inbox_(inbox), ledger_(ledger) {
        post_valid_ = ports.at<uint8_t>("post_valid");
        post_vc_ = ports.number("post_vc");
        post_length_ = ports.at<uint16_t>("post_length");
        post_uu_ = ports.at<uint8_t>("post_uu");
        *ports.at<uint8_t>("post_cpi") = 0;
        post_taken_ = ports.at<uint8_t>("post_taken");
        fetch_ = ports.at<uint8_t>("fetch");
        fetch_vc_ = ports.number("fetch_vc");
        block_ = ports.at<uint32_t>("block");
        done_ = ports.at<uint8_t>("done");
        done_vc_ = ports.number("done_vc");
        rx_valid_ = ports.at<uint8_t>("rx_valid");
        rx_vc_ = ports.number("rx_vc");
        rx_index_ = ports.at<uint16_t>("rx_index");
        rx_payload_ = ports.at<uint32_t>("rx_payload");
        rx_last_ = ports.at<uint8_t>("rx_last");
        rx_status_ = ports.at<uint8_t>("rx_status");
        rx_length_ = ports.at<uint16_t>("rx_length");
        tx_.resize(size_t(1) << post_vc_.width());
        rx_.resize(size_t(1) << rx_vc_.width());
    }

    bool has_posts() const { return !to_post_.empty(); }
    uint64_t backlog(uint32_t vc) const { return tx_[vc].queue.size(); }  // PDUs queued or in work
    uint64_t cells_due(uint32_t vc) const { return tx_[vc].cells; }       // of all PDUs that it was given
    uint64_t good(uint32_t vc) const { return rx_[vc].good; }             // PDUs of a sink
    uint64_t bad(uint32_t vc) const { return rx_[vc].bad; }

    void sends_in(int ledger, uint32_t vc) { tx_[vc].ledger = ledger; }
    void receives_in(int ledger, uint32_t vc) { rx_[vc].ledger = ledger; }

    void send(uint32_t vc, Pdu&& pdu) {
        TxVc& tx = tx_[vc];
        const uint64_t cells = (uint64_t(pdu.length) + 8 + 47) / 48;
        tx.cells += cells;
        if (tx.ledger >= 0) ledger_.enqueue(tx.ledger, pdu.length, cells);
        tx.queue.push_back(std::move(pdu));
        list(tx, vc);
    }

    // A source: PDUs without end, made here.
    void source(uint32_t vc, uint32_t length, uint32_t key) {
        tx_[vc].source_length = length;
        tx_[vc].source_key = key;
        send_next(vc);
    }

    // A sink: PDUs are checked here, and every so many are answered by one of a length.
    void sink(uint32_t vc, uint32_t key, uint32_t reply_vc, uint32_t reply_length, uint32_t every) {
        RxVc& rx = rx_[vc];
        rx.sink = true;
        rx.sink_key = key;
        rx.reply_vc = reply_vc;
        rx.reply_length = reply_length;
        rx.every = every;
    }

    void hold() { *post_valid_ = 0; }

    // Before a clock: the first VC with a PDU asks for its turn.
    void before() {
        *post_valid_ = 0;
        if (to_post_.empty()) return;
        const uint32_t vc = to_post_.front();
        const Pdu& pdu = tx_[vc].queue.front();
        *post_valid_ = 1;
        post_vc_.set(vc);
        *post_length_ = uint16_t(pdu.length);
        *post_uu_ = pdu.uu;
    }

    // After a clock: what the NIC asks for and brings.
    void after(uint64_t tick) {
        if (*post_taken_) {
            tx_[to_post_.front()].fetched = 0;
            to_post_.pop_front();
        }
        if (*done_) sent(tick, done_vc_.get());
        if (*fetch_) {
            TxVc& tx = tx_[fetch_vc_.get()];
            const Pdu& pdu = tx.queue.front();
            if (tx.fetched < pdu.octets.size()) std::memcpy(block_, pdu.octets.data() + tx.fetched, 48);
            tx.fetched += 48;
        }
        if (*rx_valid_) {
            Octets& octets = rx_[rx_vc_.get()].octets;
            const size_t at = size_t(*rx_index_) * 48;
            if (octets.size() < at + 48) octets.resize(std::max<size_t>(at + 48, 4 * 48 + octets.size() * 2));
            std::memcpy(octets.data() + at, rx_payload_, 48);
        }
        if (*rx_last_) received(tick, rx_vc_.get(), *rx_status_, *rx_length_);
    }

  private:
    static constexpr uint32_t SENT = 15;  // an event's status

    struct TxVc {
        std::deque<Pdu> queue;  // the first is in work, or waits for that in `to_post_`
        bool listed = false;
        uint32_t fetched = 0;  // octets of the first
        uint64_t cells = 0;
        uint32_t source_length = 0, source_key = 0;
        uint64_t source_offset = 0;
        int ledger = -1;  // the VC's place in it
    };
    struct RxVc {
        Octets octets;
        bool sink = false;
        uint32_t sink_key = 0, reply_vc = 0, reply_length = 0, every = 0;
        uint64_t sink_offset = 0, good = 0, bad = 0;
        int ledger = -1;
    };

    void list(TxVc& tx, uint32_t vc) {
        if (tx.listed) return;
        tx.listed = true;
        to_post_.push_back(vc);
    }

    void send_next(uint32_t vc) {
        TxVc& tx = tx_[vc];
        Pdu pdu = sized(tx.source_length);
        pattern_fill(pdu.octets.data(), tx.source_key, tx.source_offset, pdu.length);
        tx.source_offset += pdu.length;
        send(vc, std::move(pdu));
    }

    static Pdu sized(uint32_t length) {
        Pdu pdu;
        pdu.length = length;
        pdu.octets.resize((size_t(length) + 47) / 48 * 48);
        return pdu;
    }

    void sent(uint64_t tick, uint32_t vc) {
        TxVc& tx = tx_[vc];
        Pdu& pdu = tx.queue.front();
        if (pdu.notify) inbox_.tell(tick, node_, vc, SENT, pdu.length);
        inbox_.give_back(std::move(pdu.octets));
        tx.queue.pop_front();
        tx.listed = false;
        if (!tx.queue.empty()) list(tx, vc);
        else if (tx.source_length) send_next(vc);
    }

    void received(uint64_t tick, uint32_t vc, uint32_t status, uint32_t length) {
        RxVc& rx = rx_[vc];
        if (rx.ledger >= 0) ledger_.ended(rx.ledger, status, length);
        if (rx.sink) {
            check(rx, status, length);
            return;
        }
        inbox_.tell(tick, node_, vc, status, status ? 0 : length);
        if (status) return;
        for (Capture* capture : captures) capture->sdu(tick, rx.octets.data(), length);
        inbox_.hand_over(rx.octets);
    }

    void check(RxVc& rx, uint32_t status, uint32_t length) {
        if (status == 0 && pattern_equal(rx.octets.data(), rx.sink_key, rx.sink_offset, length)) ++rx.good;
        else ++rx.bad;
        rx.sink_offset += length;
        if (rx.every && (rx.good + rx.bad) % rx.every == 0) send(rx.reply_vc, sized(rx.reply_length));
    }

    int node_;
    Inbox& inbox_;
    Ledger& ledger_;
    std::vector<TxVc> tx_;
    std::vector<RxVc> rx_;
    std::deque<uint32_t> to_post_;  // VCs whose first PDU the NIC has not begun
    uint8_t *post_valid_, *post_uu_, *post_taken_, *fetch_, *done_, *rx_valid_, *rx_last_, *rx_status_;
    uint16_t *post_length_, *rx_index_, *rx_length_;
    uint32_t *block_, *rx_payload_;
    Number post_vc_, fetch_vc_, done_vc_, rx_vc_;
};

}  // namespace bp
