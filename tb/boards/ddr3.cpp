// Lines at a DDR3 memory: both clocks, and what the chip sees.
#include <vector>

namespace {

struct Seen {
    double clock;  // of the memory, the second phase half a clock later
    uint32_t control, command, bank, address;
};

struct Bench {
    Vtop top;
    double ratio = 1, next_core = 0, next_memory = 0.3;
    uint64_t memory_clocks = 0;
    uint32_t control = 0;
    std::vector<Seen> seen;

    void note(double phase, uint32_t select_n, uint32_t command_n, uint32_t now, uint32_t bank, uint32_t address) {
        if (now == control && select_n) return;
        if (now != control) seen.push_back({memory_clocks + phase, now, 0, 0, 0});
        control = now;
        if (!select_n && command_n != 7) seen.push_back({memory_clocks + phase, now, ~command_n & 7, bank, address});
    }
    void watch() {
        note(0, top.seen0_cs_n, top.seen0_ras_n << 2 | top.seen0_cas_n << 1 | top.seen0_we_n,
             top.seen0_reset_n << 2 | top.seen0_odt << 1 | top.seen0_cke, top.seen0_ba, top.seen0_a);
        note(0.5, top.seen1_cs_n, top.seen1_ras_n << 2 | top.seen1_cas_n << 1 | top.seen1_we_n,
             top.seen1_reset_n << 2 | top.seen1_odt << 1 | top.seen1_cke, top.seen1_ba, top.seen1_a);
    }
    template <bool WATCHES>
    void run(uint64_t clocks) {
        for (uint64_t done = 0; done < clocks;) {
            if (next_core <= next_memory) {
                top.clk = !top.clk;
                top.eval();
                done += top.clk;
                next_core += 0.5;
            } else {
                if (WATCHES && !top.memory_clk) watch();
                top.memory_clk = !top.memory_clk;
                memory_clocks += top.memory_clk;
                top.eval();
                next_memory += 0.5 / ratio;
            }
        }
    }
};

}  // namespace

EXPORT void* bench_new(double ratio) {
    Bench* bench = new Bench;
    bench->ratio = ratio;
    bench->top.rst = 1;
    bench->run<false>(8);
    bench->top.rst = 0;
    return bench;
}
EXPORT void* bench_node(void* bench) { return &static_cast<Bench*>(bench)->top; }
EXPORT void bench_run(void* bench, uint64_t clocks, int watches) {
    watches ? static_cast<Bench*>(bench)->run<true>(clocks) : static_cast<Bench*>(bench)->run<false>(clocks);
}
EXPORT uint64_t bench_seen(void* bench, const Seen** list) {
    *list = static_cast<Bench*>(bench)->seen.data();
    return static_cast<Bench*>(bench)->seen.size();
}
