#pragma once

#include <cstddef>

namespace bp {

// With how many threads a stretch of a run goes: all, or one where that is faster, as on a machine whose cores are busy. It
// measures both now and then, and compares averages: one stretch may have had the cores for itself. The cells do not depend
// on it.
class ThreadChoice {
  public:
    explicit ThreadChoice(size_t all) : all_(all) {}
    size_t all() const { return all_; }
    size_t next() const { return with_all_ != tries_ ? all_ : 1; }
    // The stretch took so long a tick.
    void took(double seconds_a_tick) {
        double& pace = pace_[next() != 1];
        pace = pace > 0 ? (3 * pace + seconds_a_tick) / 4 : seconds_a_tick;
        if (tries_) {
            tries_ = false;
            const bool better = pace_[!with_all_] < pace_[with_all_];
            const bool promises = !better && seconds_a_tick < pace_[with_all_];  // the machine may have changed
            with_all_ ^= better;
            if (better) wait_ = SOON;
            else if (!promises) wait_ = wait_ < LATE ? 2 * wait_ : LATE;
            left_ = promises ? 1 : wait_;
        } else if (all_ > 1) {
            // Other processes use the cores: do not wait for the next trial.
            const bool slow = with_all_ && pace_[0] > 0 && seconds_a_tick > pace_[0];
            tries_ = --left_ == 0 || slow;
        }
    }

  private:
    static constexpr unsigned SOON = 8, LATE = 256;  // stretches between two trials
    size_t all_;
    bool with_all_ = true, tries_ = false;  // `tries_`: the other way for one stretch
    unsigned wait_ = SOON, left_ = 1;
    double pace_[2]{};  // of one thread, of all
};

}  // namespace bp
