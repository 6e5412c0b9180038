// Where a process is, every so often: the addresses that it was about to execute, and whose they are.
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace {

std::vector<uintptr_t> found;
volatile size_t count;
timer_t timer;
struct sigaction before;

void sample(int, siginfo_t*, void* context) {
    const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    if (count == found.size()) return;
#if defined(__x86_64__)
    found[count] = uintptr_t(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
    found[count] = uintptr_t(machine.pc);
#else
#error "bentpipe samples: where this processor's program counter is isn't known"
#endif
    count = count + 1;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Of the calling thread, as often; 0, or -1 if there is no such timer. By the wall's clock, as that of the processor's time
// goes by steps of milliseconds.
int start(long nanoseconds, size_t most) {
    found.assign(most, 0);
    count = 0;
    struct sigaction action {};
    action.sa_sigaction = sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event.sigev_notify_thread_id = pid_t(syscall(SYS_gettid));
    const itimerspec every{{0, nanoseconds}, {0, nanoseconds}};
    if (sigaction(SIGPROF, &action, &before)) return -1;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return -1;
    return timer_settime(timer, 0, &every, nullptr);
}

size_t stop() {
    timer_delete(timer);
    signal(SIGPROF, SIG_IGN);  // one that is pending
    sigaction(SIGPROF, &before, nullptr);
    return count;
}

// The file of the program or library that a sample is in; "" if it is in none.
const char* file(size_t number) {
    Dl_info of{};
    return dladdr(reinterpret_cast<void*>(found[number]), &of) && of.dli_fname ? of.dli_fname : "";
}
}
#pragma GCC visibility pop
