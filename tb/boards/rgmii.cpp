// A board's top at its RGMII pins: whole frames in and out, with preamble and FCS. The clock of the line and that of the
// board are 125 to 75; that of LiteEth's core is given.
#include <cstring>
#include <deque>
#include <string>

namespace {

constexpr uint32_t LINE_HZ = 125000000;

struct Line {
    Vtop top;
    std::deque<std::string> out, in;  // to the board, from it
    std::string came;
    size_t at = 0;
    int gap = 0, phase = 0;
    uint32_t ethernet_hz = 0, ethernet_phase = 0;
    uint64_t clocks = 0;  // of the board
    bool torn = false;  // TX_CTL differed between the two edges of a clock

    void half(bool high, uint8_t nibble, bool valid) {
        top.rx_ctl = valid;
        top.rx_data = nibble;
        top.eval();
        top.rx_clk = high;
        top.eval();
    }
    void edges() {
        if ((ethernet_phase += ethernet_hz) >= LINE_HZ) {
            ethernet_phase -= LINE_HZ;
            top.ethernet_clk = 0;
            top.eval();
            top.ethernet_clk = 1;
            top.eval();
        }
        if ((phase += 3) < 5) return;
        phase -= 5;
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
        ++clocks;
    }
    int next() {
        if (!out.empty() && gap >= 12) {
            const std::string& frame = out.front();
            if (at < frame.size()) return uint8_t(frame[at++]);
            out.pop_front();
            at = 0;
            gap = 0;
        }
        ++gap;
        return -1;
    }
    void clock() {
        const int octet = next();
        half(true, octet & 15, octet >= 0);
        const uint8_t low = top.tx_data, valid = top.tx_ctl;
        edges();
        half(false, octet >> 4 & 15, octet >= 0);
        torn |= top.tx_ctl != valid;
        if (valid) {
            came.push_back(char(low | top.tx_data << 4));
        } else if (!came.empty()) {
            in.push_back(came);
            came.clear();
        }
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT Line* line_new(uint32_t ethernet_hz) {
    Line* line = new Line;
    line->ethernet_hz = ethernet_hz;
    line->top.pin_rx = 1;
    line->top.rst = 1;
    for (int k = 0; k < 20; ++k) line->edges();
    line->top.rst = 0;
    return line;
}
EXPORT void line_put(Line* line, const char* octets, uint32_t length) { line->out.emplace_back(octets, length); }
EXPORT uint64_t line_clocks(Line* line) { return line->clocks; }
EXPORT uint32_t line_torn(Line* line) { return line->torn; }
// Pass time, until a frame has come at most; return the octets of the first frame that waits, 0: none.
EXPORT uint32_t line_run(Line* line, uint32_t clocks, char* octets) {
    while (clocks-- && line->in.empty()) line->clock();
    if (line->in.empty()) return 0;
    const std::string frame = line->in.front();
    line->in.pop_front();
    std::memcpy(octets, frame.data(), frame.size());
    return uint32_t(frame.size());
}
