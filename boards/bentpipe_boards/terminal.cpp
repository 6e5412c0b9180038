// A board that is simulated, behind a pseudo-terminal: octets in and out of the Verilated top, which has a clock whenever it
// has something to do. While it has none, silence on the line has its clocks when it has lasted in real time: whoever sends may be
// slow, and the board would take that for the end of a command. It prints the terminal's name and serves it until its standard input ends.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <deque>

namespace {

class Board {
  public:
    Board() {
        top_.tx_ready = 1;
        top_.rst = 1;
        for (int k = 0; k < 4; ++k) clock();
        top_.rst = 0;
        for (int k = 0; k < SETTLE; ++k) clock();
    }

    void take(uint8_t octet) {
        top_.rx = octet;
        top_.rx_valid = 1;
        clock();
        top_.rx_valid = 0;
        for (int k = 0; k < 3; ++k) clock();
    }

    void clock() {
        top_.clk = 0;
        top_.eval();
        if (top_.tx_valid && !top_.rst) out.push_back(top_.tx);
        top_.clk = 1;
        top_.eval();
    }

    bool busy() {
        top_.clk = 0;
        top_.eval();
        return top_.busy;
    }

    std::deque<uint8_t> out;

  private:
    static constexpr int SETTLE = 1 << 16;  // until all nodes have cleared their tables

    VerilatedContext context_;
    Vtop top_{&context_};
};

constexpr int AT_ONCE = 2000;  // clocks between two looks at the terminal
constexpr int SILENT_MS = 2000;
constexpr int SILENT_CLOCKS = PAUSE + 16;

void serve(int terminal) {
    Board board;
    uint8_t octets[4096];
    int silent = 0;  // clocks of the silence that is to come
    bool is_silent = false;
    for (;;) {
        const bool busy = board.busy();
        const int patience = busy || (silent && is_silent) ? 0 : silent ? SILENT_MS : -1;
        pollfd ready[] = {{terminal, short(POLLIN | (board.out.empty() ? 0 : POLLOUT)), 0}, {STDIN_FILENO, POLLIN, 0}};
        const int events = poll(ready, 2, patience);
        if (events < 0) return;
        if (ready[1].revents) {
            if (read(STDIN_FILENO, octets, sizeof octets) <= 0) return;
        }
        if (ready[0].revents & POLLIN) {
            const ssize_t count = read(terminal, octets, sizeof octets);
            for (ssize_t k = 0; k < count; ++k) board.take(octets[k]);
            silent = SILENT_CLOCKS;
            is_silent = false;
        } else if (events == 0 && !busy && silent) {
            is_silent = true;
            for (int k = 0; k < AT_ONCE && silent; ++k, --silent) board.clock();
        }
        for (int k = 0; board.busy() && k < AT_ONCE; ++k) board.clock();
        if (ready[0].revents & POLLOUT) {
            size_t count = 0;
            for (; count < sizeof octets && count < board.out.size(); ++count) octets[count] = board.out[count];
            const ssize_t written = write(terminal, octets, count);
            if (written > 0) board.out.erase(board.out.begin(), board.out.begin() + written);
        }
    }
}

}  // namespace

int main() {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) return perror("pseudo-terminal"), 1;
    const char* name = ptsname(terminal);
    const int other = open(name, O_RDWR | O_NOCTTY);  // so that the terminal stays while nobody has it open
    termios raw;
    if (other < 0 || tcgetattr(other, &raw)) return perror(name), 1;
    cfmakeraw(&raw);
    tcsetattr(other, TCSANOW, &raw);
    puts(name);
    fflush(stdout);
    serve(terminal);
}
