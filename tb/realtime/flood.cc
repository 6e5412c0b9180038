// UDP datagrams to a peer at a rate, and whatever it sends is read: `flood ADDRESS RATE SECONDS OCTETS`. Prints how many
// were sent and came, as JSON. The first, alone, is for the kernel to find its neighbour.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int BATCH = 64;
constexpr uint16_t PORT = 9;

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
}

void pause(double seconds) {
    const timespec time{time_t(seconds), long((seconds - double(time_t(seconds))) * 1e9)};
    nanosleep(&time, nullptr);
}

}  // namespace

int main(int count, char** words) {
    if (count != 5) return 2;
    const double rate = std::atof(words[2]), seconds = std::atof(words[3]);
    std::vector<uint8_t> data(size_t(std::atoi(words[4])));
    const int made = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in here{}, there{};
    here.sin_family = there.sin_family = AF_INET;
    here.sin_port = there.sin_port = htons(PORT);
    if (inet_pton(AF_INET, words[1], &there.sin_addr) != 1) return 2;
    if (bind(made, reinterpret_cast<sockaddr*>(&here), sizeof here)) return 1;
    if (connect(made, reinterpret_cast<sockaddr*>(&there), sizeof there)) return 1;
    std::atomic<uint64_t> came{0};
    std::thread([&] {
        static mmsghdr messages[BATCH];
        static uint8_t octets[64];  // the rest of each goes unread
        iovec place{octets, sizeof octets};
        for (mmsghdr& each : messages) each.msg_hdr.msg_iov = &place, each.msg_hdr.msg_iovlen = 1;
        for (;;) came += uint64_t(std::max(recvmmsg(made, messages, BATCH, MSG_WAITFORONE, nullptr), 0));
    }).detach();
    if (send(made, data.data(), 1, 0) < 0) return 1;
    pause(2);
    mmsghdr messages[BATCH]{};
    iovec place{data.data(), data.size()};
    for (mmsghdr& each : messages) each.msg_hdr.msg_iov = &place, each.msg_hdr.msg_iovlen = 1;
    uint64_t sent = 0;
    for (const double begin = now(); now() - begin < seconds; pause(0.0005))
        for (const uint64_t due = uint64_t((now() - begin) * rate); sent < due;) {
            const int done = sendmmsg(made, messages, unsigned(std::min<uint64_t>(due - sent, BATCH)), 0);
            if (done <= 0) break;
            sent += uint64_t(done);
        }
    pause(1.5);
    std::printf("{\"sent\": %llu, \"came\": %llu}\n", (unsigned long long)sent, (unsigned long long)came.load());
    std::fflush(stdout);
    std::_Exit(0);
}
