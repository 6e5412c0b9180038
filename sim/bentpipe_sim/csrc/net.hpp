// A network as the border in C has it (network.h, attach.h).
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "attachment.hpp"
#include "loop.hpp"
#include "network.h"
#include "run_ahead.hpp"

struct bp_net {
    std::vector<std::unique_ptr<bp::Capture>> captures;
    bp::Loop loop;
    std::unique_ptr<bp::Attachment> attachment;  // of what is outside
    bp::RunAhead ahead{loop};
    std::string error;
    std::vector<uint8_t> saved;
    uint32_t short_runs = 0;

    void archive(bp::Archive& a) {
        a(loop);
        a.same(captures.size());
        for (auto& capture : captures) a(*capture);
    }

    // The events that the hosts got last.
    const bp::Inbox& inbox() const { return ahead.is_on() ? ahead.inbox() : loop.inbox; }

    // -1, and what was wrong, if `call` throws that.
    template <class Call>
    int attempt(Call call) {
        try {
            return call();
        } catch (const std::runtime_error& wrong) {
            error = wrong.what();
            return -1;
        }
    }
};
